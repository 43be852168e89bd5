"""What a run counts: requests, where their answers came from, what was odd about them."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

SUMS = ("sent", "attempts", "refused", "failed", "set_aside")
COUNTERS = ("retries", "tokens", "answered_as")
KEYS = ("asked", "answered", "found")


@dataclass(slots=True)
class Quirks:
    """How often one kind of oddity was seen in answers, and the worst of them."""

    count: int = 0
    worst: float = 0.0
    where: str = ""


@dataclass(slots=True)
class Statistics:
    """Exact counts. Every distinct request ends as answered, found in the cache, refused or failed.

    `asked`, `answered` and `found` hold short digests of requests, so that the counts of several processes can be
    added. `sent` counts requests, `attempts` every try of them; latencies are seconds, retries included.
    """

    asked: set[str] = field(default_factory=set)
    answered: set[str] = field(default_factory=set)
    found: set[str] = field(default_factory=set)
    sent: int = 0
    attempts: int = 0
    refused: int = 0
    failed: int = 0
    set_aside: int = 0
    retries: Counter[str] = field(default_factory=Counter)
    tokens: Counter[str] = field(default_factory=Counter)
    answered_as: Counter[str] = field(default_factory=Counter)
    latencies: list[float] = field(default_factory=list)
    quirks: dict[str, Quirks] = field(default_factory=dict)
    oldest: float | None = None
    newest: float | None = None

    @property
    def distinct(self) -> int:
        """How many distinct requests were asked for."""
        return len(self.asked)

    @property
    def cached(self) -> int:
        """How many distinct requests were answered by the cache and by no replica of this run."""
        return len((self.found & self.asked) - self.answered)

    def take(self) -> dict[str, Any]:
        """Return the counts as plain data, to travel between processes, and begin again at zero."""
        counts: dict[str, Any] = {name: getattr(self, name) for name in SUMS}
        counts |= {name: dict(getattr(self, name)) for name in COUNTERS}
        counts |= {name: sorted(getattr(self, name)) for name in KEYS}
        counts["quirks"] = {kind: [quirk.count, quirk.worst, quirk.where] for kind, quirk in self.quirks.items()}
        counts["latencies"] = list(self.latencies)
        counts["moments"] = [moment for moment in (self.oldest, self.newest) if moment is not None]
        fresh = Statistics()
        for name in self.__slots__:
            setattr(self, name, getattr(fresh, name))
        return counts

    def add(self, other: Mapping[str, Any]) -> None:
        """Add the counts of another process, as `take` gave them."""
        for name in SUMS:
            setattr(self, name, getattr(self, name) + other[name])
        for name in COUNTERS:
            getattr(self, name).update(other[name])
        for name in KEYS:
            getattr(self, name).update(other[name])
        self.latencies += other["latencies"]
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
