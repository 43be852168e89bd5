"""The session's one way to ask: every distinct request goes to the model once, and everything is counted.

Answers come from the memory of this run, from the cache, or from a replica of the model, in that order. A request
that failed is not sent again in the same run: its error is raised again. Requests of later tests are fetched ahead.
"""

from __future__ import annotations

import json
import threading
import time
from collections import OrderedDict
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import CancelledError, Future
from contextlib import suppress
from numbers import Real
from typing import Any

from .cache import Entry, Store
from .case import Case
from .errors import AskError, BudgetSpent, ModelError, Refused, show
from .model.base import Model, Reply, Request
from .replicas import LATER, NOW, Pool
from .statistics import Statistics
from .wire import Answers, Batch, read_answers

KEPT_READ = 512
"""Answers kept ready in memory: more than are ever fetched ahead, and the units of a suite share requests."""
TICK = 0.5
"""Seconds between two calls of `tick` while a test waits for an answer."""


class Client:
    """Asks replicas of one model through a store. The replicas share name, id and revision.

    `slots` says how many requests each replica takes at once (default: one), `budget` bounds how many are sent,
    `min_interval` is the least time in seconds between two, `tick` is called now and then, in the thread that asks,
    while it waits.
    """

    def __init__(
        self,
        replicas: Sequence[Model],
        store: Store,
        *,
        slots: Sequence[int] = (),
        budget: int | None = None,
        min_interval: float = 0.0,
        tick: Callable[[], None] | None = None,
    ) -> None:
        self.model = replicas[0]
        self.replicas = tuple(replicas)
        self.statistics = Statistics()
        self.pool = Pool(replicas, slots, min_interval=min_interval)
        self.tick = tick
        self._budget = budget
        self._spent = 0
        self._store = store
        self._lock = threading.RLock()
        self._flights: dict[str, Future[Answers]] = {}
        self._read: OrderedDict[str, Answers] = OrderedDict()
        self._noted: set[str] = set()
        self._failures: dict[str, AskError] = {}
        self._sources: dict[str, Answers] = {}
        self._closed = False

    def ask(self, state: Any, questions: Batch, repeat: int = 0) -> Answers:
        """Return the answers to a request. Raises AnswerFormatError, ModelError, Refused or BudgetSpent."""
        request = Request.of(state, questions)
        key = _key(request, repeat)
        while True:
            with self._lock:
                self._count(key)
                if key in self._failures:
                    raise self._failures[key].again()
                if key in self._read:
                    self._read.move_to_end(key)
                    return self._read[key]
                flight, mine = self._flight(key)
            if mine:
                self._start(request, key, flight, NOW)
            else:
                self.pool.hurry(flight)
            # What was fetched ahead may have been dropped; then it is asked for anew.
            with suppress(CancelledError):
                return self._await(flight, key)

    def fetch_ahead(self, state: Any, questions: Batch) -> None:
        """Let a request go out before a test asks for it."""
        request = Request.of(state, questions)
        key = _key(request, 0)
        with self._lock:
            if key in self._failures or key in self._read:
                return
            flight, mine = self._flight(key)
        if mine:
            self._start(request, key, flight, LATER)

    @property
    def under_way(self) -> int:
        """How many requests are queued or in flight."""
        return len(self._flights)

    def source(self, case: Case) -> Answers:
        """Return the source output of a case: the answers to its own full batch. Raises as `ask` does."""
        known = self._sources.get(case.id)
        if known is None:
            known = self._sources[case.id] = self.ask(case.state, case.questions)
        return known

    def open(self, case: Case) -> None:
        """Send a case's own batch as the opening request, whatever is kept of it.

        It shows that the model can be used at all, and that kept answers still are this model's: where its answer or
        the `model` it names differs from the kept one, everything kept of that model is set aside.
        Raises as `ask` does.
        """
        request = Request.of(case.state, case.questions)
        key = _key(request, 0)
        kept = self._store.get(key)
        with self._lock:
            self._count(key)
            flight, _ = self._flight(key)
        self._dispatch(request, key, flight, NOW)
        self._sources[case.id] = self._await(flight, key)
        now = self._store.get(key)
        if kept is not None and now is not None:
            questions = request.questions
            if _read_entry(kept, questions) != _read_entry(now, questions):
                self.statistics.set_aside = self._store.set_aside()
                self._store.put(key, now.body)
        self._store.flush()

    def close(self) -> None:
        """Write what is pending and give connections back; requests in flight are left behind."""
        if self._closed:
            return
        self._closed = True
        self.pool.close()
        with self._lock:
            self._store.close()
        for replica in self.replicas:
            replica.close()

    def _kept(self, request: Request, key: str) -> Answers | None:
        """Return the answers that the cache has, and count them."""
        entry = self._store.get(key)
        known = _read_entry(entry, request.questions) if entry is not None else None
        if entry is None or known is None:
            return None
        answers, model = known
        with self._lock:
            if key not in self._noted:
                self.statistics.found.add(_short(key))
                self.statistics.note_moment(entry.asked_at)
            self._note(key, answers, model)
            self._remember(key, answers)
        return answers

    def _flight(self, key: str) -> tuple[Future[Answers], bool]:
        """Return the flight of a request, and whether it is a new one that the caller has to start."""
        flight = self._flights.get(key)
        if flight is not None:
            return flight, False
        flight = self._flights[key] = Future()
        flight.add_done_callback(lambda done: self._settle(key, done))
        return flight, True

    def _settle(self, key: str, flight: Future[Answers]) -> None:
        """Take a flight that has ended off the list and count its failure; whoever comes first does it."""
        with self._lock:
            if self._flights.get(key) is not flight:
                return
            del self._flights[key]
            if flight.cancelled():
                self.statistics.sent -= 1
                self._spent -= 1
            broken = None if flight.cancelled() else flight.exception()
            if isinstance(broken, AskError):
                self._failures[key] = broken
                self.statistics.refused += isinstance(broken, Refused)
                self.statistics.failed += not isinstance(broken, Refused | BudgetSpent)

    def _start(self, request: Request, key: str, flight: Future[Answers], urgency: int) -> None:
        """Answer a flight from the cache, or hand it to the replicas."""
        try:
            answers = self._kept(request, key)
        except BaseException as broken:
            flight.set_exception(broken)
            raise
        if answers is not None:
            flight.set_result(answers)
        else:
            self._dispatch(request, key, flight, urgency)

    def _dispatch(self, request: Request, key: str, flight: Future[Answers], urgency: int) -> None:
        """Hand a request to the replicas, unless the budget is spent."""
        with self._lock:
            # The statistics cannot say it: a worker hands its counts over after each test.
            spent = self._budget is not None and self._spent >= self._budget
            self.statistics.sent += not spent
            self._spent += not spent
        if spent:
            most = f"at most {self._budget:,} requests (--jev-max-requests)"
            hint = "Run again with a larger budget: what was answered is kept in the cache."
            flight.set_exception(BudgetSpent("budget spent", expected=most, hint=hint))
            return
        self.pool.submit(lambda replica: self._send(replica, request, key), flight, urgency)

    def _await(self, flight: Future[Answers], key: str) -> Answers:
        """Wait for an answer without being deaf to Ctrl-C, and let the session show that it lives."""
        while True:
            try:
                return flight.result(timeout=None if self.tick is None else TICK)
            except AskError as broken:
                self._settle(key, flight)
                raise broken.again() from None
            except TimeoutError:
                # Only the wait timed out: an answer may have landed just now.
                if self.tick is not None and not flight.done():
                    self.tick()

    def _send(self, replica: Model, request: Request, key: str) -> Answers:
        """Ask a replica; count, read and keep what it said. Runs in the slot's thread."""
        stats = self.statistics
        started = time.perf_counter()
        try:
            reply = _asked(replica, request)
            answers = _read(reply, request, replica)
        except AskError as broken:
            with self._lock:
                stats.retries.update(broken.retries)
                stats.attempts += 1 + sum(broken.retries.values())
            raise
        with self._lock:
            stats.latencies.append(time.perf_counter() - started)
            stats.attempts += 1 + sum(reply.retries.values())
            stats.retries.update(reply.retries)
            stats.tokens.update({name: n for name, n in reply.usage.items() if type(n) is int})
            stats.answered.add(_short(key))
            self._note(key, answers, reply.model)
            self._remember(key, answers)
            if not self._closed:
                self._store.put(key, _body(reply, request))
        return answers

    def _count(self, key: str) -> None:
        self.statistics.asked.add(_short(key))

    def _remember(self, key: str, answers: Answers) -> None:
        self._read[key] = answers
        if len(self._read) > KEPT_READ:
            self._read.popitem(last=False)

    def _note(self, key: str, answers: Answers, model: str | None) -> None:
        """Count what was odd about an answer, once for each distinct request."""
        if key in self._noted:
            return
        self._noted.add(key)
        stats = self.statistics
        if model is not None:
            stats.answered_as[model] += 1
            if model != self.model.id:
                stats.note_quirk("model", 1.0, model)
        for quirk in answers.quirks:
            stats.note_quirk(quirk.kind, quirk.size, quirk.where)


def _key(request: Request, repeat: int) -> str:
    return f"{request.digest.hex()}:{repeat}"


def _short(key: str) -> str:
    return key[:16] + key[64:]


def _read(reply: Reply, request: Request, replica: Model) -> Answers:
    if not isinstance(reply.answers, Mapping):
        raise ModelError(
            "the model returned no answers object",
            getattr(replica, "shown_url", f"model {replica.name}"),
            show(reply.answers),
            "{question id: answer}",
            "" if hasattr(replica, "shown_url") else "A function returns the `answers` object itself.",
        )
    return read_answers(reply.answers, request.questions)


def _asked(replica: Model, request: Request) -> Reply:
    try:
        return replica.ask(request)
    except AskError:
        raise
    except Exception as broken:
        raise ModelError(
            f"the model raised {type(broken).__name__}: {show(broken)}", f"model {replica.name}"
        ) from broken


READ = ("type", "noul", "probabilities", "confidence", "choice")


def _body(reply: Reply, request: Request) -> str:
    """Keep of a reply what is read again: other fields may hold anything, also what is no JSON."""
    answers = {
        key: {name: reply.answers[key][name] for name in READ if name in reply.answers[key]}
        for key in request.questions
    }
    return json.dumps({"answers": answers, "model": reply.model}, default=_plain)


def _plain(value: Any) -> Any:
    """Make JSON of what callables return besides plain data: numbers and mappings of other libraries."""
    if isinstance(value, Mapping):
        return dict(value)
    if isinstance(value, Real):
        return float(value)
    return show(value)


def _read_entry(entry: Entry, questions: Batch) -> tuple[Answers, str | None] | None:
    """Read a kept answer; one that cannot be read (another version wrote it) counts as absent."""
    try:
        kept = json.loads(entry.body)
        return read_answers(kept["answers"], questions), kept["model"]
    except (AskError, ValueError, KeyError, TypeError):
        return None
