"""Showing that a run lives: one line that is rewritten in a terminal, a line every half minute anywhere else.

It writes only from the thread that runs the tests, through pytest's terminal reporter.
"""

from __future__ import annotations

import time
from collections.abc import Callable

import pytest

HEARTBEAT = 30.0
REDRAW = 0.1


class Progress:
    """Counts tests and shows how far the run is; `sent` says how many requests have been sent."""

    def __init__(self, config: pytest.Config, total: int, sent: Callable[[], int]) -> None:
        reporter: pytest.TerminalReporter | None = config.pluginmanager.get_plugin("terminalreporter")
        self._reporter = reporter
        self._total, self._sent = total, sent
        self._done = self._violated = self._errors = 0
        self._started = self._shown = time.monotonic()
        self.live = reporter is not None and config.option.verbose == 0 and reporter.isatty and total > 1
        """Whether the line is rewritten in place, instead of pytest's dots."""

    def count(self, *, violated: bool = False, error: bool = False) -> None:
        """Count a test that has ended."""
        self._done += 1
        self._violated += violated
        self._errors += error
        self.tick()

    def tick(self) -> None:
        """Show the line again when it is time to."""
        now = time.monotonic()
        if self._reporter is None or now - self._shown < (REDRAW if self.live else HEARTBEAT):
            return
        self._shown = now
        if self.live:
            self._reporter.rewrite(self.line(now), erase=True)
        else:
            self._reporter.ensure_newline()
            self._reporter.write_line(f"jevbench: {self.line(now)}")

    def line(self, now: float) -> str:
        """Say how far the run is."""
        seconds = max(now - self._started, 1e-6)
        sent = self._sent()
        parts = [f"{self._done:,} of {self._total:,} tests", f"{self._violated:,} violated"]
        parts += [f"{self._errors:,} errors"] if self._errors else []
        parts.append(f"{sent:,} requests sent, {sent / seconds:.0f}/s")
        if self._done:
            left = seconds * max(0, self._total - self._done) / self._done
            parts.append(f"about {int(left) // 60}:{int(left) % 60:02} left")
        return ", ".join(parts)

    def end(self) -> None:
        """Leave the last line where it is."""
        if self.live and self._reporter is not None:
            self._reporter.rewrite(self.line(time.monotonic()), erase=True)
            self._reporter.write("\n")
