"""Make the work for each stream of a scope: a copy, restore, archive, or move into an archive."""

from __future__ import annotations

import time
from contextlib import suppress
from typing import TYPE_CHECKING, Any, Final

from sluice.archive.formats.piece import OBJECT
from sluice.archive.runs.archive_root import ArchiveRoot
from sluice.archive.runs.source import ArchivedStore
from sluice.core.copy.missing_journal import REMEDY
from sluice.core.copy.plan import StreamPlan
from sluice.core.events.digest import CHUNK
from sluice.engine.access import parallel
from sluice.engine.access.source_runs import live, root, run_stores
from sluice.engine.archive.archive_run import ArchiveCopy
from sluice.engine.archive.moving import ArchiveMove
from sluice.engine.copy.stream_copy import StreamCopyWork
from sluice.engine.scope.planners.base import is_for_all
from sluice.engine.slices.read_leases import Readings
from sluice.engine.tasks.executor import InlineExecutor
from sluice.errors import CopyAborted, SluiceError, TargetLost

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Sequence

    from sluice.core.workloads.plan import ScopeCopyPlan
    from sluice.engine.access.source_runs import Place
    from sluice.engine.tasks.clock import Clock
    from sluice.engine.tasks.throttle import RateLimiter
    from sluice.engine.tasks.work import Work

HOLD_AGAIN: Final = 3 * 3600.0
"""Seconds after which waiting streams take the leases of the runs that they read again."""


class ScopeStreams:
    """The streams of a scope's plan, between two places.

    Args:
        plan: the recorded plan.
        sources: the places to read from, as the plan numbers them.
        target: the place to write to.
        clock: time.
    """

    def __init__(
        self, plan: ScopeCopyPlan, sources: Sequence[Place], target: Place, clock: Clock = time
    ) -> None:
        self._plan = plan
        self._sources = sources
        self._target = target
        self._clock = clock
        self._restores = any(isinstance(one, ArchiveRoot) for one in sources)
        self._held_at = clock.monotonic()
        self._held: dict[int, tuple[str, ...]] = {}

    def make_scope(self) -> None:
        """Make the target's scope, if it does not exist. Only for targets in live stores."""
        live(self._target).create_scope(self._plan.scope.target)

    def without_log(self) -> SluiceError:
        """Return the failure of a copy whose log is gone. No abort deletes the target's scope."""
        scope = self._plan.scope
        if not (isinstance(self._target, ArchiveRoot) or self._target.scope_exists(scope.target)):
            return TargetLost(
                f"the store has neither the scope {scope.target} nor the log of the copy to it, "
                "which were there before"
            )
        return CopyAborted(
            f"the log of the copy of scope {scope.source} is gone: the copy was aborted while it "
            "ran, or the store has lost its data",
            remedy=REMEDY,
        )

    def probe(self) -> None:
        """Probe all places. Raise the first error that one answers with."""
        for place in (*self._sources, self._target):
            place.probe()

    def undertaking(self, place: int) -> Work[Any, Any]:
        """Return the work for the stream at a place of the plan."""
        item = self._plan.items[place]
        if isinstance(item, StreamPlan):
            alone = len(self._plan.items) == 1
            target = live(self._target)
            return StreamCopyWork(item, place, self._sources, target, alone=alone)
        archive = root(self._target).archive(item.path)
        run = ArchiveCopy(item, [live(one) for one in self._sources], archive, place)
        return ArchiveMove(run) if self._plan.scope.move else run

    @property
    def unit(self) -> int:
        """Bytes after which a task can end; see Scheduler."""
        return OBJECT if isinstance(self._target, ArchiveRoot) else CHUNK

    def inline(self, undertaking: Work[Any, Any], slots: int, pace: RateLimiter) -> InlineExecutor:
        """Return an executor that runs slices of one stream in the calling thread."""
        return InlineExecutor(undertaking.sources, self._target, slots=slots, pace=pace)

    def hold(self, places: Iterable[int]) -> None:
        """Take leases on the archive runs of these streams, so that no sweep deletes them.

        A run that is gone already raises nothing here: its stream fails at its turn.
        """
        self._held_at = self._clock.monotonic()
        if self._restores:
            parallel.each(self._hold, [*places])

    def hold_on(self, waiting: Callable[[], Iterable[int]]) -> None:
        """Take the leases of waiting streams again, if it is time to."""
        if self._clock.monotonic() - self._held_at > HOLD_AGAIN:
            with suppress(SluiceError):  # leases count for a day, so there is time to try again
                self.hold(waiting())

    def release(self, places: Iterable[int]) -> None:
        """Give back the leases of these streams."""
        if self._restores:
            parallel.each(self._release, [*places])

    def give_back_all(self, places: Iterable[int]) -> None:
        """Delete all leases for these streams, of earlier drivers as well.

        No driver may be at work on them.
        """
        if self._restores:
            parallel.each(lambda place: self._readings(place).give_back(), [*places])

    def _hold(self, place: int) -> None:
        before = self._held.get(place, ())
        readings = self._readings(place)
        try:
            readings.renew()
        except SluiceError as error:
            if is_for_all(error):
                raise
        # Keep names only: a reader of a run holds its manifest in memory, and connections.
        self._held[place] = readings.names
        self._delete(place, before)

    def _release(self, place: int) -> None:
        with suppress(SluiceError):  # a lease that stays expires in a day
            self._delete(place, self._held.pop(place, ()))

    def _delete(self, place: int, names: Sequence[str]) -> None:
        """Delete leases of a stream."""
        item = self._plan.items[place]
        if names and isinstance(item, StreamPlan):
            for one in run_stores(item, self._sources):
                if isinstance(one, ArchivedStore):
                    one.archive.objects.delete(names)

    def _readings(self, place: int) -> Readings:
        item = self._plan.items[place]
        stores = run_stores(item, self._sources) if isinstance(item, StreamPlan) else []
        return Readings(item.copy_id, stores)
