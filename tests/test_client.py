"""The client asks for every distinct request once, counts exactly, and notices another model behind a name."""

from __future__ import annotations

import json
import threading
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from pytest_jevbench.cache import MemoryStore, SqliteStore, Store
from pytest_jevbench.case import Case
from pytest_jevbench.client import Client
from pytest_jevbench.errors import AnswerFormatError, AskError, ModelError, Refused
from pytest_jevbench.model import Model, Reply, Request, embedded, from_callable
from pytest_jevbench.model.systemone import SystemOne
from pytest_jevbench.statistics import Quirks, Statistics
from pytest_jevbench.wire import Answers, Question
from server import Received, Server, answers, late, reset, send

NOUL: Question = {"type": "noul", "instructions": "Is it urgent?"}
CHOICE: Question = {"type": "choice", "instructions": "Which?", "criteria": {"a": "first", "b": "second"}}
SCORE: Question = {"type": "score", "instructions": "How much?", "criteria": ["little", "some", "much"]}
BATCH: dict[str, Question] = {"urgent": NOUL, "which": CHOICE, "much": SCORE}
CASE = Case("case-1", "The opening state.", BATCH)


class Counting:
    """A model that answers by a function of the state, and keeps the states it was asked about."""

    lasting = True

    def __init__(self, answer: Callable[[Any], Any] | None = None, said: str | None = None) -> None:
        self.name = self.id = "counting"
        self.revision = ""
        self.asked: list[Any] = []
        self.closed = 0
        self.answer = answer
        self.said = said

    def ask(self, request: Request) -> Reply:
        self.asked.append(request.state)
        given = self.answer(request.state) if self.answer else embedded("random").ask(request).answers
        return Reply(given, self.said)

    def close(self) -> None:
        self.closed += 1


def noul(p: Any, **more: Any) -> dict[str, Any]:
    """Return answers to the one question `q`."""
    return {"q": {"type": "noul", "noul": p, **more}}


def ask(client: Client, state: Any = "s", repeat: int = 0) -> Answers:
    return client.ask(state, {"q": NOUL}, repeat)


def accounted(statistics: Statistics) -> int:
    """Return how many requests ended in one of the four ways."""
    answered = len(statistics.latencies)
    assert statistics.sent == answered + statistics.refused + statistics.failed
    return statistics.cached + answered + statistics.refused + statistics.failed


@pytest.fixture(params=["memory", "sqlite"])
def store(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Store]:
    made: Store = MemoryStore() if request.param == "memory" else SqliteStore(tmp_path, "counting", "counting", "")
    yield made
    made.close()


@pytest.fixture
def again(tmp_path: Path) -> Iterator[Callable[[Model], Client]]:
    """Make clients of one cache, each a run of its own: the one before is closed first."""
    clients: list[Client] = []

    def run(model: Model) -> Client:
        if clients:
            clients[-1].close()
        clients.append(Client([model], SqliteStore(tmp_path, model.name, model.id, model.revision)))
        return clients[-1]

    yield run
    clients[-1].close()


# Counts


def test_every_distinct_request_is_sent_once(store: Store) -> None:
    model = Counting()
    client = Client([model], store)
    first = [client.ask(state, BATCH) for state in ("x", "y", "x", "z", "y", "x")]
    assert model.asked == ["x", "y", "z"]
    assert first[0] == first[2] == first[5] != first[1]
    statistics = client.statistics
    assert (statistics.distinct, statistics.sent, statistics.cached) == (3, 3, 0)
    assert (statistics.refused, statistics.failed) == (0, 0)
    assert accounted(statistics) == 3


def test_two_orders_and_two_repeats_are_different_requests(store: Store) -> None:
    model = Counting()
    client = Client([model], store)
    client.ask("s", BATCH)
    client.ask("s", dict(reversed(BATCH.items())))
    menu = {"b": "second", "a": "first"}
    client.ask("s", {**BATCH, "which": {**CHOICE, "criteria": menu}})
    client.ask("s", BATCH, repeat=1)
    client.ask("s", BATCH, repeat=2)
    client.ask("s", BATCH, repeat=1)
    assert client.statistics.distinct == client.statistics.sent == len(model.asked) == 5


def test_a_noul_with_null_criteria_is_the_same_request_as_one_without() -> None:
    model = Counting()
    client = Client([model], MemoryStore())
    client.ask("s", {"q": NOUL})
    client.ask("s", {"q": {**NOUL, "criteria": None}})
    assert len(model.asked) == client.statistics.distinct == 1


def test_a_second_run_is_answered_from_the_cache(again: Callable[[Model], Client]) -> None:
    model = Counting()
    first = again(model)
    before = time.time()
    given = [first.ask(state, BATCH) for state in ("x", "y")]
    second = again(model)
    assert [second.ask(state, BATCH) for state in ("x", "y", "x")] == [*given, given[0]]
    second.ask("new", BATCH)
    assert model.asked == ["x", "y", "new"]
    statistics = second.statistics
    assert (statistics.distinct, statistics.cached, statistics.sent) == (3, 2, 1)
    assert accounted(statistics) == 3
    assert statistics.oldest is not None
    assert statistics.newest is not None
    assert before <= statistics.oldest <= statistics.newest <= time.time()
    assert first.statistics.oldest is None


@pytest.mark.parametrize(
    ("answer", "kind", "counted"),
    [
        (Refused("no", "here", hint="Ask less."), Refused, "refused"),
        (ModelError("down", "here"), ModelError, "failed"),
        (AnswerFormatError("odd"), AnswerFormatError, "failed"),
        (noul(2.0), AnswerFormatError, "failed"),
        ({}, AnswerFormatError, "failed"),
        (["no object"], ModelError, "failed"),
        (None, ModelError, "failed"),
    ],
)
def test_a_request_that_failed_is_not_sent_again(
    store: Store, answer: Any, kind: type[AskError], counted: str
) -> None:
    def respond(state: Any) -> Any:
        if state == "good":
            return noul(0.5)
        if isinstance(answer, AskError):
            raise answer
        return answer

    model = Counting(respond)
    client = Client([model], store)
    messages = set()
    for state in ("bad", "good", "bad", "bad"):
        if state == "good":
            ask(client, state)
            continue
        with pytest.raises(kind) as caught:
            ask(client, state)
        assert type(caught.value) is kind
        messages.add(str(caught.value))
    assert len(messages) == 1
    assert model.asked == ["bad", "good"]
    statistics = client.statistics
    assert (statistics.distinct, statistics.sent) == (2, 2)
    assert (statistics.refused, statistics.failed) == ((1, 0) if counted == "refused" else (0, 1))
    assert accounted(statistics) == 2


def test_a_request_that_failed_is_sent_again_by_the_next_run(again: Callable[[Model], Client]) -> None:
    with pytest.raises(AnswerFormatError):
        ask(again(Counting(lambda _: noul("yes"))))
    assert ask(again(Counting(lambda _: noul(0.25)))).distributions["q"]["true"] == 0.25


def test_a_function_that_raises_is_a_failed_request() -> None:
    calls = []

    def raising(state: Any, _questions: Any) -> Any:
        calls.append(state)
        raise ZeroDivisionError

    client = Client([from_callable(raising)], MemoryStore())
    for _ in range(3):
        with pytest.raises(ModelError, match="ZeroDivisionError"):
            ask(client)
    assert calls == ["s"]
    assert (client.statistics.failed, client.statistics.sent) == (1, 1)


def test_a_model_of_a_user_that_raises_anything_else_is_a_failed_request() -> None:
    def raising(_state: Any) -> Any:
        raise ZeroDivisionError("division by zero")

    model = Counting(raising)
    client = Client([model], MemoryStore())
    for _ in range(2):
        with pytest.raises(ModelError, match="ZeroDivisionError"):
            ask(client)
    assert len(model.asked) == client.statistics.failed == 1


def test_ctrl_c_is_not_remembered_as_a_failure() -> None:
    presses = iter([KeyboardInterrupt])

    def interrupted(_state: Any) -> Any:
        for press in presses:
            raise press
        return noul(0.5)

    client = Client([Counting(interrupted)], MemoryStore())
    with pytest.raises(KeyboardInterrupt):
        ask(client)
    assert ask(client).distributions["q"]["true"] == 0.5


def test_a_refusal_and_a_format_error_of_a_server_are_told_apart() -> None:
    with Server([send("{}", 422), answers(answers={"q": {"type": "noul"}}), answers()]) as server:
        client = Client([SystemOne(server.url, retries=0)], MemoryStore())
        for state, kind in (("a", Refused), ("b", AnswerFormatError), ("a", Refused), ("b", AnswerFormatError)):
            with pytest.raises(kind):
                ask(client, state)
        ask(client, "c")
        client.close()
    statistics = client.statistics
    assert len(server.requests) == statistics.sent == statistics.distinct == 3
    assert (statistics.refused, statistics.failed, len(statistics.latencies)) == (1, 1, 1)


@pytest.mark.parametrize(
    ("answer", "found"),
    [
        ('{"q": {"type": "noul", "noul": NaN}}', "nan"),
        ('{"q": {"type": "noul", "noul": Infinity}}', "inf"),
        ('{"q": {"type": "noul", "noul": 1e999}}', "inf"),
        ('{"q": {"type": "noul", "noul": ' + "9" * 400 + "}}", "999"),
        ('{"q": {"type": "noul", "noul": 1.5}}', "1.5"),
        ('{"q": {"type": "noul", "noul": true}}', "True"),
        ('{"q": {"type": "noul", "noul": "0.5"}}', "'0.5'"),
        ('{"q": {"type": "noul", "noul": 0.1, "noul": 0.2}}', "'noul'"),
        ('{"q": {"type": "noul"}}', "'type'"),
        ('{"q": 0.5}', "0.5"),
        ('{"q": {"noul": 0.5}, "q": {"noul": 0.5}}', "repeated"),
        ('{"p": {"noul": 0.5}}', "'p'"),
    ],
)
def test_an_answer_out_of_format_is_an_error_that_names_the_question(answer: str, found: str) -> None:
    with Server(send(f'{{"answers": {answer}}}')) as server:
        client = Client([SystemOne(server.url, retries=3)], MemoryStore())
        with pytest.raises(AnswerFormatError, match="question 'q'") as caught:
            ask(client)
        client.close()
    assert found in str(caught.value)
    assert caught.value.expected
    assert len(str(caught.value)) < 500
    assert (len(server.requests), client.statistics.failed) == (1, 1)


def test_a_confidence_that_is_no_usable_number_is_ignored() -> None:
    odd = [None, "high", True, float("nan"), 10**400]
    client = Client([Counting(lambda n: noul(0.5, confidence=odd[n[0]] if n[0] < len(odd) else 0.75))], MemoryStore())
    assert [ask(client, [n]).confidences for n in range(6)] == [{}] * 5 + [{"q": 0.75}]


def test_latencies_tokens_and_answering_models_are_collected() -> None:
    usage = {"input_tokens": 30, "output_tokens": 4, "cost": 0.1, "cached": True, "details": {"a": 1}, "none": None}
    with Server(late(0.02, answers(model="jev-9", usage=usage))) as server:
        client = Client([SystemOne(server.url, "jev-9")], MemoryStore())
        for state in "aabb":
            ask(client, state)
        client.close()
    statistics = client.statistics
    assert statistics.tokens == {"input_tokens": 60, "output_tokens": 8}
    assert len(statistics.latencies) == 2
    assert all(0.02 <= latency < 5 for latency in statistics.latencies)
    assert statistics.answered_as == {"jev-9": 2}
    assert statistics.quirks == {}


@pytest.mark.parametrize("ends", ["answered", "failed"])
def test_retries_are_counted_by_cause_however_the_request_ends(ends: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("pytest_jevbench.model.systemone.time.sleep", lambda _: None)
    with Server([reset, send("", 503), answers() if ends == "answered" else send("{}", 400)]) as server:
        client = Client([SystemOne(server.url, retries=3)], MemoryStore())
        if ends == "answered":
            ask(client)
        else:
            with pytest.raises(Refused):
                ask(client)
        client.close()
    assert len(server.requests) == 3
    assert (client.statistics.sent, client.statistics.distinct) == (1, 1)
    assert client.statistics.retries == {"reset": 1, "503": 1}


def test_counts_of_several_processes_add_up(again: Callable[[Model], Client]) -> None:
    def respond(state: str) -> Any:
        if state == "bad":
            raise ModelError("down")
        return {"q": {"noul": 0.5}}

    def run(states: list[str]) -> Statistics:
        client = again(Counting(respond, said="other"))
        for state in states:
            try:
                ask(client, state)
            except ModelError:
                assert state == "bad"
        return client.statistics

    run(["warm"])
    parts = [run(["warm", "x", "bad"]), run(["warm", "x", "y"])]
    latencies = [*parts[0].latencies, *parts[1].latencies]
    oldest = parts[0].oldest
    taken = [json.loads(json.dumps(part.take())) for part in parts]
    assert all(part == Statistics() for part in parts)
    total = Statistics()
    for counts in taken:
        total.add(counts)
    assert total.distinct == 4
    assert (total.sent, total.cached, total.failed) == (3, 1, 1)
    assert total.quirks["no type"].count == total.answered_as["other"] == 5
    assert total.latencies == latencies
    assert total.oldest == oldest
    alone = Statistics()
    alone.add(taken[0])
    assert json.loads(json.dumps(alone.take())) == taken[0]


# Threads


def test_threads_that_ask_the_same_at_once_share_one_request(store: Store) -> None:
    def slow(_state: Any) -> Any:
        time.sleep(0.05)
        return noul(0.3)

    model = Counting(slow)
    client = Client([model], store)
    start = threading.Barrier(8)

    def go(_: int) -> Answers:
        start.wait()
        return ask(client)

    with ThreadPoolExecutor(8) as pool:
        given = list(pool.map(go, range(8)))
    assert given == [given[0]] * 8
    assert len(model.asked) == client.statistics.sent == client.statistics.distinct == 1
    assert client.statistics.cached == 0


def test_threads_that_ask_the_same_at_once_share_its_failure() -> None:
    def slow(_state: Any) -> Any:
        time.sleep(0.05)
        raise Refused("no")

    model = Counting(slow)
    client = Client([model], MemoryStore())
    start = threading.Barrier(8)

    def go(_: int) -> str:
        start.wait()
        with pytest.raises(Refused) as caught:
            ask(client)
        return str(caught.value)

    with ThreadPoolExecutor(8) as pool:
        assert set(pool.map(go, range(8))) == {"no"}
    assert (len(model.asked), client.statistics.refused) == (1, 1)


def test_one_request_is_in_flight_at_a_time_and_each_gets_its_own_answer() -> None:
    def by_state(received: Received) -> Any:
        return late(0.005, answers(answers=noul(received.body["state"][0] / 100)))(received)

    with Server(by_state) as server:
        client = Client([SystemOne(server.url)], MemoryStore())
        with ThreadPoolExecutor(6) as pool:
            given = list(pool.map(lambda n: ask(client, [n]).distributions["q"]["true"], [*range(12), *range(12)]))
        client.close()
    assert given == [n / 100 for n in [*range(12), *range(12)]]
    assert server.most_at_once == 1
    assert len(server.requests) == client.statistics.distinct == 12


# Replicas


def test_a_free_replica_is_asked_and_all_are_closed() -> None:
    models = [Counting(), Counting(), Counting()]
    client = Client(models, MemoryStore())
    for n in range(7):
        ask(client, [n])
    client.close()
    assert sorted(state[0] for model in models for state in model.asked) == list(range(7))
    assert [model.closed for model in models] == [1, 1, 1]


# The opening request


def test_the_opening_request_is_sent_whatever_is_kept(again: Callable[[Model], Client]) -> None:
    model = Counting()
    first = again(model)
    first.open(CASE)
    first.ask("other", BATCH)
    second = again(model)
    second.open(CASE)
    assert second.source(CASE) == first.source(CASE)
    second.ask(CASE.state, CASE.questions)
    second.ask("other", BATCH)
    assert model.asked == [CASE.state, "other", CASE.state]
    statistics = second.statistics
    assert (statistics.distinct, statistics.sent, statistics.cached, statistics.set_aside) == (2, 1, 1, 0)
    assert accounted(statistics) == 2


def test_an_opening_request_that_fails_is_counted_and_not_sent_again() -> None:
    def down(_state: Any) -> Any:
        raise ModelError("down")

    model = Counting(down)
    client = Client([model], MemoryStore())
    with pytest.raises(ModelError, match="down"):
        client.open(CASE)
    assert (client.statistics.sent, client.statistics.failed, client.statistics.distinct) == (1, 1, 1)
    with pytest.raises(ModelError, match="down"):
        client.source(CASE)
    assert len(model.asked) == 1
    assert accounted(client.statistics) == client.statistics.distinct


def test_an_opening_request_that_fails_leaves_what_is_kept(again: Callable[[Model], Client]) -> None:
    again(Counting()).open(CASE)

    def down(_state: Any) -> Any:
        raise ModelError("down")

    with pytest.raises(ModelError):
        again(Counting(down)).open(CASE)
    third = again(Counting())
    third.source(CASE)
    assert (third.statistics.cached, third.statistics.sent) == (1, 0)


def test_the_opening_request_has_no_null_criteria_field() -> None:
    case = Case("c", "s", {"q": {**NOUL, "criteria": None}})
    with Server() as server:
        client = Client([SystemOne(server.url)], MemoryStore())
        client.open(case)
        client.ask(case.state, case.questions)
        client.close()
    assert [received.body["questions"] for received in server.requests] == [{"q": NOUL}]


def test_the_source_output_of_a_case_is_asked_for_once(store: Store) -> None:
    model = Counting()
    client = Client([model], store)
    assert client.source(CASE) == client.source(CASE) == client.ask(CASE.state, CASE.questions)
    assert len(model.asked) == 1


def shifted(by: float) -> Callable[[Any], Any]:
    """Answer the questions of BATCH, a little differently for every `by`."""
    return lambda _: {
        "urgent": {"type": "noul", "noul": 0.5 + by},
        "which": {"type": "choice", "probabilities": {"a": 0.5, "b": 0.5}},
        "much": {"type": "score", "probabilities": {"0": 0.25, "1": 0.25, "2": 0.5}},
    }


@pytest.mark.parametrize(
    ("now", "kept"),
    [
        (Counting(shifted(0.0), "jev-1"), True),
        (Counting(shifted(1e-9), "jev-1"), False),
        (Counting(shifted(0.3), "jev-1"), False),
        (Counting(shifted(0.0), "jev-2"), False),
        (Counting(shifted(0.0), None), False),
    ],
    ids=["the same", "a little other", "other", "another name", "no name"],
)
def test_another_model_behind_the_same_name_sets_kept_answers_aside(
    again: Callable[[Model], Client],
    now: Counting,
    kept: bool,  # noqa: FBT001 - a column of the table
) -> None:
    now.asked.clear()
    before = again(Counting(shifted(0.0), "jev-1"))
    before.open(CASE)
    for state in "abc":
        before.ask(state, BATCH)
    client = again(now)
    client.open(CASE)
    given = [client.ask(state, BATCH) for state in "abc"]
    assert client.statistics.set_aside == (0 if kept else 4)
    assert now.asked == [CASE.state, *([] if kept else "abc")]
    assert client.statistics.cached == (3 if kept else 0)
    third = again(now)
    third.open(CASE)
    assert [third.ask(state, BATCH) for state in "abc"] == given
    assert (third.statistics.cached, third.statistics.sent, third.statistics.set_aside) == (3, 1, 0)


def test_answers_of_a_function_without_a_name_do_not_survive() -> None:
    calls = []

    def decide(state: Any, questions: dict[str, Any]) -> dict[str, Any]:
        calls.append(state)
        return {key: {"type": "noul", "noul": 0.5} for key in questions}

    model = from_callable(decide)
    assert not model.lasting
    for _ in range(2):
        client = Client([model], MemoryStore())
        ask(client)
        ask(client)
        client.close()
        assert (client.statistics.sent, client.statistics.cached) == (1, 0)
    assert calls == ["s", "s"]


# What comes from the cache is what came from the model


@pytest.mark.parametrize("name", ["uniform", "random", "luce", "luce-biased"])
def test_answers_read_again_are_equal(again: Callable[[Model], Client], name: str) -> None:
    model = embedded(name)
    states: list[Any] = [f"state {n}" for n in range(20)] + [{"lone": "\ud800"}, ["ü", None]]
    first = again(model)
    given = [first.ask(state, BATCH) for state in states]
    second = again(model)
    assert [second.ask(state, BATCH) for state in states] == given
    assert (second.statistics.cached, second.statistics.sent) == (len(states), 0)


ODD_ANSWERS: list[Any] = [
    {"q": {"noul": 0.5}},
    {"q": {"type": "choice", "noul": 0.5}},
    noul(1 + 1e-7, confidence=0.25, note=[1, None]),
    {**noul(0.1), "unasked": {"type": "noul", "noul": 7}},
]


def test_oddities_are_counted_once_a_request_with_and_without_the_cache(again: Callable[[Model], Client]) -> None:
    def run() -> tuple[list[Answers], Statistics]:
        client = again(Counting(lambda n: ODD_ANSWERS[n[0]], said="jev-9"))
        return [ask(client, [n % 4]) for n in range(12)], client.statistics

    given, first = run()
    read, second = run()
    assert read == given
    assert (first.sent, first.cached, second.sent, second.cached) == (4, 0, 0, 4)
    assert first.quirks == second.quirks
    assert first.quirks == {
        "no type": Quirks(1, 1.0, "q"),
        "type": Quirks(1, 1.0, "q"),
        "model": Quirks(4, 1.0, "jev-9"),
    }
    assert first.answered_as == second.answered_as == {"jev-9": 4}


def test_the_worst_oddity_is_kept_with_its_question(again: Callable[[Model], Client]) -> None:
    def respond(state: Any) -> Any:
        return {
            "one": {"type": "choice", "probabilities": {"a": 0.5, "b": 0.5 - state[0] / 10}},
            "two": {"type": "choice", "probabilities": {"a": 0.5, "b": 0.5 - state[0] / 20, "c": state[0] / 20}},
        }

    for _ in range(2):
        client = again(Counting(respond))
        for n in (1, 3, 2, 3, 1):
            client.ask([n], {"one": CHOICE, "two": CHOICE})
        quirks = client.statistics.quirks
        assert (quirks["sum"].count, quirks["sum"].where) == (3, "one")
        assert quirks["sum"].worst == pytest.approx(0.3)
        assert (quirks["undeclared"].count, quirks["undeclared"].where) == (3, "two")
        assert quirks["undeclared"].worst == pytest.approx(0.15)


def test_the_worst_oddity_does_not_depend_on_the_order_of_the_requests() -> None:
    seen = []
    for keys in (["a", "b"], ["b", "a"]):
        client = Client(
            [from_callable(lambda _, questions: {key: {"noul": 0.5} for key in questions})], MemoryStore()
        )
        for key in keys:
            client.ask("s", {key: NOUL})
        seen.append(client.statistics.quirks)
    assert seen[0] == seen[1]


def test_requests_beyond_the_memory_are_neither_sent_again_nor_counted_as_cached(
    store: Store, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("pytest_jevbench.client.KEPT_READ", 3)
    model = Counting(lambda _: {"q": {"noul": 0.5}})
    client = Client([model], store)
    for n in [*range(10), *range(10), *reversed(range(10))]:
        ask(client, [n])
    statistics = client.statistics
    assert len(model.asked) == statistics.sent == statistics.distinct == 10
    assert (statistics.cached, statistics.oldest) == (0, None)
    assert statistics.quirks["no type"].count == 10
    assert accounted(statistics) == 10


def test_failures_beyond_the_memory_are_still_known(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("pytest_jevbench.client.KEPT_READ", 2)
    model = Counting(lambda n: noul(2 if n[0] == 0 else 0.5))
    client = Client([model], MemoryStore())
    for n in [*range(6), 0]:
        if n == 0:
            with pytest.raises(AnswerFormatError):
                ask(client, [n])
        else:
            ask(client, [n])
    assert len(model.asked) == 6


def test_a_kept_answer_that_cannot_be_read_is_asked_for_again(tmp_path: Path) -> None:
    for spoiled in ("no JSON", "[]", "{}", '{"answers": {}}', '{"answers": {}, "model": null}', "null"):
        store = SqliteStore(tmp_path, "counting", "counting", "")
        store.put(f"{Request.of('s', {'q': NOUL}).digest.hex()}:0", spoiled)
        model = Counting(lambda _: noul(0.5))
        client = Client([model], store)
        assert ask(client).distributions["q"]["true"] == 0.5
        assert (client.statistics.sent, client.statistics.cached) == (1, 0)
        client.close()


# What functions return besides plain data

UNUSUAL: list[Any] = [
    noul(np.float64(0.25)),
    noul(np.float32(0.1)),
    noul(np.int64(1)),
    noul(0.5, confidence=np.float32(0.5)),
    noul(0.5, logits=np.array([1.0, 2.0]), device=object()),
    noul(0.5, counts={np.int64(3): 1}),
    noul(0.5, pairs={("a", "b"): 0.1}),
    {**noul(0.5), ("not", "asked"): 1},
]


@pytest.mark.parametrize("answer", UNUSUAL, ids=range(len(UNUSUAL)))
def test_answers_of_other_libraries_can_be_kept(again: Callable[[Model], Client], answer: Any) -> None:
    def decide(_state: Any, _questions: Any) -> Any:
        return answer

    given = ask(again(from_callable(decide, "mine")))
    second = again(from_callable(decide, "mine"))
    assert ask(second) == given
    assert (second.statistics.cached, second.statistics.sent) == (1, 0)


def test_numpy_probabilities_of_a_menu_can_be_kept(again: Callable[[Model], Client]) -> None:
    def decide(_state: Any, questions: dict[str, Any]) -> Any:
        rng = np.random.default_rng(3)
        given: dict[str, Any] = {"urgent": {"type": "noul", "noul": rng.random(dtype=np.float32)}}
        for key, names in (("which", list("ab")), ("much", list("012"))):
            p = rng.dirichlet(np.ones(len(names))).astype(np.float32)
            given[key] = {"type": questions[key]["type"], "probabilities": dict(zip(names, p, strict=True))}
        return given

    first = again(from_callable(decide, "mine")).ask("s", BATCH)
    second = again(from_callable(decide, "mine"))
    assert second.ask("s", BATCH) == first
    assert second.statistics.cached == 1
    assert all(type(p) is float for distribution in first.distributions.values() for p in distribution.values())
