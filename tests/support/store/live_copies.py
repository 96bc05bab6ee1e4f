"""Copies that follow their source on a real store, by a follower in a thread of the test."""

from __future__ import annotations

import threading
from typing import TYPE_CHECKING, Self

from sluice.core.values import identity
from sluice.core.values.model import StreamName
from sluice.engine.follow.work import FollowWork
from sluice.engine.tasks.executor import InlineExecutor
from sluice.engine.tasks.limits import Limits
from sluice.engine.tasks.runner import Runner
from sluice.pipelines.programs.stores import Stores
from support.store.inline import SETTINGS, job_of
from support.until import PATIENCE, until

if TYPE_CHECKING:
    from sluice.engine.copy.report import StreamReport
    from support.command.sluice_command import Copy


class _Killed(Exception):
    """The exception that ends a follower at the test's request."""


class Follower:
    """A follower that runs until it ends by itself, or until the block's end.

    Args:
        copy: the copy that it works on.

    Attributes:
        report: its report, once it has ended by itself.
    """

    def __init__(self, copy: Copy) -> None:
        self.report: StreamReport | None = None
        self._copy = copy
        self._job = job_of(copy)  # each access writes the file anew
        self._stop = threading.Event()
        self._thread = threading.Thread(target=self._run, name="follower")

    def __enter__(self) -> Self:
        """Start the follower, and wait until its target is live."""
        self._thread.start()
        until("the copy is live", lambda: is_live(self._copy) or not self._thread.is_alive())
        return self

    def __exit__(self, *_: object) -> None:
        """Kill the follower, if it still runs."""
        self._stop.set()
        self._thread.join(PATIENCE)
        assert not self._thread.is_alive()

    def ended(self) -> StreamReport:
        """Wait until the follower ends by itself, and return its report."""
        self._thread.join(PATIENCE)
        assert self.report is not None
        return self.report

    def _limits(self) -> Limits:
        if self._stop.is_set():
            raise _Killed
        return Limits()

    def _run(self) -> None:
        job = self._job
        with Stores(SETTINGS) as stores:
            planned = job.plan(stores).plan
            assert planned is not None
            source, target = stores[job.sources[0]], stores[job.target]
            work = FollowWork(planned.streams[0], [source], target, limits=self._limits, every=1.0)
            runner = Runner([work], executor=InlineExecutor([source], target))
            try:
                (self.report,) = runner.run()
            except _Killed:
                return


def is_live(copy: Copy) -> bool:
    """Tell whether the tags of a copy's target say that it follows its source."""
    job = job_of(copy)
    return identity.is_live(tags_of(copy, copy.target), job.request.copy_id)


def tags_of(copy: Copy, stream: tuple[str, str]) -> tuple[str, ...]:
    """Return the tags of a stream in the store of a copy; none if there is no such stream."""
    with Stores(SETTINGS) as stores:
        name = StreamName(scope=stream[0], stream=stream[1])
        found = stores[job_of(copy).target].configuration(name)
    return () if found is None else found.tags
