"""The part a process plays: alone, a worker of pytest-xdist, or their controller. Each role is a class.

Workers judge and let results ride on their reports; the controller records, scores and writes the card. The model is
opened once, by the controller, before any worker starts.
"""

from __future__ import annotations

from typing import Any

import pytest

from .collect import JevItem
from .session import JevSession


def make_session(config: pytest.Config, suite: str) -> JevSession:
    """Make the session of this process's role. Raises UsageError for a suite that cannot be used."""
    if hasattr(config, "workerinput"):
        return WorkerSession(config, suite)
    if getattr(config.option, "tx", None) and config.getoption("dist", "no") != "no":
        return ControllerSession(config, suite)
    return JevSession(config, suite)


class WorkerSession(JevSession):
    """A worker: it asks and judges, and writes nothing but answers to the cache."""

    def open(self, items: list[JevItem]) -> None:
        """Find the model; the controller has sent the opening request."""
        del items
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
            self.open_case(self.run.plan.tests[0].case)

    @pytest.hookimpl(optionalhook=True)
    def pytest_testnodedown(self, node: Any) -> None:
        """Add the counts of a worker that has ended; one that crashed sends none."""
        counts = getattr(node, "workeroutput", {}).get("jevbench")
        if counts is not None:
            self.client.statistics.add(counts)
