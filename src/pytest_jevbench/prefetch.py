"""Fetching ahead: while one test is judged, the requests of the next ones are in flight, in their order."""

from __future__ import annotations

from collections.abc import Iterable

from .client import Client
from .plan import Test

AHEAD = 4
"""Requests under way for each slot: enough that no slot waits for the judge, few enough to drop at once."""


class Prefetcher:
    """Keeps a bounded number of requests of upcoming tests under way. Called only from the thread that judges."""

    def __init__(self, client: Client, tests: Iterable[Test]) -> None:
        self._client = client
        self._tests = iter(tests)
        self._window = AHEAD * client.pool.slots
        self._running = client.pool.threaded

    def advance(self) -> None:
        """Top up what is under way; called when a test begins, after its own requests were made."""
        while self._running and self._client.under_way < self._window:
            test = next(self._tests, None)
            if test is None:
                self._running = False
                return
            self._client.fetch_ahead(test.case.state, test.case.questions)
            for trial in test.trials():
                for batch in trial.requests.values():
                    self._client.fetch_ahead(test.case.state, batch)

    def stop(self) -> None:
        """Drop what has not started; what is in flight ends by itself."""
        self._running = False
        self._client.pool.drop_ahead()
