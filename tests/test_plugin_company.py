"""Beside other plugins, as a user has them installed: none is switched off here, each is used in a real run."""

from __future__ import annotations

import html
import json
import re
from collections import Counter
from collections.abc import Callable
from typing import Any

import pytest

from server import Server, answers

Card = Callable[..., dict[str, Any]]

EXAMPLES = ("--jev-suite=upstream:examples", "--jev-embedded=uniform")
UNIFORM = {"passed": 41, "violated": 9}

SLOW = """
import time
from pytest_jevbench.model import Request, embedded

calls = 0

def model(state, questions):
    global calls
    calls += 1
    if calls == 3:
        time.sleep(20)
    return embedded("uniform").ask(Request.of(state, questions)).answers
"""


@pytest.fixture
def run(pytester: pytest.Pytester) -> Callable[..., pytest.RunResult]:
    """Run pytest with every plugin that is installed; replaces the lean `run` of conftest.py."""
    return lambda *arguments: pytester.runpytest_subprocess(*arguments, timeout=120)


Run = Callable[..., pytest.RunResult]


def without(card: dict[str, Any], *parts: str) -> dict[str, Any]:
    return {name: value for name, value in card.items() if name not in parts}


def test_the_three_jev_plugins_are_installed_together_without_a_clash(run: Run) -> None:
    helped = run("--help")
    assert helped.ret == 0
    options = re.findall(r"^ +(--jev-[a-z-]+)", helped.stdout.str(), re.MULTILINE)
    assert len(options) == len(set(options))
    assert {"--jev-model", "--jev-threshold", "--jev-record", "--jev-cassette-dir", "--jev-suite"} <= set(options)
    result = run(*EXAMPLES)
    assert result.parseoutcomes() == UNIFORM
    (plugins,) = (line for line in result.outlines if line.startswith("plugins: "))
    for name in ("jev-0", "jevkit-pytest-", "jevbench-", "randomly-", "timeout-", "rerunfailures-", "html-", "cov-"):
        assert name in plugins


@pytest.mark.parametrize("listing", ["--help", "--fixtures", "--markers"])
def test_no_name_is_shared_with_the_other_jev_plugins(listing: str, run: Run) -> None:
    # pytest lets the last fixture, ini value or mark of a name win without a word.
    pattern = re.compile(r"^(?:@pytest\.mark\.| *)((?:--)?jev\w*(?:-[\w-]+)?)", re.MULTILINE)
    ours = set(pattern.findall(run("-p", "no:jev", "-p", "no:jevkit", listing).stdout.str()))
    theirs = set(pattern.findall(run("-p", "no:jevbench", listing).stdout.str()))
    assert theirs
    assert ours & theirs == set()


def test_in_random_order_the_card_is_the_same_and_last_failures_are_found(run: Run, card_of: Card) -> None:
    cards = []
    for seed in ("1", "2"):
        assert run(*EXAMPLES, f"--randomly-seed={seed}").parseoutcomes() == UNIFORM
        cards.append(without(card_of(), "created", "requests"))
    assert cards[0] == cards[1]
    assert run(*EXAMPLES, "--randomly-seed=3", "--lf").parseoutcomes() == {"violated": 9, "deselected": 41}


def test_a_timeout_nobody_reaches_changes_nothing(run: Run) -> None:
    assert run(*EXAMPLES, "--timeout=60").parseoutcomes() == UNIFORM


def test_a_test_that_ran_into_a_timeout_is_an_error_in_the_card(
    run: Run, card_of: Card, pytester: pytest.Pytester
) -> None:
    pytester.makepyfile(slow=SLOW)
    result = run(EXAMPLES[0], "--jev-callable=slow:model", "--timeout=1", "-p", "no:randomly")
    assert result.parseoutcomes() == {"passed": 40, "violated": 9, "errors": 1}
    card = card_of("last-partial.json")
    assert [entry["relation"] for entry in card["errors"]] == ["cross_lingual"]
    assert "Timeout" in card["errors"][0]["message"]
    assert card["partial"] == ["1 of 50 tests could not be judged (errors)"]


def test_rerunfailures_reruns_a_test_that_still_counts_once(run: Run, card_of: Card) -> None:
    result = run(*EXAMPLES, "--reruns=1")
    assert result.ret == 1
    card = card_of()
    assert max(Counter(test["id"] for test in card["tests"]).values()) == 1
    assert len(card["tests"]) == 50
    assert card["requests"]["distinct"] == card["requests"]["sent"] == 43
    assert result.parseoutcomes() == UNIFORM | {"rerun": 9}


def test_an_html_report_holds_every_test_and_counts_violations_as_failures(
    run: Run, pytester: pytest.Pytester
) -> None:
    assert run(*EXAMPLES, "--html=report.html").parseoutcomes() == UNIFORM
    page = (pytester.path / "report.html").read_text(encoding="utf-8")
    blob = re.search(r'data-jsonblob="([^"]*)"', page)
    assert blob is not None
    tests = json.loads(html.unescape(blob[1]))["tests"]
    assert Counter(entries[0]["result"] for entries in tests.values()) == {"Passed": 41, "Failed": 9}
    clone = next(entries[0] for name, entries in tests.items() if "::option_clone::" in name)
    assert "tv_after_collapse is 0.15, tolerance 0.05" in clone["log"]


def test_coverage_of_a_users_model_is_measured(run: Run, pytester: pytest.Pytester) -> None:
    pytester.makepyfile(mine=SLOW.replace("20", "0"))
    result = run(EXAMPLES[0], "--jev-callable=mine:model", "--cov=mine", "--cov-report=term")
    assert result.parseoutcomes() == UNIFORM
    assert any(re.match(r"mine\.py +\d+ +0 +100%", line) for line in result.outlines)


def test_workers_give_the_card_of_a_run_alone_and_count_what_the_server_saw(run: Run, card_of: Card) -> None:
    part = ("--jev-suite=upstream:jevbench-mini", "--jev-domains=logistics,finance_ops", "--jev-min-n=4")
    cards, counts = [], []
    for workers in ("-n0", "-n2"):
        with Server(answers("luce")) as server:
            result = run(*part, f"--jev-url={server.url}", "--jev-per-replica=2", "--jev-cache=memory", workers)
            assert result.ret == 1
            counts.append((result.parseoutcomes(), len(server.requests)))
        cards.append(card_of())
    alone, spread = cards
    assert counts[0][0] == counts[1][0]
    assert [card["requests"]["sent"] for card in cards] == [count for _, count in counts]
    assert alone["requests"]["distinct"] == spread["requests"]["distinct"] == alone["requests"]["sent"]
    for card in cards:
        del card["model"]["replicas"]
    assert without(spread, "created", "requests") == without(alone, "created", "requests")


def test_workers_share_kept_answers_and_run_users_own_tests(
    run: Run, card_of: Card, pytester: pytest.Pytester
) -> None:
    pytester.makepyfile(test_mine="def test_bad() -> None: assert not 'good'")
    for workers in ("-n0", "-n2"):
        result = run(*EXAMPLES, "test_mine.py", workers)
        assert (result.ret, result.parseoutcomes()) == (1, UNIFORM | {"failed": 1})
    assert "choice_indicator (MEA.marginalisation)" in result.stdout.str()
    requests = card_of()["requests"]
    # The opening request is always sent, by the controller.
    assert (requests["distinct"], requests["sent"], requests["cached"]) == (43, 1, 42)


def test_a_test_whose_worker_crashed_is_an_error_in_the_card(
    run: Run, card_of: Card, pytester: pytest.Pytester
) -> None:
    pytester.makepyfile(crash=SLOW.replace("import time", "import os").replace("time.sleep(20)", "os._exit(7)"))
    result = run(EXAMPLES[0], "--jev-callable=crash:model", "-n1", "-p", "no:randomly", "-k", "REP.type")
    assert result.ret == 1
    card = card_of("last-partial.json")
    assert [entry["relation"] for entry in card["errors"]] == ["noul_as_score"]
    assert "crashed" in card["errors"][0]["message"]
    assert "1 of 50 tests could not be judged (errors)" in card["partial"]


def test_under_workers_an_unusable_model_ends_the_run_before_it_starts(run: Run) -> None:
    result = run(EXAMPLES[0], "--jev-embedded=nobody", "-n2")
    assert result.ret == 4
    assert "there is no embedded model 'nobody'" in result.stderr.str()
    assert "Traceback" not in result.stderr.str()
