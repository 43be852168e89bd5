"""Under pytest-xdist: the same verdicts, each request once, a case on one worker, and slots shared out."""

from __future__ import annotations

import json
import re
import socket
import subprocess
import sys
import time
from collections import defaultdict
from collections.abc import Callable
from typing import Any

import pytest

from server import Server, answers, late

Run = Callable[..., pytest.RunResult]
Card = Callable[..., dict[str, Any]]
MINI = ("--jev-suite=upstream:jevbench-mini", "--jev-violations=record", "-p", "no:anyio")
EXAMPLES = ("--jev-suite=upstream:examples", "--jev-violations=record")


def comparable(card: dict[str, Any]) -> dict[str, Any]:
    """A card without what may differ between two runs with the same answers."""
    kept = {name: value for name, value in card.items() if name not in ("created", "environment", "requests")}
    kept["model"] = {name: value for name, value in card["model"].items() if name != "replicas"}
    return kept | {"distinct": card["requests"]["distinct"]}


def test_the_whole_mini_is_sent_once_with_any_number_of_workers(run: Run, card_of: Card) -> None:
    cards = []
    for workers in ("-n0", "-n2", "-n4"):
        with Server(answers(by="luce")) as one, Server(answers(by="luce")) as two:
            result = run(
                *MINI, f"--jev-url={one.url},{two.url}", "--jev-per-replica=2", f"--jev-cache=kept{workers}", workers
            )
            assert result.ret == 0, result.stdout.str()
            received = [request.raw for request in one.requests + two.requests]
            assert len(received) == len(set(received)) == 1248
            assert max(one.most_at_once, two.most_at_once) <= 2
        card = json.loads((result_folder(card_of, workers)).read_text())
        assert card["requests"]["sent"] == 1248
        assert card["requests"]["cached"] == 0
        cards.append(comparable(card))
    assert cards[0] == cards[1] == cards[2]


def result_folder(card_of: Card, workers: str) -> Any:
    """Return where the card of a run lies; `card_of` only reads the default folder."""
    from pathlib import Path

    del card_of
    return Path.cwd() / f"kept{workers}" / "last-card.json"


def test_a_warm_cache_is_shared_by_workers(run: Run, card_of: Card) -> None:
    with Server(answers(by="luce")) as server:
        for expected in ((43, 0), (1, 42)):
            run(*EXAMPLES, f"--jev-url={server.url}", "--jev-per-replica=2", "-n2")
            requests = card_of()["requests"]
            assert (requests["distinct"], requests["sent"], requests["cached"]) == (43, *expected)


@pytest.mark.parametrize(("options", "workers"), [(["--jev-per-replica=2"], 2), (["--jev-per-replica=1"], 1)])
def test_n_auto_is_one_worker_a_slot(run: Run, options: list[str], workers: int) -> None:
    with Server(answers()) as server:
        result = run(*EXAMPLES, f"--jev-url={server.url}", *options, "-n", "auto")
    result.stdout.fnmatch_lines([f"created: {workers}/{workers} worker*"])


def test_more_workers_than_slots_is_a_usage_error_with_two_ways_out(run: Run) -> None:
    with Server(answers()) as server:
        result = run(*EXAMPLES, f"--jev-url={server.url}", "-n2")
    assert result.ret == 4
    assert server.requests == []
    result.stderr.fnmatch_lines(["ERROR: -n 2: the model has 1 slots*Use -n 1*--jev-url*--jev-per-replica*"])


def test_the_tests_of_a_case_run_on_one_worker(run: Run, pytester: pytest.Pytester) -> None:
    pytester.makeconftest(
        """
        import os, pytest
        def pytest_runtest_setup(item):
            with open(f"ran-{os.environ['PYTEST_XDIST_WORKER']}.txt", "a") as log:
                log.write(item.nodeid + "\\n")
        """
    )
    run(*MINI, "--jev-embedded=uniform", "--jev-cache=memory", "-n2")
    places = defaultdict(set)
    for path in pytester.path.glob("ran-*.txt"):
        for line in path.read_text().splitlines():
            places[line.split("::")[2].partition("[")[0]].add(path.name)
    assert len(places) == 240
    assert all(len(workers) == 1 for workers in places.values())
    assert {name for workers in places.values() for name in workers} == {"ran-gw0.txt", "ran-gw1.txt"}


CRASHING = """
import os
from pytest_jevbench.model import Request, embedded

def answer(state, questions):
    if len(questions) == 1:
        os._exit(9)
    return embedded("uniform").ask(Request.of(state, questions)).answers
"""


def test_a_test_that_crashes_its_worker_loses_only_itself(run: Run, card_of: Card, pytester: pytest.Pytester) -> None:
    pytester.makepyfile(crashing=CRASHING)
    result = run(*EXAMPLES, "--jev-callable=crashing:answer", "-n2")
    assert result.ret == 1
    card = card_of("last-partial.json")
    assert [entry["relation"] for entry in card["errors"]] == ["batch_solo"]
    assert "crashed" in card["errors"][0]["message"]
    assert len(card["tests"]) == 49


def test_a_model_of_the_process_exists_once_in_each_worker(run: Run, pytester: pytest.Pytester) -> None:
    pytester.makepyfile(
        heavy="""
        import os
        from pytest_jevbench.model import Request, embedded

        with open(f"loaded-{os.environ.get('PYTEST_XDIST_WORKER', 'controller')}", "x"):
            pass

        def answer(state, questions):
            return embedded("uniform").ask(Request.of(state, questions)).answers
        """
    )
    assert run(*EXAMPLES, "--jev-callable=heavy:answer", "-n2").ret == 0
    assert {path.name for path in pytester.path.glob("loaded-*")} == {"loaded-gw0", "loaded-gw1"}


def test_a_crashed_workers_slots_go_to_its_replacement(run: Run, pytester: pytest.Pytester) -> None:
    pytester.makeconftest(
        """
        import os
        def pytest_runtest_call(item):
            if "::batch_solo::" in item.nodeid:
                os._exit(9)
        """
    )
    with Server(late(0.005, answers())) as one, Server(late(0.005, answers())) as two:
        result = run(*EXAMPLES, f"--jev-url={one.url},{two.url}", "-n2")
        assert max(one.most_at_once, two.most_at_once) == 1
        assert len(one.requests) + len(two.requests) > 20
    assert result.ret == 1
    result.stdout.fnmatch_lines(["replacing crashed worker *"])


def test_a_budget_is_shared_by_workers(run: Run) -> None:
    with Server(answers()) as server:
        result = run(*MINI, f"--jev-url={server.url}", "--jev-per-replica=2", "--jev-max-requests=101", "-n2")
        assert result.ret == 1
        # The controller's opening request counts, too.
        assert 90 <= len(server.requests) <= 101


def test_users_tests_run_beside_the_suite_on_workers(run: Run, pytester: pytest.Pytester) -> None:
    pytester.makepyfile(
        "def test_mine(): ...\ndef test_clones(jev_option_clone): assert jev_option_clone.deviation >= 0"
    )
    result = run(*EXAMPLES, "--jev-embedded=uniform", "-n2", ".")
    counts = result.parseoutcomes()
    assert counts["passed"] + counts["violated"] == 52


def test_a_remote_worker_gives_the_same_scores(run: Run, card_of: Card, pytester: pytest.Pytester) -> None:
    import execnet.script.socketserver as script

    with socket.create_server(("127.0.0.1", 0)) as free:
        address = f"127.0.0.1:{free.getsockname()[1]}"
    command = [sys.executable, str(script.__file__), address]
    with subprocess.Popen(command, cwd=pytester.path, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL) as remote:
        try:
            deadline = time.monotonic() + 20
            while not listens(address) and time.monotonic() < deadline:
                time.sleep(0.05)
            with Server(answers()) as server:
                result = run(*EXAMPLES, f"--jev-url={server.url}", f"--tx=socket={address}", "--dist=load")
        finally:
            remote.kill()
    assert result.ret == 0
    assert card_of()["scores"]["overall"] == pytest.approx(0.894, abs=0.001)
    # A worker elsewhere has a cache of its own: it sends the opening request once more.
    assert re.search(r"43 distinct, 44 sent", result.stdout.str())


def listens(address: str) -> bool:
    host, port = address.split(":")
    try:
        socket.create_connection((host, int(port)), timeout=1).close()
    except OSError:
        return False
    return True


LOGISTICS = ("--jev-suite=upstream:jevbench-mini", "--jev-domains=logistics", "--jev-violations=record")
"""100 tests on 20 cases: 104 distinct requests."""


def test_tests_that_crash_every_worker_lose_only_themselves_wherever_they_stand(
    run: Run, card_of: Card, pytester: pytest.Pytester
) -> None:
    """One of the two is the last but two of its worker: what is left is too little for a worker to begin."""
    pytester.makepyfile(
        crashing="""
        import os
        from pytest_jevbench.model import Request, embedded

        def answer(state, questions):
            with open("asked.txt", "a") as log:
                log.write(f"{len(questions)}\\n")
            if any("exception_type__not_" in key for key in questions):
                os._exit(9)
            return embedded("uniform").ask(Request.of(state, questions)).answers
        """
    )
    assert run(*LOGISTICS, "--jev-callable=crashing:answer", "-n2").ret == 1
    card = card_of("last-partial.json")
    assert {entry["relation"] for entry in card["errors"]} == {"choice_complement"}
    assert len(card["errors"]) == 2
    assert all(entry["message"].startswith("the test ended without a verdict: ") for entry in card["errors"])
    assert len(card["tests"]) == 98
    # What a worker counted before it crashed is not lost with it: at most what the crashed tests themselves asked.
    asked = len((pytester.path / "asked.txt").read_text().splitlines())
    assert asked - 2 * 2 <= card["requests"]["sent"] <= asked
    assert card["requests"]["distinct"] >= 104 - 2 * 2


def test_a_budget_holds_for_the_controller_and_its_workers_together(run: Run, card_of: Card) -> None:
    for budget in (1, 2, 20):
        with Server(answers()) as server:
            options = ("--jev-per-replica=2", f"--jev-max-requests={budget}", "--jev-cache=memory", "-n2")
            assert run(*LOGISTICS, f"--jev-url={server.url}", *options).ret == 1
        assert len(server.requests) <= budget
        card = card_of("last-partial.json")
        assert card["requests"]["sent"] == len(server.requests)
        assert {entry["kind"] for entry in card["errors"]} == {"BudgetSpent"}


HOOK = """
from pytest_jevbench.model.systemone import systemone

def pytest_jev_model(config):
    return [systemone(url) for url in {urls!r}]
"""


def test_workers_share_the_slots_of_a_served_model_that_a_hook_gives(
    run: Run, card_of: Card, pytester: pytest.Pytester
) -> None:
    with Server(late(0.01, answers())) as one, Server(late(0.01, answers())) as two:
        pytester.makeconftest(HOOK.format(urls=[one.url, two.url]))
        assert run(*LOGISTICS, "-n2").ret == 0
    assert (one.most_at_once, two.most_at_once) == (1, 1)
    assert len(one.requests) + len(two.requests) == card_of()["requests"]["sent"] <= 104 + 1


def test_more_workers_than_a_hooks_model_has_slots_is_a_usage_error(run: Run, pytester: pytest.Pytester) -> None:
    with Server(answers()) as server:
        pytester.makeconftest(HOOK.format(urls=[server.url]))
        result = run(*LOGISTICS, "-n2")
    assert result.ret == 4
    assert "the model has 1 slots" in result.stderr.str()
    assert server.most_at_once <= 1


def test_workers_of_several_kinds_ask_nothing_twice(run: Run, card_of: Card) -> None:
    with Server(late(0.005, answers())) as server:
        options = (f"--jev-url={server.url}", "--jev-per-replica=3", "--dist=load", "--tx=2*popen", "--tx=popen")
        assert run(*LOGISTICS, *options).ret == 0
    assert len(server.requests) == len({request.raw for request in server.requests}) == 104
    assert card_of()["requests"]["sent"] == 104
