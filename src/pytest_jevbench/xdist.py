"""The part a process plays: alone, a worker of pytest-xdist, or their controller. Each role is a class.

Workers judge and let results ride on their reports; the controller records, scores and writes the card. The model is
opened once, by the controller, before any worker starts.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import pytest

from .plan import Test
from .session import JevSession


def make_session(config: pytest.Config, *, items: bool) -> JevSession:
    """Make the session of this process's role. Raises UsageError for a plan that cannot be used."""
    if hasattr(config, "workerinput"):
        return WorkerSession(config, items=items)
    if getattr(config.option, "tx", None) and config.getoption("dist", "no") != "no":
        return ControllerSession(config, items=items)
    return JevSession(config, items=items)


class WorkerSession(JevSession):
    """A worker: it asks and judges, and writes nothing but answers to the cache."""

    def open(self, tests: Sequence[Test]) -> None:
        """Find the model; the controller has sent the opening request."""
        del tests
        self.opened = self.client is not None

    @pytest.hookimpl(tryfirst=True)
    def pytest_sessionfinish(self, session: pytest.Session, exitstatus: int) -> None:
        """Send the counts to the controller."""
        del exitstatus
        if self.run.client is not None:
            session.config.workeroutput["jevbench"] = self.run.client.statistics.plain()  # type: ignore[attr-defined]

    def pytest_terminal_summary(self, terminalreporter: pytest.TerminalReporter) -> None:
        """Print nothing: the controller does."""


class ControllerSession(JevSession):
    """The controller: it opens the model before the workers start, and adds up what they counted."""

    @pytest.hookimpl(optionalhook=True)
    def pytest_xdist_setupnodes(self) -> None:
        """Send the opening request. Raises UsageError when the model cannot be used."""
        if not self.config.option.collectonly:
            self.open(self.run.plan.tests)

    @pytest.hookimpl(optionalhook=True)
    def pytest_testnodedown(self, node: Any) -> None:
        """Add the counts of a worker that has ended; one that crashed sends none."""
        counts = getattr(node, "workeroutput", {}).get("jevbench")
        if counts is not None:
            self.client.statistics.add(counts)
