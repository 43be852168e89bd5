"""The part a process plays: alone, a worker of pytest-xdist, or their controller. Each role is a class.

Workers judge and let results and counts ride on their reports; the controller records, scores and writes the card. It
shares the slots of a served model out to the workers and opens the model before any worker starts; a model in the
process (a function, an embedded one) exists once in each worker and is opened there.
"""

from __future__ import annotations

import zlib
from collections.abc import Sequence
from typing import Any

import pytest

from . import options
from .plan import Test
from .provider import too_many_workers, worker_input, worker_output
from .session import JevSession

SHARDS = 4
"""Shards of cases a worker: all tests of a case run on one worker, where its source output is known."""


def make_session(config: pytest.Config, *, items: bool) -> JevSession:
    """Make the session of this process's role. Raises UsageError for a plan that cannot be used."""
    if hasattr(config, "workerinput"):
        return WorkerSession(config, items=items)
    if getattr(config.option, "tx", None) and config.getoption("dist", "no") != "no":
        return ControllerSession(config, items=items)
    return JevSession(config, items=items)


def slots(config: pytest.Config) -> list[int]:
    """Return the slots that workers must share, as indices of replicas; empty where each has a model of its own."""
    per_replica = options.connection(config).per_replica
    if options.given(config, "url")[0]:
        return list(range(len(options.names(config, "url")))) * per_replica
    functions = options.names(config, "callable") if options.given(config, "callable")[0] else []
    return list(range(len(functions))) if len(functions) > 1 else []


def auto_workers(config: pytest.Config) -> int | None:
    """Return how many workers `-n auto` starts: one for each slot of a served model."""
    planned = any(options.typed(config, name) is not None for name in options.PLANS)
    return len(slots(config)) or None if planned else None


def shard(case: str, workers: int) -> str:
    """Return the shard of a case."""
    return f"jevbench-{zlib.crc32(case.encode(errors='surrogatepass')) % (SHARDS * workers)}"


class WorkerSession(JevSession):
    """A worker: it asks and judges, and writes nothing but answers to the cache."""

    def open(self, tests: Sequence[Test]) -> None:
        """Find the model. One that lives in workers is opened by the first, a served one by the controller."""
        try:
            self.opened = self.client is not None
            told = worker_input(self.config)
            if told["workerid"] == "gw0" and not told["jev_opened"]:
                super().open(tests)
        except pytest.UsageError as error:
            # Only the controller can end the session with the right exit code.
            self.unusable = str(error)
            worker_output(self.config)["jevbench_unusable"] = self.unusable
            self.stop(self.unusable)

    def ahead_of(self, test: Test) -> Sequence[Test]:
        """Return the tests of the same shard: this worker will run them after this one."""
        workers = int(worker_input(self.config)["workercount"])
        own = shard(test.case.id, workers)
        return [each for each in self.upcoming if shard(each.case.id, workers) == own]

    def counts(self) -> dict[str, Any] | None:
        """Let what was counted since the last report ride on this one: a crash loses no more."""
        client = self.run.client
        if client is None:
            return None
        model = client.model
        return client.statistics.take() | {"model": [model.name, model.id, model.revision], "notes": []}

    def counts_on(self, report: pytest.TestReport) -> None:
        """Leave the counts on the report: it has yet to travel to the controller."""

    @pytest.hookimpl(tryfirst=True)
    def pytest_sessionfinish(self, session: pytest.Session, exitstatus: int) -> None:
        """Close the cache; the last counts go with the worker's farewell."""
        del exitstatus
        self.close(session)
        last = self.counts()
        if last is not None and self.run.client is not None:
            last["notes"] = self.run.client.pool.notes()
            worker_output(session.config)["jevbench"] = last

    def pytest_terminal_summary(self, terminalreporter: pytest.TerminalReporter) -> None:
        """Print nothing: the controller does."""


class ControllerSession(JevSession):
    """The controller: it opens a served model, shares its slots out, and adds up what workers counted."""

    def __init__(self, config: pytest.Config, *, items: bool) -> None:
        super().__init__(config, items=items)
        self.slots = slots(config)
        self.free: list[int] = []
        self.places: dict[str, int] = {}

    @pytest.hookimpl(optionalhook=True)
    def pytest_xdist_setupnodes(self, specs: Sequence[Any]) -> None:
        """Share out the slots and send the opening request. Raises UsageError for more workers than slots."""
        n = len(specs)
        if self.slots and n > len(self.slots):
            raise pytest.UsageError(str(too_many_workers(n, len(self.slots))))
        self.free = list(range(n))
        if not self.config.option.collectonly and options.given(self.config, "url")[0]:
            self.open(self.run.plan.tests)

    @pytest.hookimpl(optionalhook=True)
    def pytest_configure_node(self, node: Any) -> None:
        """Give a worker a place among the workers; one that replaces a crashed one gets that one's."""
        place = self.places[node.gateway.id] = self.free.pop(0)
        node.workerinput |= {"jev_place": place, "jev_opened": self.opened}

    @pytest.hookimpl(optionalhook=True)
    def pytest_testnodedown(self, node: Any) -> None:
        """Take the place back and add the last counts; a worker that crashed sends none."""
        place = self.places.pop(node.gateway.id, None)
        if place is not None:
            self.free.append(place)
        said = getattr(node, "workeroutput", {})
        self.add_counts(said.get("jevbench"))
        if "jevbench_unusable" in said:
            self.unusable = said["jevbench_unusable"]
            self.stop(self.unusable)

    @pytest.hookimpl(optionalhook=True)
    def pytest_xdist_make_scheduler(self, config: pytest.Config, log: Any) -> Any:
        """Keep the tests of a case on one worker where the way of distributing was not chosen."""
        if config.getoption("dist") != "load" or self.anchor is None:
            return None
        return _case_scheduler(config, log, self.run.source.name)

    def stop(self, reason: str) -> None:
        """End the run of all workers."""
        distributed: Any = self.config.pluginmanager.get_plugin("dsession")
        if distributed is not None:
            distributed.shouldstop = reason


def _case_scheduler(config: pytest.Config, log: Any, suite: str) -> Any:
    from xdist.scheduler import LoadScopeScheduling

    from .plan import escaped

    prefix = f"{escaped(suite)}::"

    class CaseScheduling(LoadScopeScheduling):  # type: ignore[misc] # xdist is not typed
        """Scopes are shards of cases; other tests are kept together by file."""

        def _split_scope(self, nodeid: str) -> str:
            if not nodeid.startswith(prefix):
                return nodeid.split("::", 1)[0]
            return shard(nodeid.split("::", 2)[-1].partition("[")[0], self.numnodes)

        def remove_node(self, node: Any) -> Any:
            """Count the test that crashed its worker as done: run again, it would crash the next worker, too."""
            work = self.assigned_work[node]
            pending = ((tests, test) for tests in work.values() for test, done in tests.items() if not done)
            found = next(pending, None)
            if found is not None:
                found[0][found[1]] = True
            # A unit with nothing left to run would be handed on, and its worker never heard of again.
            self.assigned_work[node] = {scope: tests for scope, tests in work.items() if not all(tests.values())}
            super().remove_node(node)
            return found[1] if found is not None else None

        def _reschedule(self, node: Any) -> None:
            """Hand out work until a worker has some in reserve, and say when it was the last.

            A worker begins a test only when it knows what follows it: one test alone would never begin.
            """
            while self.workqueue and not node.shutting_down and self._pending_of(self.assigned_work[node]) <= 2:
                self._assign_work_unit(node)
            if not self.workqueue:
                node.shutdown()

    return CaseScheduling(config, log)
