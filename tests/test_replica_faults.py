"""What once went wrong between slots: lost wake-ups, doubled pauses, answers in the nick of time."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable
from concurrent.futures import CancelledError, Future
from typing import Any

import pytest

from pytest_jevbench.cache import MemoryStore
from pytest_jevbench.client import Client
from pytest_jevbench.errors import AskError, ModelError
from pytest_jevbench.model import Reply, Request, embedded
from pytest_jevbench.replicas import NOW, Pool

QUESTIONS: dict[str, Any] = {"q": {"type": "noul", "instructions": "Is it?"}}


class Served:
    lasting = True
    url = "http://127.0.0.1:1/v1/systemone"
    id, revision = "mine", ""

    def __init__(self, do: Callable[[], object] = lambda: None, name: str = "mine") -> None:
        self.do, self.name = do, name
        self.asked: list[Any] = []

    def ask(self, request: Request) -> Reply:
        self.asked.append(request.state)
        self.do()
        return Reply(embedded("luce").ask(request).answers, self.id)

    def close(self) -> None:
        pass


def unreachable() -> None:
    error = ModelError("the server cannot be reached")
    error.unreachable = True
    raise error


def submit(pool: Pool, work: Callable[[Any], Any]) -> Future[Any]:
    future: Future[Any] = Future()
    pool.submit(work, future, NOW)
    return future


def work(model: Any) -> str:
    model.ask(Request.of("s", QUESTIONS))
    return str(model.name)


def in_thread(run: Callable[[], Any]) -> Future[Any]:
    future: Future[Any] = Future()

    def go() -> None:
        try:
            future.set_result(run())
        except BaseException as broken:  # noqa: BLE001 - handed to the thread that waits
            future.set_exception(broken)

    threading.Thread(target=go, daemon=True).start()
    return future


def until(true: Callable[[], bool], seconds: float = 5) -> bool:
    end = time.monotonic() + seconds
    while not true() and time.monotonic() < end:
        time.sleep(0.005)
    return true()


def one_aside(pause: float = 20.0) -> tuple[Pool, Served, Served, list[int]]:
    """The first replica has failed and is aside for `pause`; the second answers."""
    failed, down = threading.Event(), [1]

    def fail() -> None:
        if down:
            failed.set()
            unreachable()

    first, second = Served(fail, "first"), Served(lambda: failed.wait(5), "second")
    pool = Pool([first, second])
    for replica in pool._replicas:
        replica.pause = pause
    assert [future.result(5) for future in [submit(pool, work) for _ in range(2)]] == ["second"] * 2
    return pool, first, second, down


def test_lost_wakeup() -> None:
    pool, *_ = one_aside()
    for _ in range(20):
        assert submit(pool, work).result(20) == "second"
        time.sleep(0.005)


def test_lost_wakeup_is_what_notify_does(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(threading.Condition, "notify", lambda self, n=1: _notify(self, 1000))  # noqa: ARG005 - called with a number
    pool, *_ = one_aside()
    for _ in range(20):
        assert submit(pool, work).result(20) == "second"
        time.sleep(0.005)


_notify = threading.Condition.notify


def test_last_live_dies_while_the_other_is_back() -> None:
    pool, _, second, down = one_aside()
    down.clear()
    second.do = unreachable
    with_all = [submit(pool, work) for _ in range(2)]  # two, so that a lost wakeup is no excuse
    assert [future.result(5) for future in with_all] == ["first"] * 2


def test_slots_that_fail_together_double_the_pause() -> None:
    together, opened = threading.Barrier(6), threading.Event()

    def fail() -> None:
        together.wait(5)
        unreachable()

    pool = Pool([Served(fail), Served(lambda: opened.wait(5))], [6, 1])
    futures = [submit(pool, work) for _ in range(7)]
    assert until(lambda: pool._replicas[0].times_aside == 1)
    opened.set()
    assert all(future.result(5) for future in futures)
    assert pool._replicas[0].pause == 1.0


def test_dropped_counts_as_sent() -> None:
    opened = threading.Event()
    model = Served(lambda: opened.wait(5))
    client = Client([model], MemoryStore(), budget=3)
    for state in "abc":
        client.fetch_ahead(state, QUESTIONS)
    assert until(lambda: model.asked == ["a"])
    client.pool.drop_ahead()
    opened.set()
    for state in "abd":
        client.ask(state, QUESTIONS)
    assert client.statistics.sent == 3


def test_queued_behind_a_stuck_one_at_close() -> None:
    opened = threading.Event()
    client = Client([Served(lambda: opened.wait(5))], MemoryStore())
    client.fetch_ahead("a", QUESTIONS)
    waiting = in_thread(lambda: client.ask("b", QUESTIONS))
    assert until(lambda: len(client.pool._jobs) == 1)
    client.close()
    with pytest.raises((AskError, CancelledError)):
        waiting.result(20)


def test_ask_after_close_hangs() -> None:
    client = Client([Served()], MemoryStore())
    client.close()
    with pytest.raises((AskError, CancelledError)):
        in_thread(lambda: client.ask("s", QUESTIONS)).result(20)


def test_all_dead_is_one_failure() -> None:
    models = Served(unreachable), Served(unreachable)
    client = Client(models, MemoryStore())
    for _ in range(3):
        with pytest.raises(ModelError):
            client.ask("s", QUESTIONS)
    assert (client.statistics.sent, client.statistics.failed) == (1, 1)


def test_timeout_race(monkeypatch: pytest.MonkeyPatch) -> None:
    class Close(Future[Any]):
        late = True

        def result(self, timeout: float | None = None) -> Any:
            if self.late and timeout is not None:
                self.late = False
                super().result(5)
                raise TimeoutError
            return super().result(timeout)

    monkeypatch.setattr("pytest_jevbench.client.Future", Close)
    assert Client([Served()], MemoryStore(), tick=lambda: None).ask("s", QUESTIONS)
