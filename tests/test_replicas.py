"""The slots of replicas: real threads, jobs in order, nothing that waits for what is stuck."""

from __future__ import annotations

import threading
import time
from collections.abc import Sequence
from concurrent.futures import CancelledError, Future
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from pytest_jevbench import replicas
from pytest_jevbench.cache import Entry, MemoryStore
from pytest_jevbench.client import KEPT_READ, Client
from pytest_jevbench.errors import BudgetSpent, ModelError
from pytest_jevbench.evidence import gather
from pytest_jevbench.model import Reply, Request, embedded
from pytest_jevbench.plan import Test
from pytest_jevbench.prefetch import AHEAD, Prefetcher
from pytest_jevbench.replicas import LATER, NOW, Pool
from pytest_jevbench.suite import load_suite

QUESTIONS = {"q": {"type": "noul", "instructions": "Is it?"}}


class Served:
    """An embedded model that looks like a served one and counts what is in flight."""

    lasting = True
    name = id = "served"
    revision = ""

    def __init__(self, pause: float = 0.0) -> None:
        self.url = self.shown_url = f"http://replica-{id(self)}"
        self.pause = pause
        self.dead = False
        self.asked: list[Request] = []
        self.now = self.most = 0
        self._lock = threading.Lock()

    def ask(self, request: Request) -> Reply:
        with self._lock:
            self.asked.append(request)
            self.now += 1
            self.most = max(self.most, self.now)
        try:
            time.sleep(self.pause)
            if self.dead:
                error = ModelError("gone", self.url)
                error.unreachable = True
                raise error
            return embedded("luce").ask(request)
        finally:
            with self._lock:
                self.now -= 1

    def close(self) -> None: ...


def submit(pool: Pool, work: Any, urgency: int = NOW) -> Future[Any]:
    future: Future[Any] = Future()
    pool.submit(work, future, urgency)
    return future


@pytest.mark.parametrize("slots", [(1,), (3,), (1, 1), (2, 1, 3)])
def test_a_replica_never_has_more_in_flight_than_slots(slots: tuple[int, ...]) -> None:
    models = [Served(0.002) for _ in slots]
    pool = Pool(models, slots)
    request = Request.of("s", QUESTIONS)
    futures = [submit(pool, lambda model: model.ask(request)) for _ in range(60)]
    assert len([future.result(10) for future in futures]) == 60
    assert [model.most for model in models] == list(slots)
    pool.close()


def held(pool: Pool) -> tuple[threading.Event, Future[Any]]:
    """Occupy the pool's one slot until the event is set."""
    release, started = threading.Event(), threading.Event()

    def work(_: Any) -> None:
        started.set()
        release.wait(10)

    future = submit(pool, work)
    assert started.wait(10)
    return release, future


def test_jobs_start_in_order_and_urgent_ones_first() -> None:
    pool = Pool([Served()])
    release, _ = held(pool)
    order: list[str] = []
    futures = {
        name: submit(pool, lambda _, name=name: order.append(name), urgency)
        for name, urgency in (
            ("ahead 1", LATER),
            ("ahead 2", LATER),
            ("now 1", NOW),
            ("now 2", NOW),
            ("ahead 3", LATER),
        )
    }
    pool.hurry(futures["ahead 3"])
    release.set()
    for future in futures.values():
        future.result(10)
    # What is hurried keeps its number: it came last of the urgent ones.
    assert order == ["now 1", "now 2", "ahead 3", "ahead 1", "ahead 2"]
    pool.close()


def test_what_was_queued_ahead_can_be_dropped() -> None:
    pool = Pool([Served()])
    release, _ = held(pool)
    ahead, urgent = submit(pool, lambda _: 1, LATER), submit(pool, lambda _: 2)
    pool.drop_ahead()
    release.set()
    assert urgent.result(10) == 2
    with pytest.raises(CancelledError):
        ahead.result(10)
    pool.close()


def test_closing_does_not_wait_for_a_stuck_job() -> None:
    pool = Pool([Served()])
    release, stuck = held(pool)
    started = time.monotonic()
    pool.close()
    assert time.monotonic() - started < 1
    assert not stuck.done()
    release.set()


def test_a_dead_replica_is_left_aside_and_comes_back(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(replicas, "FIRST_PAUSE", 0.05)
    good, bad = Served(0.005), Served(0.005)
    bad.dead = True
    pool = Pool([good, bad])
    request = Request.of("s", QUESTIONS)
    for future in [submit(pool, lambda model: model.ask(request)) for _ in range(40)]:
        assert future.result(10).answers
    assert 1 <= len(bad.asked) < 20
    assert pool.notes() == [f"replica {bad.url} was left aside 1 times (still aside at the end)"]
    bad.dead = False
    time.sleep(0.3)
    tries = len(bad.asked)
    for future in [submit(pool, lambda model: model.ask(request)) for _ in range(40)]:
        future.result(10)
    assert len(bad.asked) > tries
    assert "(back since)" in pool.notes()[0]
    pool.close()


def test_when_all_are_dead_the_error_reaches_who_asked() -> None:
    models = [Served(), Served()]
    for model in models:
        model.dead = True
    client = Client(models, MemoryStore())
    for i in range(5):
        with pytest.raises(ModelError, match="gone"):
            client.ask(f"state {i}", QUESTIONS)
    assert client.statistics.failed == 5
    client.close()


def test_starts_are_paced() -> None:
    model = Served()
    client = Client([model], MemoryStore(), slots=[4], min_interval=0.05)
    started = time.monotonic()
    for i in range(5):
        client.fetch_ahead(f"state {i}", QUESTIONS)
    for i in range(5):
        client.ask(f"state {i}", QUESTIONS)
    assert time.monotonic() - started >= 0.19
    client.close()


def test_one_local_model_is_called_in_the_thread_that_asks() -> None:
    threads = []

    class Local:
        name = id = "local"
        revision = ""
        lasting = False

        def ask(self, request: Request) -> Reply:
            threads.append(threading.current_thread())
            if request.state == "stop":
                raise KeyboardInterrupt
            return embedded("uniform").ask(request)

        def close(self) -> None: ...

    client = Client([Local()], MemoryStore())
    client.ask("s", QUESTIONS)
    with pytest.raises(KeyboardInterrupt):
        client.ask("stop", QUESTIONS)
    assert set(threads) == {threading.current_thread()}
    assert not client.pool.threaded


def test_what_was_fetched_ahead_is_not_sent_again() -> None:
    model = Served(0.01)
    client = Client([model], MemoryStore())
    for i in range(5):
        client.fetch_ahead(f"state {i}", QUESTIONS)
        client.fetch_ahead(f"state {i}", QUESTIONS)
    answers = [client.ask(f"state {i}", QUESTIONS) for i in range(6)]
    assert len(model.asked) == client.statistics.sent == 6
    plain = Client([embedded("luce")], MemoryStore())
    assert answers == [plain.ask(f"state {i}", QUESTIONS) for i in range(6)]
    client.close()


def test_a_failure_fetched_ahead_is_raised_when_it_is_asked_for() -> None:
    model = Served()
    model.dead = True
    client = Client([model], MemoryStore())
    client.fetch_ahead("s", QUESTIONS)
    for _ in range(3):
        with pytest.raises(ModelError, match="gone"):
            client.ask("s", QUESTIONS)
    assert len(model.asked) == 1
    client.close()


def test_a_budget_is_never_exceeded_and_what_was_answered_stays() -> None:
    model = Served()
    client = Client([model], MemoryStore(), budget=3)
    for i in range(6):
        client.fetch_ahead(f"state {i}", QUESTIONS)
    assert all(client.ask(f"state {i}", QUESTIONS).distributions for i in range(3))
    for i in range(3, 6):
        with pytest.raises(BudgetSpent, match="--jev-max-requests"):
            client.ask(f"state {i}", QUESTIONS)
    assert client.statistics.failed == 0
    assert len(model.asked) == 3
    client.close()


@pytest.mark.parametrize("slots", [1, 3])
def test_prefetching_sends_every_request_once_and_changes_no_answer(slots: int) -> None:
    plan = load_suite("upstream:examples").plan
    model = Served(0.001)
    client = Client([model], MemoryStore(), slots=[slots])
    prefetcher = Prefetcher(client, plan.tests)
    most = 0
    evidence = []
    for test in plan.tests:
        prefetcher.advance(test)
        most = max(most, client.under_way)
        evidence.append([each.replies for each in gather(client, test)])
    plain = Client([embedded("luce")], MemoryStore())
    assert evidence == [[each.replies for each in gather(plain, test)] for test in plan.tests]
    texts = [request.text for request in model.asked]
    assert len(texts) == len(set(texts)) == client.statistics.distinct == 43
    # The window may be overshot by the requests of the one test that filled it.
    assert most <= AHEAD * slots + 1
    assert model.most <= slots
    client.close()


@settings(deadline=None, max_examples=60)
@given(st.lists(st.tuples(st.sampled_from([NOW, LATER]), st.booleans()), max_size=12))
def test_whatever_is_queued_and_hurried_jobs_start_in_order(jobs: list[tuple[int, bool]]) -> None:
    """The second of each pair says whether the job is hurried afterwards."""
    go, started = threading.Event(), threading.Event()
    pool = Pool([Served()])
    first = submit(pool, lambda _: [event() for event in (started.set, go.wait)])
    assert started.wait(5)
    done: list[int] = []
    futures = [submit(pool, lambda _, n=n: done.append(n), urgency) for n, (urgency, _) in enumerate(jobs)]
    for future, (_, hurried) in zip(futures, jobs, strict=True):
        if hurried:
            pool.hurry(future)
    go.set()
    for future in [first, *futures]:
        future.result(5)
    pool.close()
    urgent = [n for n, (urgency, hurried) in enumerate(jobs) if urgency == NOW or hurried]
    assert done == [*urgent, *sorted(set(range(len(jobs))) - set(urgent))]


@pytest.fixture(scope="module")
def mini() -> Sequence[Test]:
    return load_suite("upstream:jevbench-mini").plan.tests


def test_one_slot_gets_the_requests_of_a_run_without_prefetch_in_the_same_order(mini: Sequence[Test]) -> None:
    chosen = mini[5::9]
    sent = []
    for ahead in (False, True):
        model = Served()
        client = Client([model], MemoryStore())
        prefetcher = Prefetcher(client, chosen)
        for test in chosen:
            if ahead:
                prefetcher.advance(test)
            gather(client, test)
        client.close()
        sent.append([request.digest for request in model.asked])
    assert sent[0] == sent[1]


@pytest.mark.parametrize("slots", [1, 4])
def test_fetching_ahead_from_a_dead_model_does_not_run_through_the_plan(mini: Sequence[Test], slots: int) -> None:
    """Its requests count against the budget, and each of them would be an error for the rest of the run."""
    model = Served()
    model.dead = True
    client = Client([model], MemoryStore(), slots=[slots])
    prefetcher = Prefetcher(client, mini)
    for test in mini[:25]:
        prefetcher.advance(test)
        with pytest.raises(ModelError):
            gather(client, test)
        # Time in which slots fail what was fetched ahead, as they do while a report is written.
        time.sleep(0.002)
    client.close()
    assert client.statistics.sent < 250


class CountingStore(MemoryStore):
    """A store that counts how often it is read."""

    reads = 0

    def get(self, key: str) -> Entry | None:
        self.reads += 1
        return super().get(key)


def test_fetching_ahead_from_the_cache_keeps_within_the_memory(mini: Sequence[Test]) -> None:
    """The first test of a warm run would read the whole cache otherwise, and most answers be thrown away again."""
    store = CountingStore()
    warming = Client([Served()], store)
    for test in mini:
        gather(warming, test)
    store.reads = 0
    client = Client([Served()], store)
    prefetcher = Prefetcher(client, mini)
    prefetcher.advance(mini[0])
    gather(client, mini[0])
    assert store.reads < KEPT_READ / 4
    assert client.statistics.cached == client.statistics.distinct
    for test in mini[1:]:
        prefetcher.advance(test)
        gather(client, test)
    assert store.reads == client.statistics.cached == client.statistics.distinct == 1248
    assert client.statistics.sent == 0
