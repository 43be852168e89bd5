"""Fetching ahead: while one test is judged, the requests of the next ones are in flight, in their order."""

from __future__ import annotations

from collections.abc import Sequence

from .client import Client
from .plan import Test

AHEAD = 4
"""Requests under way for each slot: enough that no slot waits for the judge, few enough to drop at once."""
FURTHEST = 16
"""Tests ahead for each slot: where the cache answers, or everything fails at once, nothing is under way for long."""


class Prefetcher:
    """Keeps a bounded number of requests of upcoming tests under way. Called only from the thread that judges."""

    def __init__(self, client: Client, tests: Sequence[Test]) -> None:
        self._client = client
        self._tests = tests
        self._places = {id(test): i for i, test in enumerate(tests)}
        self._next = 0
        self._window = AHEAD * client.pool.slots
        self._furthest = FURTHEST * client.pool.slots

    def __contains__(self, test: Test) -> bool:
        return id(test) in self._places

    def advance(self, test: Test) -> None:
        """Send the requests of a test that begins, then those of the next ones, as far as the window goes."""
        place = self._places[id(test)]
        self._next = max(self._next, place)
        end = min(place + self._furthest, len(self._tests))
        while self._next < end and self._client.under_way < self._window:
            upcoming = self._tests[self._next]
            self._next += 1
            self._client.fetch_ahead(upcoming.case.state, upcoming.case.questions)
            for trial in upcoming.trials():
                for batch in trial.requests.values():
                    self._client.fetch_ahead(upcoming.case.state, batch)
