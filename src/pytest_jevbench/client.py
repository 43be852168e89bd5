"""The session's one way to ask: every distinct request goes to the model once, and everything is counted.

Answers come from the memory of this run, from the cache, or from the model, in that order. A request that failed is
not sent again in the same run: its error is raised again. One request is in flight at a time.
"""

from __future__ import annotations

import json
import threading
import time
from collections import Counter, OrderedDict
from collections.abc import Mapping, Sequence
from concurrent.futures import Future
from dataclasses import dataclass, field
from itertools import cycle
from numbers import Real
from typing import Any

from .cache import Entry, Store
from .case import Case
from .errors import AskError, ModelError, Refused, show
from .model.base import Model, Reply, Request
from .wire import Answers, Batch, read_answers, sent_form

KEPT_READ = 512
"""Answers kept ready in memory; the units of a suite share requests that are asked close to each other."""


@dataclass(slots=True)
class Statistics:
    """Exact counts of a run: every distinct request ends as cached, answered, refused or failed.

    `asked` holds a short digest of every distinct request, so that the counts of several processes can be added.
    """

    asked: set[str] = field(default_factory=set)
    sent: int = 0
    cached: int = 0
    refused: int = 0
    failed: int = 0
    retries: Counter[str] = field(default_factory=Counter)
    latencies: list[float] = field(default_factory=list)
    tokens: Counter[str] = field(default_factory=Counter)
    answered_as: Counter[str] = field(default_factory=Counter)
    quirks: dict[str, Quirks] = field(default_factory=dict)
    oldest: float | None = None
    newest: float | None = None
    set_aside: int = 0

    @property
    def distinct(self) -> int:
        """How many distinct requests were asked for."""
        return len(self.asked)

    def plain(self) -> dict[str, Any]:
        """Return the counts as plain data, to travel between processes."""
        counts: dict[str, Any] = {name: getattr(self, name) for name in SUMS}
        counts |= {name: dict(getattr(self, name)) for name in COUNTERS}
        quirks = {kind: [quirk.count, quirk.worst, quirk.where] for kind, quirk in self.quirks.items()}
        return counts | {
            "asked": sorted(self.asked),
            "latencies": self.latencies,
            "quirks": quirks,
            "moments": [moment for moment in (self.oldest, self.newest) if moment is not None],
        }

    def add(self, other: Mapping[str, Any]) -> None:
        """Add the counts of another process, as `plain` gave them."""
        self.asked |= set(other["asked"])
        self.latencies += other["latencies"]
        for name in SUMS:
            setattr(self, name, getattr(self, name) + other[name])
        for name in COUNTERS:
            getattr(self, name).update(other[name])
        for kind, (count, worst, where) in other["quirks"].items():
            self.note_quirk(kind, worst, where, count)
        for moment in other["moments"]:
            self.note_moment(moment)

    def note_quirk(self, kind: str, size: float, where: str, count: int = 1) -> None:
        """Count an oddity and keep the worst."""
        seen = self.quirks.setdefault(kind, Quirks())
        seen.count += count
        if (size, where) > (seen.worst, seen.where):
            seen.worst, seen.where = size, where

    def note_moment(self, asked_at: float) -> None:
        """Widen the span of time that kept answers are from."""
        self.oldest = asked_at if self.oldest is None else min(self.oldest, asked_at)
        self.newest = asked_at if self.newest is None else max(self.newest, asked_at)


SUMS = ("sent", "cached", "refused", "failed", "set_aside")
COUNTERS = ("retries", "tokens", "answered_as")


@dataclass(slots=True)
class Quirks:
    """How often one kind of oddity was seen in answers, and the worst of them."""

    count: int = 0
    worst: float = 0.0
    where: str = ""


class Client:
    """Asks replicas of one model, in turn, through a store. The replicas share name, id and revision."""

    def __init__(self, replicas: Sequence[Model], store: Store) -> None:
        self.model = replicas[0]
        self.replicas = tuple(replicas)
        self.statistics = Statistics()
        self._store = store
        self._next = cycle(self.replicas)
        self._turn = threading.Lock()
        self._lock = threading.Lock()
        self._flights: dict[str, Future[Answers]] = {}
        self._read: OrderedDict[str, Answers] = OrderedDict()
        self._from_cache: dict[str, bool] = {}
        self._failures: dict[str, AskError] = {}
        self._sources: dict[str, Answers] = {}
        self._closed = False

    def ask(self, state: Any, questions: Batch, repeat: int = 0) -> Answers:
        """Return the answers to a request. Raises AnswerFormatError, ModelError or Refused."""
        request = Request.of(state, {key: sent_form(question) for key, question in questions.items()})
        return self._once(request, _key(request, repeat))

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
        Raises AnswerFormatError, ModelError or Refused.
        """
        request = Request.of(case.state, {name: sent_form(question) for name, question in case.questions.items()})
        key = _key(request, 0)
        kept = self._store.get(key)
        with self._lock:
            self._count(key)
        try:
            answers, body = self._send(request, key)
        except AskError as broken:
            self._failures[key] = broken
            raise
        if kept is not None and not _same(kept, answers, body, request.questions):
            self.statistics.set_aside = self._store.set_aside()
        self._store.put(key, body)
        with self._lock:
            self._remember(key, answers)
        self._sources[case.id] = answers

    def close(self) -> None:
        """Write what is pending and give connections back."""
        if self._closed:
            return
        self._closed = True
        self._store.close()
        for replica in self.replicas:
            replica.close()

    def _once(self, request: Request, key: str) -> Answers:
        with self._lock:
            self._count(key)
            if key in self._failures:
                known = self._failures[key]
                raise type(known)(*known.args)
            if key in self._read:
                self._read.move_to_end(key)
                return self._read[key]
            flight = self._flights.get(key)
            mine = flight is None
            if flight is None:
                flight = self._flights[key] = Future()
        if not mine:
            return flight.result()
        try:
            answers = self._find(request, key)
        except BaseException as broken:
            with self._lock:
                if isinstance(broken, AskError):
                    self._failures[key] = broken
                del self._flights[key]
            flight.set_exception(broken)
            raise
        with self._lock:
            self._remember(key, answers)
            del self._flights[key]
        flight.set_result(answers)
        return answers

    def _count(self, key: str) -> None:
        self.statistics.asked.add(key[:16] + key[64:])

    def _remember(self, key: str, answers: Answers) -> None:
        self._read[key] = answers
        if len(self._read) > KEPT_READ:
            self._read.popitem(last=False)

    def _find(self, request: Request, key: str) -> Answers:
        entry = self._store.get(key)
        if entry is not None:
            known = _read_entry(entry, request.questions)
            if known is not None:
                answers, model = known
                self._note(key, answers, model, entry)
                return answers
        answers, body = self._send(request, key)
        self._store.put(key, body)
        return answers

    def _send(self, request: Request, key: str) -> tuple[Answers, str]:
        """Ask the next replica; count, read and serialise what it said."""
        stats = self.statistics
        with self._turn:
            replica = next(self._next)
            stats.sent += 1
            started = time.perf_counter()
            try:
                reply = _asked(replica, request)
                stats.retries.update(reply.retries)
                stats.tokens.update({name: n for name, n in reply.usage.items() if type(n) is int})
                answers = _read(reply, request, replica)
            except AskError as broken:
                stats.retries.update(broken.retries)
                if isinstance(broken, Refused):
                    stats.refused += 1
                else:
                    stats.failed += 1
                raise
            stats.latencies.append(time.perf_counter() - started)
        self._note(key, answers, reply.model, None)
        return answers, _body(reply, request)

    def _note(self, key: str, answers: Answers, model: str | None, entry: Entry | None) -> None:
        """Count where an answer came from and what was odd about it, once for each distinct request."""
        stats = self.statistics
        with self._lock:
            if key in self._from_cache:
                return
            self._from_cache[key] = entry is not None
            if entry is not None:
                stats.cached += 1
                stats.note_moment(entry.asked_at)
            if model is not None:
                stats.answered_as[model] += 1
                if model != self.model.id:
                    stats.note_quirk("model", 1.0, model)
            for quirk in answers.quirks:
                stats.note_quirk(quirk.kind, quirk.size, quirk.where)


def _key(request: Request, repeat: int) -> str:
    return f"{request.digest.hex()}:{repeat}"


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


def _same(kept: Entry, answers: Answers, body: str, questions: Batch) -> bool:
    """Say whether a kept answer is what the model says now, under the same name."""
    return _read_entry(kept, questions) == (answers, json.loads(body)["model"])
