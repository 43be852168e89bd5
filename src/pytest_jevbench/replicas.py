"""The replicas of one model at work: a daemon thread for each slot, so that a stuck request never delays the exit.

A job takes a free slot and holds it until its answer is there; a replica never has more jobs than slots. A
replica that cannot be reached is left aside while others live: its job goes to them, and it is tried again after a
pause. A single model in this process needs no thread: it is called where it is asked.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Sequence
from concurrent.futures import Future
from dataclasses import dataclass, field
from itertools import count
from typing import Any

from .errors import AskError
from .model.base import Model

Work = Callable[[Model], Any]
NOW, LATER = 0, 1
"""A job that a test waits for goes before one that is fetched ahead."""
FIRST_PAUSE, LONGEST_PAUSE = 1.0, 30.0


@dataclass(order=True, slots=True)
class _Job:
    urgency: int
    number: int
    work: Work = field(compare=False)
    future: Future[Any] = field(compare=False)
    failed_on: set[int] = field(default_factory=set, compare=False)


@dataclass(slots=True)
class _Replica:
    model: Model
    aside_since: float | None = None
    pause: float = field(default_factory=lambda: FIRST_PAUSE)
    times_aside: int = 0


class Pool:
    """Runs jobs on replicas. Without threads (one slot, a model of this process) a job runs in the caller."""

    def __init__(self, replicas: Sequence[Model], slots: Sequence[int] = (), *, min_interval: float = 0.0) -> None:
        self._replicas = [_Replica(model) for model in replicas]
        self._min_interval = min_interval
        self._next_start = 0.0
        self._jobs: list[_Job] = []
        self._numbers = count()
        self._changed = threading.Condition()
        self._closed = False
        each = list(slots) or [1] * len(replicas)
        self.slots = sum(each)
        self.threaded = self.slots > 1 or hasattr(replicas[0], "url")
        if self.threaded:
            for replica, n in zip(self._replicas, each, strict=True):
                for _ in range(n):
                    threading.Thread(target=self._serve, args=(replica,), daemon=True, name="jevbench-slot").start()

    def submit(self, work: Work, future: Future[Any], urgency: int = NOW) -> None:
        """Queue a job; jobs of one urgency start in the order in which they came."""
        if not self.threaded:
            self._pace()
            try:
                future.set_result(work(self._replicas[0].model))
            except BaseException as broken:
                future.set_exception(broken)
                if not isinstance(broken, Exception):
                    raise
            return
        with self._changed:
            if not self._closed:
                self._jobs.append(_Job(urgency, next(self._numbers), work, future))
                # All, because the one that is woken may be aside and only go back to waiting.
                self._changed.notify_all()
                return
        future.set_exception(_ended())

    def hurry(self, future: Future[Any]) -> None:
        """Put a job that was fetched ahead before the others, because a test waits for it now."""
        with self._changed:
            for job in self._jobs:
                if job.future is future:
                    job.urgency = NOW
                    return

    def drop_ahead(self) -> None:
        """Cancel what was queued ahead and has not started."""
        with self._changed:
            ahead = [job for job in self._jobs if job.urgency == LATER]
            self._jobs = [job for job in self._jobs if job.urgency != LATER]
        for job in ahead:
            job.future.cancel()

    def close(self) -> None:
        """Stop taking jobs. Slots with a request in flight are left to end by themselves."""
        self.drop_ahead()
        with self._changed:
            self._closed = True
            left, self._jobs = self._jobs, []
            self._changed.notify_all()
        for job in left:
            job.future.set_exception(_ended())

    def notes(self) -> list[str]:
        """Say which replicas were left aside."""
        found = []
        for replica in self._replicas:
            if replica.times_aside and len(self._replicas) > 1:
                name = getattr(replica.model, "shown_url", replica.model.name)
                now = "still aside at the end" if replica.aside_since is not None else "back since"
                found.append(f"replica {name} was left aside {replica.times_aside} times ({now})")
        return found

    def _serve(self, replica: _Replica) -> None:
        while (job := self._take(replica)) is not None:
            self._pace()
            if not job.future.running() and not job.future.set_running_or_notify_cancel():
                continue
            started = time.monotonic()
            try:
                result = job.work(replica.model)
            except AskError as broken:
                job.failed_on.add(id(replica))
                if broken.unreachable and self._set_aside(replica, started, job):
                    continue
                job.future.set_exception(broken)
            except BaseException as broken:  # noqa: BLE001 - whatever it is, it belongs to who asked
                job.future.set_exception(broken)
            else:
                replica.aside_since = None
                replica.pause = FIRST_PAUSE
                job.future.set_result(result)

    def _take(self, replica: _Replica) -> _Job | None:
        """Wait for a job that this replica has not failed; one that is aside waits while another lives."""
        with self._changed:
            while not self._closed:
                wait = None
                if replica.aside_since is not None and self._others_live(replica):
                    wait = replica.aside_since + replica.pause - time.monotonic()
                job = None if wait is not None and wait > 0 else self._next_for(replica)
                if job is not None:
                    return job
                self._changed.wait(wait if wait is not None and wait > 0 else None)
            return None

    def _next_for(self, replica: _Replica) -> _Job | None:
        job = min((job for job in self._jobs if id(replica) not in job.failed_on), default=None)
        if job is not None:
            self._jobs.remove(job)
        return job

    def _others_live(self, replica: _Replica) -> bool:
        return any(each is not replica and each.aside_since is None for each in self._replicas)

    def _set_aside(self, replica: _Replica, started: float, job: _Job) -> bool:
        """Leave a replica aside and give its job back; False when every replica has failed the job."""
        with self._changed:
            if replica.aside_since is None:
                replica.times_aside += 1
            elif started > replica.aside_since:
                # A probe failed; slots that failed together in one outage do not count as several.
                replica.pause = min(2 * replica.pause, LONGEST_PAUSE)
            replica.aside_since = time.monotonic()
            given_back = len(job.failed_on) < len(self._replicas) and not self._closed
            if given_back:
                job.urgency = NOW
                self._jobs.append(job)
            self._changed.notify_all()
            return given_back

    def _pace(self) -> None:
        """Keep the smallest interval between two starts."""
        if self._min_interval <= 0:
            return
        with self._changed:
            now = time.monotonic()
            start = max(now, self._next_start)
            self._next_start = start + self._min_interval
        time.sleep(max(0.0, start - now))


def _ended() -> AskError:
    return AskError("the run ended before the request was sent")
