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
from .provider import worker_input, worker_output
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
            first = worker_input(self.config)["workerid"] == "gw0"
            if first and not hasattr(self.client.model, "url"):
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
        self.free: list[list[int]] = []
        self.shares: dict[str, list[int]] = {}

    @pytest.hookimpl(optionalhook=True)
    def pytest_xdist_setupnodes(self, specs: Sequence[Any]) -> None:
        """Share out the slots and send the opening request. Raises UsageError for more workers than slots."""
        n = len(specs)
        if self.slots and n > len(self.slots):
            raise pytest.UsageError(
                f"-n {n}: the model has {len(self.slots)} slots, fewer than workers. Use -n {len(self.slots)} "
                "(or -n auto), or give it more slots: further replicas in --jev-url, or a larger --jev-per-replica"
            )
        self.free = [self.slots[i::n] for i in range(n)]
        if not self.config.option.collectonly and options.given(self.config, "url")[0]:
            self.open(self.run.plan.tests)

    @pytest.hookimpl(optionalhook=True)
    def pytest_configure_node(self, node: Any) -> None:
        """Give a worker a free share of the slots; a worker that replaces a crashed one gets that one's."""
        if self.free:
            share = self.shares[node.gateway.id] = self.free.pop(0)
            node.workerinput["jev_slots"] = share

    @pytest.hookimpl(optionalhook=True)
    def pytest_testnodedown(self, node: Any) -> None:
        """Take the slots back and add the last counts; a worker that crashed sends none."""
        share = self.shares.pop(node.gateway.id, None)
        if share is not None:
            self.free.append(share)
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

    workers = len(config.option.tx)
    prefix = f"{escaped(suite)}::"

    class CaseScheduling(LoadScopeScheduling):  # type: ignore[misc] # xdist is not typed
        """Scopes are shards of cases; other tests are kept together by file."""

        def _split_scope(self, nodeid: str) -> str:
            if not nodeid.startswith(prefix):
                return nodeid.split("::", 1)[0]
            return shard(nodeid.split("::", 2)[-1].partition("[")[0], workers)

        def remove_node(self, node: Any) -> Any:
            """Count the test that crashed its worker as done: run again, it would crash the next worker, too."""
            work = self.assigned_work.get(node, {}).values()
            pending = ((tests, test) for tests in work for test, done in tests.items() if not done)
            found = next(pending, None)
            if found is not None:
                found[0][found[1]] = True
            super().remove_node(node)
            return found[1] if found is not None else None

    return CaseScheduling(config, log)
