"""Choosing tests the way pytest users do: -k, -m, --lf, -x, pasted ids. The plan's tests are ordinary items."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any
from xml.etree import ElementTree as ET

import pytest

from pytest_jevbench.errors import SuiteError
from pytest_jevbench.plan import Test
from pytest_jevbench.suite import load_suite
from server import Server

Run = Callable[..., pytest.RunResult]
Card = Callable[..., dict[str, Any]]
Freeze = Callable[..., None]

MINI = ("--jev-suite=upstream:jevbench-mini",)
EXAMPLES = ("--jev-suite=upstream:examples", "--jev-embedded=uniform")
VIOLATED = [
    f"examples::{relation}::support-001[{key}]"
    for relation, key in [
        ("choice_complement", "primary_team"),
        ("score_complement", "frustration"),
        ("option_merge", "primary_team"),
        ("option_split", "primary_team"),
        ("option_clone", "urgency"),
        ("similarity_effect", "urgency"),
        ("extreme_level", "frustration"),
        ("score_cumulative", "frustration"),
        ("choice_indicator", "urgency"),
    ]
]
"""What `uniform` violates in `examples`, in plan order: equal shares do not survive a change of the menu."""
CLONE = "examples::option_clone::support-001[urgency]"

MINE = "def test_good() -> None: ...\ndef test_bad() -> None: assert not 'good'\n"

PARTIAL_BY_KEY = """
def model(state, questions):
    \"\"\"Break batch_solo for every question whose key says so.\"\"\"
    return {
        key: {"type": "noul", "noul": 0.9 if len(questions) > 1 and "bad" in key else 0.2} for key in questions
    }
"""


def printed(result: pytest.RunResult, suite: str = "examples") -> list[str]:
    """Return the ids that `--collect-only -q` printed."""
    return [line for line in result.outlines if line.startswith(f"{suite}::")]


def verdicts(result: pytest.RunResult) -> dict[str, str]:
    """Return the words that `-v` printed behind the ids, in the order of the run."""
    lines = [line.rpartition("[")[0].strip() for line in result.outlines if line.endswith("%]") and "::" in line]
    return {identity: word for identity, _, word in (line.rpartition(" ") for line in lines)}


def judged(card: dict[str, Any]) -> list[str]:
    return [test["id"] for test in card["tests"]]


# -k and -m


def test_k_with_a_relation_runs_exactly_its_tests(run: Run, card_of: Card) -> None:
    result = run(*MINI, "--jev-embedded=luce", "-k", "option_clone")
    outcomes = result.parseoutcomes()
    assert outcomes.pop("deselected") == 1176
    assert outcomes == {"violated": 22, "passed": 2}
    tests = judged(card_of("last-partial.json"))
    assert len(tests) == len(set(tests)) == 24
    assert {identity.split("::")[1] for identity in tests} == {"option_clone"}


@pytest.mark.parametrize(
    ("arguments", "chosen"),
    [
        (
            ("-k", "finance_ops and not threshold_sweep"),
            lambda test: test.case.domain == "finance_ops" and test.relation.name != "threshold_sweep",
        ),
        (("-k", "finance_ops-007 or REP.type"), lambda test: _is_case_7(test) or test.relation.group == "REP.type"),
        (("-m", "option_clone"), lambda test: test.relation.name == "option_clone"),
        (("-m", "LOG"), lambda test: test.relation.dimension == "LOG"),
        (("-m", "jevbench", "-k", "jevbench-mini"), lambda _: True),
    ],
    ids=lambda value: " ".join(value) if isinstance(value, tuple) else "",
)
def test_expressions_choose_by_relation_group_domain_case_and_dimension(
    arguments: tuple[str, ...], chosen: Callable[[Test], bool], run: Run
) -> None:
    expected = {
        f"jevbench-mini::{test.relation.name}::{test.case.id}[{test.key}]"
        for test in load_suite("upstream:jevbench-mini").plan.tests
        if chosen(test)
    }
    result = run(*MINI, "--collect-only", "-q", *arguments)
    assert result.ret == 0
    assert set(printed(result, "jevbench-mini")) == expected
    assert len(printed(result, "jevbench-mini")) == len(expected) > 10


def _is_case_7(test: Test) -> bool:
    return test.case.id == "finance_ops-007"


# --lf, --ff, --sw, -x, --deselect


def test_lf_and_ff_take_the_suites_failures_and_the_users_own_together(run: Run, pytester: pytest.Pytester) -> None:
    pytester.makepyfile(test_mine=MINE)
    first = run(*EXAMPLES, "test_mine.py")
    assert first.parseoutcomes() == {"failed": 1, "passed": 42, "violated": 9}
    failures_first = run(*EXAMPLES, "test_mine.py", "--ff", "-v")
    assert list(verdicts(failures_first).values()) == ["FAILED", *["VIOLATED"] * 9, *["PASSED"] * 42]
    failures = run(*EXAMPLES, "test_mine.py", "--lf", "-v")
    assert verdicts(failures) == {"test_mine.py::test_bad": "FAILED"} | dict.fromkeys(VIOLATED, "VIOLATED")
    assert failures.parseoutcomes() == {"failed": 1, "deselected": 42, "violated": 9}
    assert failures.ret == 1
    # Without paths only the suite runs, the last failures of it too.
    assert verdicts(run(*EXAMPLES, "--lf", "-v")) == dict.fromkeys(VIOLATED, "VIOLATED")


def test_recorded_violations_are_no_failures_to_rerun(run: Run) -> None:
    first = run(*EXAMPLES, "--jev-violations=record")
    assert (first.ret, first.parseoutcomes()) == (0, {"passed": 41, "violated": 9})
    again = run(*EXAMPLES, "--jev-violations=record", "--lf")
    assert again.parseoutcomes() == {"passed": 41, "violated": 9}
    again.stdout.fnmatch_lines(["*no previously failed tests*"])


def test_sw_stops_at_a_violation_and_goes_on_from_it(run: Run) -> None:
    first = run(*EXAMPLES, "--sw", "-v")
    assert list(verdicts(first).items())[-1] == (VIOLATED[0], "VIOLATED")
    assert first.parseoutcomes()["violated"] == 1
    again = run(*EXAMPLES, "--sw", "--sw-skip", "-v")
    assert list(verdicts(again)) == VIOLATED[:2]


def test_x_stops_at_the_first_violation(run: Run, card_of: Card) -> None:
    result = run(*EXAMPLES, "-x")
    assert result.ret == 1
    assert result.parseoutcomes() == {"passed": 22, "violated": 1}
    card = card_of("last-partial.json")
    assert judged(card)[-1] == VIOLATED[0]
    assert card["partial"] == ["27 of 50 tests were not run (the run stopped early)"]


def test_deselect_takes_a_printed_id(run: Run, card_of: Card) -> None:
    result = run(*EXAMPLES, "--deselect", CLONE)
    assert result.parseoutcomes() == {"passed": 41, "violated": 8, "deselected": 1}
    card = card_of("last-partial.json")
    assert CLONE not in judged(card)
    assert card["partial"] == ["1 of 50 tests were not run (--deselect)"]


# Ids


def test_a_pasted_id_runs_exactly_this_test(run: Run, card_of: Card) -> None:
    assert run(*EXAMPLES, CLONE).parseoutcomes() == {"violated": 1}
    card = card_of("last-partial.json")
    assert judged(card) == [CLONE]
    assert card["partial"] == ["49 of 50 tests were not run (node ids)"]


def test_several_pasted_ids_and_a_users_own_run_together(run: Run, pytester: pytest.Pytester) -> None:
    pytester.makepyfile(test_mine=MINE)
    result = run(*EXAMPLES, CLONE, "test_mine.py::test_good", VIOLATED[0], "-v")
    assert list(verdicts(result)) == [CLONE, "test_mine.py::test_good", VIOLATED[0]]


def test_a_relation_or_the_suite_is_an_argument_too(run: Run) -> None:
    assert len(printed(run(*MINI, "--collect-only", "-q", "jevbench-mini::option_clone"), "jevbench-mini")) == 24
    assert len(printed(run(*EXAMPLES, "--collect-only", "-q", "examples"))) == 50


def test_an_id_without_its_question_means_every_question_of_the_case(
    run: Run, freeze: Freeze, pytester: pytest.Pytester
) -> None:
    freeze(pytester.path / "suites" / "mail", {"mail-1": ["urgent", "paid"], "mail-11": ["urgent"]})
    result = run("--jev-suite=suites/mail", "--collect-only", "-q", "mail::batch_solo::mail-1")
    assert printed(result, "mail") == [f"mail::batch_solo::mail-1[{key}]" for key in ("urgent", "paid")]


@pytest.mark.parametrize(
    "wrong", [CLONE.replace("urgency", "urgencx"), CLONE.replace("support-001", "support-002"), CLONE[:21]]
)
def test_an_id_that_does_not_exist_is_a_usage_error_that_names_a_near_one(wrong: str, run: Run) -> None:
    result = run(*EXAMPLES, wrong)
    assert result.ret == 4
    assert f"there is no test {wrong}. Did you mean {CLONE!r}?" in result.stderr.str()
    assert "Traceback" not in result.stderr.str()


ODD = ["a::b]c[", "100% %5B\n", "Straße 東京 ", "../up/*", "--lf", ":", "\u2028quo'te\"$HOME\\"]


def test_every_printed_id_can_be_pasted_back_whatever_its_characters(
    run: Run, card_of: Card, freeze: Freeze, pytester: pytest.Pytester
) -> None:
    freeze(pytester.path / "suites" / "odd", {name: [f"{name} key"] for name in ODD})
    suite = ("--jev-suite=suites/odd", "--jev-embedded=uniform", "-q")
    ids = printed(run(*suite, "--collect-only"), "odd")
    assert len(ids) == len(ODD)
    for name, identity in zip(ODD, ids, strict=True):
        assert run(*suite, identity).parseoutcomes() == {"passed": 1}, identity
        assert [(test["id"], test["case"]) for test in card_of("last-partial.json")["tests"]] == [(identity, name)]


def test_a_rerun_command_survives_the_shell(freeze: Freeze, run: Run, pytester: pytest.Pytester) -> None:
    pytester.makepyfile(mine=PARTIAL_BY_KEY)
    odd = 'it\'s "bad" $HOME `id` \\ ; * \n'
    freeze(pytester.path / "suites" / "odd one", {"good": ["fine"], odd: ["bad"]}, name="odd one")
    first = run("--jev-suite=suites/odd one", "--jev-callable=mine:model")
    assert first.parseoutcomes() == {"passed": 1, "violated": 1}
    command = next(line.split("rerun: ")[1] for line in first.outlines if "rerun: " in line)
    path = f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}"
    environment = os.environ | {"PATH": path}
    done = subprocess.run(["sh", "-c", command], capture_output=True, text=True, check=False, env=environment)
    assert (done.returncode, done.stderr) == (1, "")
    assert pytest.RunResult.parse_summary_nouns(done.stdout.splitlines()) == {"violated": 1}


def test_a_pasted_id_works_where_the_suites_folder_lies_in_the_current_one(
    run: Run, freeze: Freeze, pytester: pytest.Pytester
) -> None:
    freeze(pytester.path / "ours", {"mail-1": ["urgent"], "mail-2": ["urgent"]})
    suite = ("--jev-suite=./ours", "--jev-embedded=uniform")
    identity = "ours::batch_solo::mail-1[urgent]"
    assert printed(run(*suite, "--collect-only", "-q"), "ours")[0].startswith("ours::batch_solo::mail-")
    assert run(*suite, identity).parseoutcomes() == {"passed": 1}
    assert run(*suite, "ours::batch_solo").parseoutcomes() == {"passed": 2}


def test_an_id_with_a_lone_surrogate_does_not_break_pytest(
    run: Run, freeze: Freeze, pytester: pytest.Pytester
) -> None:
    # JSON may hold "\ud800"; UTF-8, in which pytest keeps its ids and the environment its variables, may not.
    freeze(pytester.path / "suites" / "odd", {"lone \ud800": ["key \udfff"]})
    suite = ("--jev-suite=suites/odd", "--jev-embedded=uniform", "-q")
    result = run(*suite)
    assert result.ret == 0
    assert result.parseoutcomes() == {"passed": 1}
    (identity,) = printed(run(*suite, "--collect-only"), "odd")
    assert run(*suite, identity).parseoutcomes() == {"passed": 1}


@pytest.mark.parametrize("name", [".", "..", "-x", "@x"])
def test_a_suite_whose_ids_could_not_be_pasted_is_refused(name: str, freeze: Freeze, tmp_path: Path) -> None:
    # `.` and `..` are folders to pytest, `-x` is an option, `@x` a file of arguments.
    freeze(tmp_path / "mail", {"mail-1": ["urgent"]}, name=name)
    with pytest.raises(SuiteError, match="the manifest's name cannot be used"):
        load_suite(str(tmp_path / "mail"))


def test_ids_can_be_pasted_as_they_are_printed_in_a_folder_below(
    run: Run, card_of: Card, pytester: pytest.Pytester, monkeypatch: pytest.MonkeyPatch
) -> None:
    pytester.makeini("[pytest]")
    monkeypatch.chdir(pytester.mkdir("below"))
    shown = verdicts(run(*EXAMPLES, "-v", "-k", "option_clone"))
    assert list(shown) == [f"../{CLONE}"]
    for pasted in (f"../{CLONE}", CLONE):
        assert run(*EXAMPLES, pasted).parseoutcomes() == {"violated": 1}
        assert judged(card_of("last-partial.json")) == [CLONE]


# --collect-only, --junitxml, strictness, and without the plugin


def test_collect_only_needs_no_model(run: Run, pytester: pytest.Pytester) -> None:
    result = run("--jev-suite=upstream:examples", "--collect-only", "-q")
    assert result.ret == 0
    assert len(printed(result)) == 50
    assert not (pytester.path / ".jevbench-cache").exists()


def test_collect_only_sends_nothing(run: Run) -> None:
    with Server() as server:
        result = run("--jev-suite=upstream:examples", "--collect-only", f"--jev-url={server.url}")
        assert run("--jev-suite=upstream:examples", "--collect-only", f"--jev-url={server.url}", "-n2").ret == 0
        assert server.requests == []
        assert server.connections == 0
    assert result.ret == 0


def test_setup_plan_runs_nothing_and_sends_nothing(run: Run) -> None:
    with Server() as server:
        assert run("--jev-suite=upstream:examples", "--setup-plan", f"--jev-url={server.url}").ret == 0
        assert server.requests == []


def test_junitxml_counts_violations_as_failures_and_names_them(run: Run, pytester: pytest.Pytester) -> None:
    run(*EXAMPLES, "--junitxml=out.xml")
    suite = ET.parse(pytester.path / "out.xml").getroot()[0]  # noqa: S314 - pytest has written it
    assert {name: suite.get(name) for name in ("tests", "failures", "errors", "skipped")} == {
        "tests": "50",
        "failures": "9",
        "errors": "0",
        "skipped": "0",
    }
    failed = {f"{case.get('classname')}::{case.get('name')}": case[0] for case in suite if len(case)}
    assert set(failed) == {identity.replace("::", ".", 1) for identity in VIOLATED}
    message = failed[CLONE.replace("::", ".", 1)].get("message")
    assert message is not None
    assert message.startswith("option_clone: tv_after_collapse is 0.15, tolerance 0.05")


def test_a_suite_runs_with_strict_markers_and_warnings_as_errors(run: Run) -> None:
    result = run(*EXAMPLES, "--strict-markers", "--strict-config", "-W", "error")
    assert result.parseoutcomes() == {"passed": 41, "violated": 9}


def test_without_the_plugin_users_own_tests_run(run: Run, pytester: pytest.Pytester) -> None:
    pytester.makepyfile(test_mine="def test_good() -> None: ...\n")
    pytester.makeconftest(
        """
        import pytest

        @pytest.hookimpl(optionalhook=True)
        def pytest_jev_model(config):
            raise AssertionError("not without the plugin")
        """
    )
    result = run("-p", "no:jevbench")
    assert (result.ret, result.parseoutcomes()) == (0, {"passed": 1})
    assert run("-p", "no:jevbench", "--jev-suite=upstream:examples").ret == 4
