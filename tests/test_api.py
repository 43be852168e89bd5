"""The Python API: the same core without pytest."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest

import pytest_jevbench
from pytest_jevbench import Card, check, estimate, evaluate, from_callable, load_cases, load_suite, systemone
from pytest_jevbench.api import SAMPLE
from pytest_jevbench.cli import main
from pytest_jevbench.errors import AnswerFormatError, CaseError, ModelError, Refused, SettingError, SuiteError
from pytest_jevbench.model import Request, embedded
from server import Server, answers, send


def luce(state: object, questions: dict[str, object]) -> object:
    return embedded("luce").ask(Request.of(state, questions)).answers  # type: ignore[arg-type] # what users pass


def test_evaluate_gives_the_card_of_a_pytest_run(pytester: pytest.Pytester) -> None:
    pytester.runpytest_subprocess(
        "-p", "no:randomly", "--jev-embedded=luce", "--jev-suite=upstream:examples", "--jev-card=run.json"
    )
    ran = Card.load(pytester.path / "run.json")
    card = evaluate(embedded("luce"), "upstream:examples", cache=None, progress=False)
    same = {"scores", "checks", "tests", "domains", "suite", "settings", "selection", "partial", "warnings", "errors"}
    assert card.model_dump(include=same) == ran.model_dump(include=same)
    assert card.requests.distinct == ran.requests.distinct == 43


def test_uniform_answers_score_89_4_on_the_official_mini() -> None:
    card = evaluate(embedded("uniform"), "upstream:jevbench-mini", cache=None, bootstrap=0, progress=False)
    assert card.scores.overall is not None
    assert round(100 * card.scores.overall, 1) == 89.4


def test_a_function_is_a_model() -> None:
    card = evaluate(luce, "upstream:examples", cache=None, progress=False)
    assert card.model.name == "luce"
    assert card.tests == evaluate(from_callable(luce, name="mine"), "upstream:examples", cache=None).tests


def test_a_selection_is_a_union_and_may_be_one_name() -> None:
    card = evaluate(
        luce, "upstream:examples", relations="option_clone", dimensions=["BAT"], cache=None, progress=False
    )
    assert set(card.checks) == {
        "option_clone",
        *(n for n, c in card.checks.items() if n.startswith(("batch", "dup"))),
    }
    assert card.selection.relations == ["option_clone"]


def test_answers_are_kept_between_calls(tmp_path: Path) -> None:
    model = embedded("luce")
    first = evaluate(model, "upstream:examples", cache=tmp_path / "kept", progress=False)
    second = evaluate(model, "upstream:examples", cache=tmp_path / "kept", progress=False)
    assert (first.requests.sent, first.requests.cached) == (43, 0)
    assert (second.requests.sent, second.requests.cached) == (1, 42)
    assert first.tests == second.tests


def test_own_cases_from_a_file_and_from_a_list_are_the_same(tmp_path: Path) -> None:
    path = tmp_path / "mine.jsonl"
    path.write_text(json.dumps({"id": "a", "state": SAMPLE.state, "questions": SAMPLE.questions}) + "\n")
    from_file = evaluate(luce, cases=path, min_n=1, cache=None, progress=False)
    from_list = evaluate(luce, cases=load_cases(path), min_n=1, cache=None, progress=False)
    assert from_file.cases is not None
    assert [t.deviation for t in from_file.tests] == [t.deviation for t in from_list.tests]
    assert from_file.scores == from_list.scores


def test_estimate_counts_what_evaluate_sends() -> None:
    assert estimate("upstream:jevbench-mini").requests == 1248
    guess = estimate("upstream:examples", dimensions="MEA")
    card = evaluate(luce, "upstream:examples", dimensions="MEA", cache=None, progress=False)
    assert (guess.requests, guess.tests) == (card.requests.distinct, len(card.tests))


def test_failed_requests_are_recorded_and_leave_relations_unscored() -> None:
    def refusing(state: object, questions: dict[str, object]) -> object:
        if len(questions) == 1:
            raise Refused("not alone")
        return luce(state, questions)

    card = evaluate(refusing, "upstream:examples", cache=None, progress=False)
    assert {entry.relation for entry in card.errors} == {"batch_solo"}
    assert card.scores.overall is None
    assert card.scores.dimensions["BAT"] is None
    assert card.partial == ["1 of 50 tests could not be judged (errors)"]


def test_a_model_that_cannot_be_used_raises_before_anything_else() -> None:
    with pytest.raises(ModelError, match="no answers object"):
        evaluate(lambda state, questions: None, "upstream:examples", cache=None, progress=False)  # noqa: ARG005 - a model takes both


@pytest.mark.parametrize(
    ("arguments", "error", "said"),
    [
        ({}, SettingError, "a suite or cases"),
        ({"suite": "upstream:examples", "cases": "x.jsonl"}, SettingError, "a suite or cases"),
        ({"suite": "upstream:examples", "seed": 1}, SettingError, "frozen"),
        ({"suite": "nowhere/"}, SuiteError, "no such folder"),
        ({"cases": "nowhere.jsonl"}, CaseError, "no such file"),
        ({"cases": []}, SettingError, "no cases"),
        ({"suite": "upstream:examples", "tolerance": 2}, SettingError, "tolerance"),
        ({"suite": "upstream:examples", "min_n": 0}, SettingError, "min_n"),
        ({"suite": "upstream:examples", "relations": "option_klone"}, SettingError, "option_clone"),
        ({"suite": "upstream:examples", "domains": "ships"}, SettingError, "customer_support"),
    ],
)
def test_wrong_arguments_are_named(arguments: dict[str, object], error: type[Exception], said: str) -> None:
    with pytest.raises(error, match=said):
        evaluate(luce, cache=None, progress=False, **arguments)  # type: ignore[arg-type] # what users pass


def test_what_is_no_model_is_named() -> None:
    for wrong in (3, [], [luce, 4], "http://127.0.0.1"):
        with pytest.raises(SettingError):
            evaluate(wrong, "upstream:examples", cache=None)  # type: ignore[arg-type] # what users pass


def test_check_reads_every_answer_of_one_request() -> None:
    with Server(answers(by="luce", model="other")) as server:
        found = check(systemone(server.url))
    assert set(found.answers) == set(SAMPLE.questions)
    assert found.answered_as == "other"
    assert "another `model` than asked" in found.warnings[0]
    assert len(server.requests) == 1


def test_check_raises_what_has_to_be_fixed() -> None:
    with pytest.raises(AnswerFormatError, match="question 'delayed'"):
        check(lambda state, questions: {})  # noqa: ARG005 - a model takes both


def test_the_progress_bar_is_off_where_nobody_looks(capsys: pytest.CaptureFixture[str]) -> None:
    evaluate(luce, "upstream:examples", relations="batch_solo", cache=None)
    assert capsys.readouterr().err == ""
    evaluate(luce, "upstream:examples", relations="batch_solo", cache=None, progress=True)
    assert "1/1" in capsys.readouterr().err


def test_every_public_name_is_there_and_nothing_heavy_before_its_use() -> None:
    assert all(getattr(pytest_jevbench, name) is not None for name in pytest_jevbench.__all__)
    with pytest.raises(AttributeError, match="nothing"):
        _ = pytest_jevbench.nothing
    heavy = "('httpx', 'numpy', 'pydantic', 'pytest')"
    code = f"import sys, pytest_jevbench; print([m for m in {heavy} if m in sys.modules])"
    assert subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout == "[]\n"


def test_the_core_does_not_know_pytest() -> None:
    code = (
        "import sys; from pytest_jevbench import evaluate; from pytest_jevbench.model import embedded;"
        "evaluate(embedded('uniform'), 'upstream:examples', cache=None); print('pytest' in sys.modules)"
    )
    assert (
        subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout == "False\n"
    )


# The command line


def test_the_command_check(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["check", "--embedded", "luce"]) == 0
    assert "luce can be used: 3 answers" in capsys.readouterr().out
    with Server(send("{}", 404)) as server:
        assert main(["check", "--url", server.url]) == 1
    assert "HTTP 404" in capsys.readouterr().err
    assert main(["check", "--embedded", "nobody"]) == 2


def test_the_command_estimate(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["estimate", "--suite", "upstream:jevbench-mini", "--relations", "option_clone,batch_solo"]) == 0
    assert capsys.readouterr().out.startswith("48 tests on")
    assert main(["estimate", "--suite", "upstream:nothing"]) == 2


def test_the_commands_suites_export_and_freeze(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["suites"]) == 0
    assert "upstream:jevbench-mini" in capsys.readouterr().out
    out = tmp_path / "mini"
    assert main(["suites", "export", "upstream:jevbench-mini", str(out)]) == 0
    official, exported = load_suite("upstream:jevbench-mini"), load_suite(f"{out}/")
    assert exported.plan_sha256 == official.plan_sha256
    assert (exported.name, exported.edition) == (official.name, official.edition)
    assert main(["suites", "export", "upstream:jevbench-mini", str(out)]) == 2
    assert "not empty" in capsys.readouterr().err
    (tmp_path / "own").mkdir()
    (tmp_path / "own" / "cases.jsonl").write_text(
        json.dumps({"id": "a", "state": SAMPLE.state, "questions": SAMPLE.questions}) + "\n"
    )
    assert main(["freeze", str(tmp_path / "own")]) == 0
    assert main(["freeze", str(tmp_path / "own"), "--sample", "1"]) == 0
    whole, sample = load_suite(f"{tmp_path}/own"), load_suite(f"{tmp_path}/own-mini")
    assert len(sample.plan.tests) == len(whole.plan.tests) > 30
    with pytest.raises(SystemExit):
        main(["freeze", str(tmp_path / "own"), "--sample", "0"])


def test_the_command_rewrite_stats_counts_a_bank(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    verdicts = [(True, None), (True, True), (True, False), (False, None)]
    lines = [
        {"kind": "paraphrase", "source": f"Is it {i}?", "rewrite": "Is it?", "accepted": accepted, "audited": audited}
        for i, (accepted, audited) in enumerate(verdicts)
    ]
    bank = tmp_path / "bank.jsonl"
    bank.write_text("\n".join(map(json.dumps, lines)))
    assert main(["rewrite", "stats", str(bank)]) == 0
    assert capsys.readouterr().out.splitlines()[1].split() == ["paraphrase", "4", "3", "2", "1", "1"]
    assert main(["rewrite", "stats", str(tmp_path / "none.jsonl")]) == 2
