"""Whole runs against servers that misbehave: what was judged is kept, nothing is invented, nothing is sent twice."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest

from conftest import LEAN
from server import CLOSE, RESET, Behaviour, End, Received, Server, answers, cut, late, proper, reset, send

Run = Callable[..., pytest.RunResult]
Card = Callable[..., dict[str, Any]]
EXAMPLES = "--jev-suite=upstream:examples"
RECORD = "--jev-violations=record"


def deviations(card: dict[str, Any]) -> dict[str, float]:
    return {test["id"]: test["deviation"] for test in card["tests"]}


@pytest.fixture(scope="module")
def calm(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Any]:
    """The card of an undisturbed run of the examples."""
    folder = tmp_path_factory.mktemp("calm")
    command = [sys.executable, "-m", "pytest", *LEAN, EXAMPLES, RECORD, "--jev-embedded=luce"]
    subprocess.run(command, cwd=folder, check=True, capture_output=True)
    card: dict[str, Any] = json.loads((folder / ".jevbench-cache" / "last-card.json").read_text())
    return card


def stormy(received: Received, seen: dict[bytes, int]) -> Iterator[bytes | float | End]:
    """Fail about every third request at its first try, each time in another way."""
    tries = seen[received.raw] = seen.get(received.raw, -1) + 1
    kinds: list[Behaviour] = [
        send("slow down", 429, retry_after="0.01"),
        send("busy", 503, retry_after="0"),
        reset,
        cut(CLOSE),
        cut(RESET),
        send("{not json"),
    ]
    if received.number > 0 and tries == 0 and received.number % 3 == 0:
        return kinds[received.number // 3 % len(kinds)](received)
    return iter([proper(received, by="luce")])


def test_a_storm_changes_no_score_of_the_whole_mini(run: Run, card_of: Card) -> None:
    mini = ("--jev-suite=upstream:jevbench-mini", RECORD, "--jev-cache=memory")
    assert run(*mini, "--jev-embedded=luce").ret == 0
    calm = card_of()
    seen: dict[bytes, int] = {}
    with Server(lambda received: stormy(received, seen)) as server:
        # Many in flight, or the pauses before second tries would take minutes.
        assert run(*mini, f"--jev-url={server.url}", "--jev-per-replica=24").ret == 0
    card = card_of()
    assert deviations(card) == deviations(calm)
    assert card["scores"] == calm["scores"]
    requests = card["requests"]
    assert requests["sent"] == requests["distinct"] == 1248
    assert sum(requests["retries"].values()) == requests["attempts"] - 1248 == len(server.requests) - 1248 > 300
    assert {"429", "503", "reset", "invalid JSON"} <= set(requests["retries"])


def dying(after: int) -> Behaviour:
    """Answer so many requests, then refuse every connection from then on (as far as a listening socket can)."""
    return lambda received: answers(by="luce")(received) if received.number < after else reset(received)


def test_a_server_that_dies_ends_the_run_and_what_was_judged_is_kept(run: Run, card_of: Card) -> None:
    part = ("--jev-suite=upstream:jevbench-mini", "--jev-groups=BAT.isolation", RECORD)
    assert run(*part, "--jev-embedded=luce", "--jev-cache=memory").ret == 0
    whole = card_of()
    with Server(dying(60)) as server:
        started = time.monotonic()
        result = run(*part, f"--jev-url={server.url}", "--jev-retries=1")
        assert time.monotonic() - started < 30
    assert result.ret == 1
    card = card_of("last-partial.json")
    assert card["scores"]["overall"] is None
    assert len(card["tests"]) > 20
    assert deviations(card).items() <= deviations(whole).items()
    assert 25 <= len(card["errors"]) <= 30
    assert len(card["tests"]) + len(card["errors"]) < 120
    assert any("the model died: 25 tests in a row" in reason for reason in card["partial"])
    with Server(answers(by="luce")) as server:
        assert run(*part, f"--jev-url={server.url}").ret == 0
        # The opening request once more, and what is missing: nothing that was answered before.
        assert len(server.requests) == 1 + whole["requests"]["distinct"] - 60
    assert deviations(card_of()) == deviations(whole)


def test_a_killed_run_goes_on_where_it_was(pytester: pytest.Pytester, run: Run, card_of: Card) -> None:
    with Server(late(0.03, answers(by="luce"))) as server:
        command = [sys.executable, "-m", "pytest", *LEAN, EXAMPLES, RECORD, f"--jev-url={server.url}"]
        with subprocess.Popen(command, cwd=pytester.path, stdout=subprocess.DEVNULL) as process:
            deadline = time.monotonic() + 30
            while len(server.requests) < 25 and time.monotonic() < deadline:
                time.sleep(0.01)
            process.kill()
        before = {request.raw for request in server.requests}
        sent = len(server.requests)
        assert run(EXAMPLES, RECORD, f"--jev-url={server.url}").ret == 0
        again = [request.raw for request in server.requests[sent:]]
    assert card_of()["requests"]["distinct"] == 43
    assert len(again) == len(set(again))
    # One is the opening request; the others were in flight or not yet written at the kill.
    assert len(before & set(again)) <= 4


@pytest.mark.parametrize("signalled", ["SIGINT", "-x"])
def test_ending_early_keeps_what_was_judged(pytester: pytest.Pytester, card_of: Card, signalled: str) -> None:
    arguments = ["-x"] if signalled == "-x" else [RECORD]
    with Server(late(0.05, answers(by="luce"))) as server:
        command = [sys.executable, "-m", "pytest", *LEAN, EXAMPLES, f"--jev-url={server.url}", *arguments]
        with subprocess.Popen(command, cwd=pytester.path, stdout=subprocess.PIPE, text=True) as process:
            if signalled == "SIGINT":
                deadline = time.monotonic() + 30
                while len(server.requests) < 20 and time.monotonic() < deadline:
                    time.sleep(0.01)
                process.send_signal(signal.SIGINT)
            output, _ = process.communicate(timeout=30)
    assert process.returncode == (2 if signalled == "SIGINT" else 1), output
    card = card_of("last-partial.json")
    assert 0 < len(card["tests"]) < 50
    assert "the run stopped early" in card["partial"][0]
    # What was fetched ahead is bounded: a few requests for the one slot.
    assert len(server.requests) < 43


def test_a_stuck_request_does_not_delay_the_exit(pytester: pytest.Pytester) -> None:
    script = [answers(by="luce"), late(60, answers())]
    with Server(script) as server:
        command = [sys.executable, "-m", "pytest", *LEAN, EXAMPLES, f"--jev-url={server.url}"]
        with subprocess.Popen(command, cwd=pytester.path, stdout=subprocess.DEVNULL) as process:
            deadline = time.monotonic() + 30
            while len(server.requests) < 2 and time.monotonic() < deadline:
                time.sleep(0.01)
            started = time.monotonic()
            process.send_signal(signal.SIGINT)
            process.wait(30)
            assert time.monotonic() - started < 10


def test_a_budget_bounds_what_is_sent_and_a_rerun_goes_on(run: Run, card_of: Card) -> None:
    with Server(answers(by="luce")) as server:
        result = run(EXAMPLES, RECORD, f"--jev-url={server.url}", "--jev-max-requests=20")
        assert len(server.requests) == 20
        assert result.ret == 1
        card = card_of("last-partial.json")
        assert {entry["kind"] for entry in card["errors"]} == {"BudgetSpent"}
        assert all("budget spent" in entry["message"] for entry in card["errors"])
        assert len(card["tests"]) + len(card["errors"]) == 50
        assert run(EXAMPLES, RECORD, f"--jev-url={server.url}").ret == 0
        assert len(server.requests) == 20 + 1 + 23


def test_requests_are_paced(run: Run) -> None:
    moments: list[float] = []

    def noting(received: Received) -> Iterator[bytes | float | End]:
        moments.append(time.monotonic())
        return iter([proper(received)])

    with Server(noting) as server:
        run(
            EXAMPLES, RECORD, f"--jev-url={server.url}", "--jev-min-interval=0.1", "--jev-groups=REP.type"
        ).assert_outcomes(passed=2)
    gaps = [after - before for before, after in pairwise(moments)]
    assert len(gaps) == 2
    assert min(gaps) > 0.08


@pytest.mark.parametrize(("replicas", "per_replica"), [(1, 1), (1, 3), (3, 1), (2, 2)])
def test_no_replica_has_more_in_flight_than_it_may_and_no_score_changes(
    run: Run, card_of: Card, calm: dict[str, Any], replicas: int, per_replica: int
) -> None:
    servers = [Server(late(0.01, answers(by="luce"))) for _ in range(replicas)]
    for server in servers:
        server.__enter__()
    try:
        urls = ",".join(server.url for server in servers)
        result = run(EXAMPLES, RECORD, f"--jev-url={urls}", f"--jev-per-replica={per_replica}", "--jev-cache=memory")
    finally:
        for server in servers:
            server.__exit__()
    assert result.ret == 0
    assert deviations(card_of()) == deviations(calm)
    assert sum(len(server.requests) for server in servers) == 43
    assert all(1 <= server.most_at_once <= per_replica for server in servers)


def test_a_dead_replica_is_left_aside_and_named(run: Run, card_of: Card, calm: dict[str, Any]) -> None:
    with Server(answers(by="luce")) as good, Server(dying(5)) as bad:
        urls = f"{good.url},{bad.url}"
        result = run(EXAMPLES, RECORD, f"--jev-url={urls}", "--jev-retries=0", "--jev-cache=memory")
    assert result.ret == 0
    assert deviations(card_of()) == deviations(calm)
    result.stdout.fnmatch_lines([f"*replica {bad.url} was left aside * times*"])


def test_a_change_of_the_answering_model_is_noted(run: Run, card_of: Card) -> None:
    def changing(received: Received) -> Iterator[bytes | float | End]:
        return iter([proper(received, model="v1" if received.number < 30 else "v2")])

    with Server(changing) as server:
        result = run(EXAMPLES, RECORD, f"--jev-url={server.url}", "--jev-model-id=v1")
    result.stdout.fnmatch_lines(["*answers came from more than one model: v1 (30), v2 (13)*"])
    assert card_of()["model"]["answered_as"] == ["v1", "v2"]


def test_tokens_and_latencies_are_in_the_card(run: Run, card_of: Card) -> None:
    usage = {"input_tokens": 10, "output_tokens": 2}
    with Server(late(0.01, answers(usage=usage))) as server:
        run(EXAMPLES, RECORD, f"--jev-url={server.url}")
    requests = card_of()["requests"]
    assert requests["tokens"] == {"input_tokens": 430, "output_tokens": 86}
    latency = requests["latency_ms"]
    assert 10 <= latency["p50"] <= latency["p95"] <= latency["max"] < 5000


KEY = "sk-geheim-8f3a91"
FAULTS: dict[str, Behaviour] = {
    "none": answers(),
    "echoed in a refusal": lambda received: send(received.headers["authorization"], 400)(received),
    "echoed as JSON": lambda received: send(json.dumps({"error": received.headers}), 500)(received),
    "echoed as an answer": lambda received: send(json.dumps({"answers": {"q": received.headers}}))(received),
    "echoed as the model": lambda received: iter([proper(received, model=received.headers["authorization"])]),
    "reset": reset,
    "cut": cut(CLOSE),
}


@pytest.mark.parametrize("fault", FAULTS)
def test_the_key_is_nowhere(run: Run, pytester: pytest.Pytester, monkeypatch: pytest.MonkeyPatch, fault: str) -> None:
    monkeypatch.setenv("JEVBENCH_API_KEY", KEY)
    script = lambda received: answers()(received) if received.number < 3 else FAULTS[fault](received)  # noqa: E731
    with Server(script) as server:
        result = run(
            EXAMPLES,
            "-vv",
            f"--jev-url={server.url}",
            "--jev-retries=0",
            "--jev-groups=REP.type,BAT.isolation",
            "--junitxml=junit.xml",
        )
    assert server.requests[0].headers["authorization"] == f"Bearer {KEY}"
    assert KEY not in result.stdout.str() + result.stderr.str()
    for path in Path(pytester.path).rglob("*"):
        if path.is_file():
            assert KEY.encode() not in path.read_bytes(), path


def test_a_run_that_is_no_terminal_shows_a_heartbeat(pytester: pytest.Pytester) -> None:
    conftest = """
        from pytest_jevbench import progress
        progress.HEARTBEAT = 0.2
    """
    pytester.makeconftest(conftest)
    with Server(late(0.1, answers())) as server:
        result = pytester.runpytest_subprocess(
            *LEAN, EXAMPLES, RECORD, f"--jev-url={server.url}", "--jev-groups=MEA.partition"
        )
    result.stdout.fnmatch_lines(["jevbench: * of 8 tests, * violated, * requests sent, */s*"])


@pytest.mark.skipif(sys.platform == "win32", reason="a pseudo-terminal")
def test_a_terminal_shows_one_line_that_is_rewritten(pytester: pytest.Pytester) -> None:
    import pty

    command = [
        sys.executable,
        "-m",
        "pytest",
        *LEAN,
        EXAMPLES,
        RECORD,
        "--jev-embedded=uniform",
        "--jev-cache=memory",
    ]
    controller, terminal = pty.openpty()
    chunks: list[bytes] = []

    def read() -> None:
        try:
            while chunk := os.read(controller, 65536):
                chunks.append(chunk)
        except OSError:  # the other end is closed
            return

    reader = threading.Thread(target=read)
    reader.start()
    subprocess.run(command, cwd=pytester.path, stdout=terminal, stderr=terminal, check=True, timeout=60)
    os.close(terminal)
    reader.join(10)
    os.close(controller)
    output = b"".join(chunks).decode()
    assert "50 of 50 tests, 9 violated, 43 requests sent" in output
    assert "coherence  89.4" in output
    assert "....." not in output


MORTAL = """
import os, sys, threading, time
sys.path.insert(0, {folder!r})
from server import Server, answers

def behave(received):
    if received.number >= {after}:
        print(time.time(), flush=True)
        os._exit(1)
    return answers(by="luce")(received)

with Server(behave) as server:
    print(server.url, flush=True)
    threading.Event().wait(120)
"""


@pytest.mark.parametrize("options", [[], ["--jev-per-replica=4"], ["--jev-per-replica=2", "-n2"]])
def test_a_server_whose_process_dies_is_not_asked_through_the_whole_plan(
    run: Run, card_of: Card, mini_run: Path, options: list[str]
) -> None:
    """Its port is closed, so every connection is refused at once: no time passes that would bound what is asked."""
    command = [sys.executable, "-c", MORTAL.format(folder=str(Path(__file__).parent), after=30)]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as server:
        assert server.stdout is not None
        url = server.stdout.readline().strip()
        result = run("--jev-suite=upstream:jevbench-mini", RECORD, f"--jev-url={url}", *options)
        ended = time.time()
        died = float(server.stdout.readline())
    assert ended - died < 30
    assert result.ret == 1
    card = card_of("last-partial.json")
    assert card["scores"]["overall"] is None
    assert any("the model died: 25 tests in a row" in reason for reason in card["partial"])
    whole = json.loads((mini_run / ".jevbench-cache" / "last-card.json").read_text(encoding="utf-8"))
    assert len(card["tests"]) > 10
    assert deviations(card).items() <= deviations(whole).items()
    # 30 were answered; the rest is what 25 tests asked for and what was fetched ahead of them, not all 1,248.
    assert card["requests"]["distinct"] <= card["requests"]["sent"] < 200


LOGISTICS = ("--jev-suite=upstream:jevbench-mini", "--jev-domains=logistics", RECORD)


def test_a_warm_run_that_ends_early_counts_what_it_asked_for_and_no_more(run: Run, card_of: Card) -> None:
    with Server(answers(by="luce")) as server:
        assert run(*LOGISTICS, f"--jev-url={server.url}").ret == 0
        result = run(*LOGISTICS[:2], "-x", f"--jev-url={server.url}")
    assert result.ret == 1
    requests = card_of("last-partial.json")["requests"]
    assert requests["sent"] == 1
    assert requests["cached"] + 1 == requests["distinct"] < 104


def test_a_run_that_is_killed_with_several_in_flight_loses_only_those(
    pytester: pytest.Pytester, run: Run, card_of: Card
) -> None:
    options = (*LOGISTICS, "--jev-per-replica=4")
    with Server(late(0.03, answers(by="luce"))) as server:
        command = [sys.executable, "-m", "pytest", *LEAN, *options, f"--jev-url={server.url}"]
        with subprocess.Popen(command, cwd=pytester.path, stdout=subprocess.DEVNULL) as process:
            deadline = time.monotonic() + 30
            while len(server.requests) < 60 and time.monotonic() < deadline:
                time.sleep(0.005)
            process.kill()
        before = {request.raw for request in server.requests}
        sent = len(server.requests)
        assert run(*options, f"--jev-url={server.url}").ret == 0
        again = [request.raw for request in server.requests[sent:]]
    assert 60 <= len(before) < 104
    assert len(again) == len(set(again))
    # One is the opening request, four were in flight; answers that came together may not yet have been written.
    assert len(before & set(again)) <= 1 + 4 + 4
    assert before | set(again) == {request.raw for request in server.requests}
    assert card_of()["requests"]["distinct"] == len(before | set(again)) == 104


def test_ctrl_c_ends_workers_with_stuck_requests_and_keeps_what_was_judged(
    pytester: pytest.Pytester, card_of: Card
) -> None:
    def stuck(received: Received) -> Iterator[bytes | float | End]:
        return (answers() if received.number < 30 else late(60, answers()))(received)

    with Server(stuck) as server:
        command = [sys.executable, "-m", "pytest", *LEAN, *LOGISTICS, f"--jev-url={server.url}"]
        command += ["--jev-per-replica=2", "-n2"]
        with subprocess.Popen(
            command, cwd=pytester.path, stdout=subprocess.PIPE, text=True, start_new_session=True
        ) as process:
            deadline = time.monotonic() + 30
            while len(server.requests) < 32 and time.monotonic() < deadline:
                time.sleep(0.01)
            pressed = time.monotonic()
            # As a terminal does: to the controller and its workers.
            os.killpg(process.pid, signal.SIGINT)
            output, _ = process.communicate(timeout=30)
    assert time.monotonic() - pressed < 5
    assert process.returncode == 2, output
    card = card_of("last-partial.json")
    assert 0 < len(card["tests"]) < 100
    assert "the run stopped early" in card["partial"][0]


def test_the_key_is_nowhere_under_workers(
    run: Run, pytester: pytest.Pytester, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("JEVBENCH_API_KEY", KEY)

    def echoing(received: Received) -> Iterator[bytes | float | End]:
        if received.number % 10 == 3:
            return send(json.dumps({"error": received.headers}), 400)(received)
        return iter([proper(received, model=received.headers["authorization"])])

    with Server(echoing) as server:
        options = (f"--jev-url={server.url}", "--jev-per-replica=2", "-n2", "-vv", "--jev-card=card.json")
        result = run(*LOGISTICS, *options, "--junitxml=junit.xml", "--tb=long", "-l")
    assert {request.headers["authorization"] for request in server.requests} == {f"Bearer {KEY}"}
    assert "Refused" in result.stdout.str()
    assert KEY not in result.stdout.str() + result.stderr.str()
    files = [path for path in Path(pytester.path).rglob("*") if path.is_file()]
    assert {"card.json", "junit.xml", "answers.sqlite"} <= {path.name for path in files}
    assert [path for path in files if KEY.encode() in path.read_bytes()] == []
