"""What the terminal says at the end of a run, and the exit code: everything a tired engineer needs, and no more."""

from __future__ import annotations

import json
import re
import shlex
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from server import Server, answers, send

Run = Callable[..., pytest.RunResult]
Card = Callable[..., dict[str, Any]]

EXAMPLES = ("--jev-suite=upstream:examples", "--jev-embedded=uniform")
MINI = ("--jev-suite=upstream:jevbench-mini", "--jev-embedded=luce")
CLONE = "examples::option_clone::support-001[urgency]"

BROKEN = """
from pytest_jevbench.model import Request, embedded

asked = 0

def model(state, questions):
    global asked
    asked += 1
    if asked == 7:
        raise {error}
    return embedded("uniform").ask(Request.of(state, questions)).answers
"""


def tail(lines: list[str]) -> list[str]:
    """Return the summary's lines, from its heading on."""
    return lines[next(i for i, line in enumerate(lines) if re.match(r"=+ jevbench: ", line)) :]


def explanations(lines: list[str]) -> list[list[str]]:
    """Return the explained violations, each from its blank line to the command that reruns it."""
    found: list[list[str]] = [[]]
    for line in lines:
        found[-1].append(line)
        if line.strip().startswith("rerun: "):
            found.append([])
    return found[:-1]


@pytest.fixture
def whole(mini_run: Path) -> list[str]:
    """Return what a run of the whole official mini printed."""
    return (mini_run / "output.txt").read_text(encoding="utf-8").splitlines()


# The score


def test_the_overall_score_stands_with_its_interval_and_what_it_rests_on(whole: list[str]) -> None:
    summary = "\n".join(tail(whole))
    assert re.search(r"^coherence  65\.7  95% interval 64\.\d to 66\.\d  graded 92\.6$", summary, re.MULTILINE)
    assert "1,200 tests judged, 613 violated" in summary
    assert "tolerance 0.05" in summary


def test_the_edition_stands_beside_the_score_with_what_it_can_be_compared_with(whole: list[str]) -> None:
    summary = tail(whole)
    assert "jevbench-mini@jevbench-1, model luce" in summary[0]
    said = " ".join(" ".join(summary).split())
    assert "Comparable with every run of jevbench-mini@jevbench-1, the edition of the official leaderboard" in said


def test_every_dimension_has_a_line_with_its_score_and_its_groups(whole: list[str]) -> None:
    lines = {line.split()[0]: line for line in tail(whole) if re.match(r"  [A-Z]{3}  ", line)}
    assert list(lines) == ["REP", "BAT", "MEA", "LOG", "CHO"]
    for code, score in {"REP": "56.4", "BAT": "100.0", "MEA": "11.5", "LOG": "60.4", "CHO": "100.0"}.items():
        assert score in lines[code].split()
    assert "monotonicity 29.2" in lines["LOG"]


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (["--jev-relations=option_clone"], "A selection of examples@jevbench-2"),
        (["--jev-tolerance=0.1"], "Comparable with runs of examples@jevbench-2 at the tolerance 0.1 only"),
    ],
)
def test_what_a_lesser_run_can_be_compared_with_is_said(arguments: list[str], said: str, run: Run) -> None:
    assert said in run(*EXAMPLES, *arguments).stdout.str()


def test_no_score_has_its_reason(run: Run, card_of: Card) -> None:
    result = run(*MINI, "--jev-domains=logistics")
    summary = "\n".join(tail(result.outlines))
    assert re.search(r"^coherence  -$", summary, re.MULTILINE)
    assert "No overall score: no relation is scored (min_n is 5)." in summary
    assert "not scored: every relation: 2 tests, min_n is 5" in summary
    card = card_of()
    assert card["scores"]["overall"] is None
    assert card["scores"]["relations"] == {}
    assert {entry["reason"] for entry in card["scores"]["unscored"]} == {"2 tests, min_n is 5"}


# Violations


def test_the_five_worst_violations_are_explained_in_full_the_worst_first(whole: list[str], mini_run: Path) -> None:
    assert any("violations: the worst 5 of 613" in line for line in whole)
    found = explanations(whole)
    assert len(found) == 5
    deviations = []
    for lines in found:
        text = "\n".join(lines)
        assert re.search(r"^    [+-] \w+", text, re.MULTILINE), "what was edited, as a diff"
        assert "█" in text, "the answers, as bars"
        judgement = re.search(r"^  \w+ = (0\.\d{4}), tolerance 0\.05: violated", text, re.MULTILINE)
        assert judgement, "the deviation against the tolerance"
        deviations.append(float(judgement[1]))
    assert sum("and the decision changes" in "\n".join(lines) for lines in found) >= 1
    card = json.loads((mini_run / "card.json").read_text(encoding="utf-8"))
    worst = sorted((test["deviation"] for test in card["tests"] if test["violated"]), reverse=True)
    assert deviations == [round(value, 4) for value in worst[:5]]


def test_a_printed_command_reruns_exactly_that_test_and_finds_the_same(whole: list[str], run: Run) -> None:
    lines = explanations(whole)[2]
    program, *arguments = shlex.split(lines[-1].split("rerun: ")[1])
    assert program == "pytest"
    result = run(*arguments)
    assert result.ret == 1
    assert result.parseoutcomes() == {"violated": 1}
    (again,) = explanations(result.outlines)
    assert again[-6:] == lines[-6:]


def test_every_violated_relation_has_a_line_with_count_and_mean(whole: list[str]) -> None:
    lines = [line.split() for line in tail(whole) if re.match(r"  [a-z_]+ +\d+ of \d+ ", line)]
    assert len(lines) == len({line[0] for line in lines}) == 32
    assert sum(int(line[1]) for line in lines) == 613
    assert lines[0][1:6] == ["24", "of", "24", "mean", "0.467"]
    assert max(map(len, tail(whole))) <= 140


def test_vv_explains_every_violation(run: Run) -> None:
    result = run(*EXAMPLES, "-vv")
    assert len(explanations(result.outlines)) == 9
    assert "violations: 9 of 9" in result.stdout.str()
    assert sum(line.endswith("%]") and " VIOLATED " in line for line in result.outlines) == 9
    # A test of a suite has no file to point at.
    assert f"{CLONE} VIOLATED" in result.stdout.str()


def test_a_single_test_is_explained_in_full(run: Run) -> None:
    (lines,) = explanations(run(*EXAMPLES, CLONE).outlines)
    text = "\n".join(lines)
    for part in (
        "an option and its identical copy together keep the option's probability",
        "case support-001, question urgency",
        "+ urgency.low_alt: Can wait more than a week",
        "0.2500    0.4000",
        "tv_after_collapse = 0.1500, tolerance 0.05: violated",
        "the decision stays the same",
        f"rerun: pytest --jev-suite=upstream:examples --jev-embedded=uniform '{CLONE}'",
    ):
        assert part in text


def test_a_violated_test_is_a_v_and_violated_never_failed(run: Run) -> None:
    quiet = run(*EXAMPLES)
    progress = next(line for line in quiet.outlines if line.startswith("examples "))
    assert (progress.count("v"), progress.count("F")) == (9, 0)
    assert "FAILURES" not in quiet.stdout.str()
    assert quiet.stdout.str().count("--jev-violations=record lets it pass") == 1


def test_12000_tests_stay_readable(run: Run) -> None:
    # The one long run of these tests (about 15 s): the largest official suite, half of it violated.
    result = run(
        "--jev-suite=upstream:jevbench-240", "--jev-embedded=luce", "--jev-cache=memory", "--jev-bootstrap=0"
    )
    assert result.parseoutcomes() == {"passed": 5663, "violated": 6337}
    assert len(explanations(result.outlines)) == 5
    first = next(i for i, line in enumerate(result.outlines) if "violations: the worst 5 of" in line)
    assert len(result.outlines) - first < 200


# What else is said


def test_a_second_run_says_that_its_answers_are_kept_ones(run: Run) -> None:
    first, second = (run(*EXAMPLES, "--jev-violations=record").outlines for _ in range(2))
    assert "requests: 43 distinct, 43 sent" in first
    note = next(line for line in second if line.startswith("requests: "))
    assert re.fullmatch(
        r"requests: 43 distinct, 1 sent, 42 from the cache \(asked \d{4}-\d\d-\d\d \d\d:\d\d UTC.*\)", note
    )


def test_a_partial_run_says_how_much_is_missing_and_why(run: Run) -> None:
    result = run(*EXAMPLES, "-k", "BAT", "-m", "not batch_solo", "-x")
    assert "partial: 46 of 50 tests were not run (-k 'BAT', -m 'not batch_solo')" in result.outlines
    assert "card: .jevbench-cache/last-partial.json" in result.outlines
    assert "A partial run of examples@jevbench-2: compare nothing but" in result.stdout.str()


def test_the_cards_path_is_printed(run: Run, pytester: pytest.Pytester) -> None:
    result = run(*EXAMPLES, "--jev-card=cards/mine.json")
    assert [line for line in result.outlines if line.startswith("card: ")] == [
        "card: cards/mine.json",
        "card: .jevbench-cache/last-card.json",
    ]
    assert (pytester.path / "cards" / "mine.json").is_file()


# Exit codes


def test_a_run_without_violations_passes(run: Run) -> None:
    result = run(*EXAMPLES, "--jev-tolerance=0.25")
    assert (result.ret, result.parseoutcomes()) == (0, {"passed": 50})
    assert "violations" not in "\n".join(tail(result.outlines))


def test_recorded_violations_are_shown_and_saved_but_pass(run: Run, card_of: Card) -> None:
    result = run(*EXAMPLES, "--jev-violations=record", "-v")
    assert (result.ret, result.parseoutcomes()) == (0, {"passed": 41, "violated": 9})
    assert len(explanations(result.outlines)) == 5
    assert sum(test["violated"] for test in card_of()["tests"]) == 9
    assert "--jev-violations=record lets" not in result.stdout.str()


def test_a_refused_request_is_an_error_that_fails_the_run_where_violations_pass(run: Run, card_of: Card) -> None:
    with Server([answers(), send('{"error": "too long"}', 422)]) as server:
        result = run(EXAMPLES[0], f"--jev-url={server.url}", "--jev-violations=record")
    assert (result.ret, result.parseoutcomes()) == (1, {"passed": 40, "violated": 9, "errors": 1})
    summary = "\n".join(tail(result.outlines))
    assert re.search(r"^1 tests? could not be judged:", summary, re.MULTILINE)
    assert "422" in summary
    assert "too long" in summary
    assert "partial: 1 of 50 tests could not be judged (errors)" in summary
    assert "1 refused" in summary
    (error,) = card_of("last-partial.json")["errors"]
    assert (error["kind"], error["id"]) == ("Refused", "examples::instruction_paraphrase::support-001[primary_team]")


def test_an_error_of_the_model_is_told_once_and_without_a_traceback(run: Run, pytester: pytest.Pytester) -> None:
    pytester.makepyfile(mine=BROKEN.format(error="RuntimeError('out of memory')"))
    result = run(EXAMPLES[0], "--jev-callable=mine:model", "--jev-violations=record")
    assert (result.ret, result.parseoutcomes()["errors"]) == (1, 1)
    output = result.stdout.str()
    assert "out of memory" in output
    assert "mine.py:" in output
    assert "Traceback" not in output
    assert "session.py" not in output


def test_ctrl_c_ends_the_run_with_2_and_keeps_what_was_judged(
    run: Run, card_of: Card, pytester: pytest.Pytester
) -> None:
    pytester.makepyfile(mine=BROKEN.format(error="KeyboardInterrupt"))
    result = run(EXAMPLES[0], "--jev-callable=mine:model")
    assert result.ret == 2
    card = card_of("last-partial.json")
    assert len(card["tests"]) == 5
    assert card["partial"] == ["45 of 50 tests were not run (the run stopped early)"]
    assert "requests: 7 distinct, 7 sent" in "\n".join(result.outlines)


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        ([EXAMPLES[0]], "no model to test"),
        (["--jev-suite=nosuch", EXAMPLES[1]], "there is no suite 'nosuch'"),
        ([EXAMPLES[0], "--jev-url=http://127.0.0.1:9", "--jev-retries=0"], "127.0.0.1:9"),
        ([*EXAMPLES, "--jev-min-n=0"], "--jev-min-n='0' cannot be used: expected an integer from 1"),
    ],
    ids=["no model", "no suite", "no server", "no number"],
)
def test_what_cannot_be_used_is_a_usage_error_before_the_first_test(
    arguments: list[str], said: str, run: Run, pytester: pytest.Pytester
) -> None:
    result = run(*arguments)
    assert result.ret == 4
    error = result.stderr.str()
    assert said in error
    assert "Traceback" not in error + result.stdout.str()
    assert "coherence" not in result.stdout.str()
    assert not (pytester.path / ".jevbench-cache" / "last-card.json").exists()
