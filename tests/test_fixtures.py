"""The fixtures for users' own tests, used as a user would."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from pytest_jevbench.relations import CATALOGUE

SUITE = ("--jev-embedded=luce", "--jev-suite=upstream:examples", "--jev-items=no")
CASE = {
    "id": "ticket-1",
    "state": "Printer 7 is out of toner. Nobody is waiting for it today.",
    "questions": {
        "toner": {"type": "noul", "instructions": "Is the toner used up?"},
        "waiting": {"type": "noul", "instructions": "Is somebody waiting for the printer?"},
        "next": {
            "type": "choice",
            "instructions": "What should be done next?",
            "criteria": {"order": "Order new toner", "repair": "Call a technician", "ignore": "Leave it as it is"},
        },
    },
}


def run(pytester: pytest.Pytester, *arguments: str) -> pytest.RunResult:
    return pytester.runpytest_subprocess("-p", "no:randomly", *arguments)


def card(pytester: pytest.Pytester, name: str = "last-partial.json") -> dict[str, object]:
    found: dict[str, object] = json.loads((pytester.path / ".jevbench-cache" / name).read_text())
    return found


def test_a_relation_fixture_gives_each_of_its_tests(pytester: pytest.Pytester) -> None:
    pytester.makepyfile("def test_clones(jev_option_clone):\n    jev_option_clone.check(0.02)\n")
    result = run(pytester, *SUITE)
    result.assert_outcomes(failed=1)
    result.stdout.fnmatch_lines(
        [
            "*test_clones?support-001-urgency?*",
            "*law: an option and its identical copy*",
            "*tolerance 0.02: violated*",
            "*rerun: pytest *examples::option_clone::*",
        ]
    )
    assert result.ret == pytest.ExitCode.TESTS_FAILED


def test_a_relation_fixture_works_with_own_cases(pytester: pytest.Pytester) -> None:
    pytester.makepyfile("def test_clones(jev_option_clone):\n    jev_option_clone.check(1)\n")
    (pytester.path / "mine.jsonl").write_text(json.dumps(CASE) + "\n")
    result = run(pytester, "--jev-embedded=luce", "--jev-cases=mine.jsonl", "--jev-items=no")
    result.assert_outcomes(passed=1)


def test_without_a_plan_each_test_is_one_skipped_item_that_says_what_to_give(pytester: pytest.Pytester) -> None:
    pytester.makepyfile(
        "def test_clones(jev_option_clone): ...\ndef test_all(jev_relation): ...\ndef test_card(jev_card): ..."
    )
    result = run(pytester, "-rs")
    result.assert_outcomes(skipped=3)
    result.stdout.fnmatch_lines(["*--jev-suite=NAME or --jev-cases=FILE*"])
    assert not (pytester.path / ".jevbench-cache").exists()


def test_a_plan_in_the_ini_file_feeds_the_fixtures_and_adds_no_items(pytester: pytest.Pytester) -> None:
    pytester.makeini("[pytest]\njev_suite = upstream:examples\njev_embedded = uniform\n")
    pytester.makepyfile("def test_solo(jev_batch_solo): assert not jev_batch_solo.violated")
    run(pytester).assert_outcomes(passed=1)


def test_the_attributes_of_a_relation_test(pytester: pytest.Pytester) -> None:
    pytester.makepyfile(
        """
        def test_one(jev_option_clone):
            test = jev_option_clone
            assert test.relation == "option_clone" and test.case.id == "support-001"
            assert test.target in test.case.questions
            (trial,), (answers,) = test.trials, test.answers
            clone = trial.params["clone"]
            got = answers["variant"].distributions[test.target]
            assert clone in got and 0 <= test.deviation <= 1
            assert test.violated is (test.deviation > 0.05) and test.flip in (True, False)
            assert "law:" in test.explain() and test.id.startswith("examples::option_clone::")
        """
    )
    run(pytester, *SUITE).assert_outcomes(passed=1)


def test_jev_relation_gives_the_tests_of_every_selected_relation(pytester: pytest.Pytester) -> None:
    pytester.makepyfile("def test_all(jev_relation): assert jev_relation.deviation >= 0")
    run(pytester, *SUITE).assert_outcomes(passed=50)
    run(pytester, *SUITE, "--jev-dimensions=BAT").assert_outcomes(passed=5)


def test_every_relation_has_a_fixture(pytester: pytest.Pytester) -> None:
    result = run(pytester, "--fixtures", "-q")
    for name in CATALOGUE:
        result.stdout.fnmatch_lines([f"jev_{name} *"])


def test_the_marker_narrows_relations_domains_and_sets_the_tolerance(pytester: pytest.Pytester) -> None:
    pytester.makepyfile(
        """
        import pytest

        @pytest.mark.jevbench_only(relations=["option_clone", "batch_solo"])
        def test_two(jev_relation): ...

        @pytest.mark.jevbench_only(domains=["elsewhere"])
        def test_none(jev_relation): ...

        @pytest.mark.jevbench_only(relations="option_clone", tolerance=0.9)
        def test_lenient(jev_relation): jev_relation.check()
        """
    )
    result = run(pytester, *SUITE, "-rs", "--strict-markers")
    result.assert_outcomes(passed=3, skipped=1)
    result.stdout.fnmatch_lines(["*has no test of the relations asked for*"])


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        ("relation='option_clone'", "takes relations=, domains= and tolerance= only"),
        ("relations='option_klone'", "there is no relation 'option_klone'"),
    ],
)
def test_a_wrong_marker_is_named(pytester: pytest.Pytester, arguments: str, said: str) -> None:
    pytester.makepyfile(f"import pytest\n@pytest.mark.jevbench_only({arguments})\ndef test_it(jev_relation): ...\n")
    result = run(pytester, *SUITE)
    assert result.ret != 0
    assert said in result.stdout.str() + result.stderr.str()


def test_a_test_of_the_plan_enters_the_card_once_and_assertions_never_do(pytester: pytest.Pytester) -> None:
    pytester.makepyfile(
        """
        def test_first(jev_option_clone): assert False, "mine"
        def test_again(jev_option_clone): ...
        def test_card(jev_batch_solo, jev_card):
            assert {test.relation for test in jev_card.tests} <= {"option_clone", "batch_solo"}
        """
    )
    result = run(pytester, *SUITE)
    result.assert_outcomes(failed=1, passed=2)
    tests = card(pytester)["tests"]
    assert isinstance(tests, list)
    assert sorted(test["relation"] for test in tests) == ["batch_solo", "option_clone"]


def test_fixtures_and_items_share_requests(pytester: pytest.Pytester) -> None:
    pytester.makepyfile("def test_all(jev_relation): ...")
    result = run(pytester, "--jev-embedded=uniform", "--jev-suite=upstream:examples", ".")
    found = card(pytester, "last-card.json")
    assert found["requests"]["sent"] == 43  # type: ignore[index] # cards are JSON
    assert found["partial"] is None
    assert result.parseoutcomes()["passed"] > 50


def test_a_request_that_fails_is_an_error_of_the_users_test(pytester: pytest.Pytester) -> None:
    pytester.makepyfile(
        model="""
        def answer(state, questions):
            if len(questions) == 1:
                raise RuntimeError("out of memory")
            from pytest_jevbench.model import Request, embedded
            return embedded("uniform").ask(Request.of(state, questions)).answers
        """,
        test_it="def test_solo(jev_batch_solo): ...",
    )
    result = run(pytester, "--jev-callable=model:answer", *SUITE[1:])
    result.assert_outcomes(errors=1)
    result.stdout.fnmatch_lines(["*ModelError*the function raised RuntimeError*out of memory*"])
    assert len(card(pytester)["errors"]) == 1  # type: ignore[arg-type] # cards are JSON


def test_the_model_can_be_asked_without_a_plan(pytester: pytest.Pytester) -> None:
    pytester.makepyfile(
        """
        QUESTION = {"type": "choice", "criteria": {"left": None, "right": None}}

        def test_ask(jev_model):
            assert jev_model.name == "uniform"
            assert jev_model.ask("Which way?", {"way": QUESTION}) == {"way": {"left": 0.5, "right": 0.5}}
        """
    )
    run(pytester, "--jev-embedded=uniform").assert_outcomes(passed=1)


def test_asking_without_a_model_says_how_to_name_one(pytester: pytest.Pytester) -> None:
    pytester.makepyfile("def test_ask(jev_model): ...")
    result = run(pytester)
    result.assert_outcomes(errors=1)
    result.stdout.fnmatch_lines(["*no model to test: give one of --jev-url*"])


def test_an_illegal_question_is_refused_before_it_is_sent(pytester: pytest.Pytester) -> None:
    pytester.makepyfile("def test_ask(jev_model): jev_model.ask('x', {'way': {'type': 'chioce'}})")
    result = run(pytester, "--jev-embedded=uniform")
    result.assert_outcomes(failed=1)
    result.stdout.fnmatch_lines(["*SettingError: question 'way'*"])


def test_fixtures_work_under_workers(pytester: pytest.Pytester) -> None:
    pytester.makepyfile("def test_all(jev_relation): ...")
    run(pytester, *SUITE, "-n", "2").assert_outcomes(passed=50)
    assert card(pytester, "last-card.json")["partial"] is None


def test_own_cases_are_rebuilt_the_same_from_the_seed(pytester: pytest.Pytester) -> None:
    path = Path(pytester.path / "mine.jsonl")
    path.write_text(json.dumps(CASE) + "\n")
    options = ("--jev-embedded=luce", "--jev-cases=mine.jsonl", "--jev-violations=record", "--jev-cache=memory")
    ids = []
    for seed in ("0", "0", "1"):
        result = run(pytester, *options, f"--jev-seed={seed}", "--jev-draws=3", f"--jev-card={seed}.json")
        assert result.ret == 0
        ids.append(
            {
                test["id"]: test["deviation"]
                for test in json.loads((pytester.path / f"{seed}.json").read_text())["tests"]
            }
        )
    assert ids[0] == ids[1]
    assert ids[0].keys() == ids[2].keys()
    assert ids[0] != ids[2]
