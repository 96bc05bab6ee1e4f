"""Measure how far a scope is whose streams are followed, by what its stores hold."""

from __future__ import annotations

import time
from collections import Counter
from typing import TYPE_CHECKING, Final, NamedTuple

from sluice.core.follow.ending import CUT_OVER, SEALED
from sluice.core.follow.lag import (
    FAILURES,
    NOTHING_LEFT,
    WORST,
    Followed,
    FollowedStreams,
    Samples,
    StreamLag,
)
from sluice.core.scope.progress import Progress
from sluice.core.scope.scope import StreamState
from sluice.core.workloads.scope_log import ScopeState, run_of
from sluice.engine.scope.following.looking import Looks
from sluice.engine.scope.object_log import log_of

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from sluice.core.follow.course import Reach
    from sluice.core.follow.lag import Age
    from sluice.core.scope.scope import StreamResult
    from sluice.core.workloads.plan import ScopeCopyPlan
    from sluice.stores.base import Source, Store

_SAMPLES: Final = 16
"""Samples that are kept: each may have all segments of all streams."""

_WHOLE: Final = -1
"""Stands for the segments of a stream that is not live yet."""


class _SeenStreams(NamedTuple):
    """The streams that have not ended, by their places.

    Attributes:
        reaches: how far those are that are live.
        missing: bytes that the targets of the others lack.
        unknown: how many were not looked at yet, where the whole is live.
        live: whether the whole is live.
    """

    reaches: Mapping[int, Reach]
    missing: Mapping[int, int]
    unknown: int
    live: bool

    @property
    def ends(self) -> dict[tuple[int, int], int]:
        """The offset at which each segment of a source ends, by place and segment."""
        ends = {
            (place, segment): end
            for place, reach in self.reaches.items()
            for segment, end in reach.ends.items()
        }
        # Before the whole is live, others are still waited for in any case.
        return ends | dict.fromkeys(((place, _WHOLE) for place in self.missing if self.live), 1)

    def has(self, key: tuple[int, int], end: int) -> bool:
        """Tell whether the target has a segment's bytes up to an offset. One that ended has all."""
        place, segment = key
        reach = self.reaches.get(place)
        if reach is None:
            return place not in self.missing
        return segment == _WHOLE or reach.has(segment, end)

    def has_compared(self, key: tuple[int, int], end: int) -> bool:
        """Tell whether a segment's bytes in the target were compared up to an offset."""
        place, segment = key
        reach = self.reaches.get(place)
        if reach is None:
            return place not in self.missing
        return segment == _WHOLE or reach.has_compared(segment, end)

    @property
    def lags(self) -> dict[int, int]:
        """Bytes that the target of each stream lacks, of those that lack some."""
        behind = {place: reach.lag for place, reach in self.reaches.items() if reach.lag}
        return behind | {place: lag for place, lag in self.missing.items() if lag and self.live}


class FollowedScopeWatch:
    """Measures the progress of a scope whose streams are followed.

    It has to be asked again and again: seconds follow from what it was told before.

    Args:
        plan: the plan of the scope.
        source: the store of the sources.
        target: the target store.
        clock: gives seconds, from any time on.
    """

    def __init__(
        self,
        plan: ScopeCopyPlan,
        source: Source,
        target: Store,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self._plan = plan
        self._stores = source, target
        self._clock = clock
        self._log = log_of(target, plan.scope.scope_id, plan.scope)
        self._told: tuple[object, tuple[StreamResult, ...]] = (None, ())
        self._begin(run_of(plan))

    def _begin(self, run: int) -> None:
        self._run = run
        self._looks = Looks(*self._stores)
        self._behind = Samples[tuple[int, int]](_SAMPLES)
        self._unproved = Samples[tuple[int, int]](_SAMPLES)

    def measure(self) -> Progress:
        """Measure the progress now.

        Raises:
            JournalDamaged: the scope's log cannot be read.
            BackendError: a store refused a call or did not answer it.
        """
        state = self._log.load()
        if state is None or state.run < self._run:  # no driver has begun this run
            counts = ScopeState(self._plan).counts
            return Progress(0, self._plan.bytes, published=False, streams=counts)
        if state.run > self._run:
            self._begin(state.run)
        items = state.plan.items
        left = [place for place in range(len(items)) if place not in state.results]
        self._looks.look(items, [] if state.stopped else left)
        return self._progress(state, self._seen(state, left))

    def _seen(self, state: ScopeState, left: list[int]) -> _SeenStreams:
        """Return what the last look has shown.

        A stream that was not looked at yet is most likely live where the whole is.
        """
        reaches = {place: stream.reach for place, stream in self._looks.live.items()}
        staged, items = self._looks.staged, state.plan.items
        others = [place for place in left if place not in reaches]
        coming = [place for place in others if place in staged or not state.live]
        missing = {place: max(0, items[place].bytes - staged.get(place, 0)) for place in coming}
        return _SeenStreams(reaches, missing, len(others) - len(coming), state.live)

    def _progress(self, state: ScopeState, seen: _SeenStreams) -> Progress:
        reaches, results = seen.reaches.values(), state.results.values()
        copied = sum(one.bytes for one in results if one.state is StreamState.COPIED)
        position = copied + sum(reach.position for reach in reaches)
        position += sum(self._looks.staged.values())
        lag = sum(reach.lag for reach in reaches) + sum(seen.missing.values())
        now, counts = self._clock(), state.counts
        streams = self._streams(state, seen)
        follow = Followed(
            live=state.live,
            position=position,
            proved=copied + sum(reach.proved for reach in reaches),
            lag_bytes=lag,
            lag=_known(self._behind.read(now, seen.ends, seen.has), seen),
            unproved=_known(self._unproved.read(now, seen.ends, seen.has_compared), seen),
            segments=sum(len(reach.course.ways) for reach in reaches),
            ended=sum(reach.course.ended for reach in reaches),
            sealed=bool(streams.sealed) and streams.sealed == streams.total - streams.failed,
            stopped=_stopped(state),
            wish=state.wish,
            claims=state.claims,
            streams=streams._replace(worst=self._worst(state, seen, now)),
            results=self._results(state, seen) if state.live else None,
        )
        return Progress(
            bytes=position,
            total=position + lag,
            published=state.is_over and counts.copied == counts.total,
            streams=counts,
            follow=follow,
        )

    def _streams(self, state: ScopeState, seen: _SeenStreams) -> FollowedStreams:
        """Count the streams, and name those that failed."""
        counts = state.counts
        ended = Counter(one.ended for one in state.results.values())
        sealed = sum(stream.sealed for stream in self._looks.live.values())
        failures = (
            one
            for one in (*state.results.values(), *state.plan.scope.settled)
            if one.state is StreamState.FAILED
        )
        return FollowedStreams(
            followed=len(seen.reaches) + seen.unknown,
            coming=len(seen.missing),
            ended=counts.copied,
            failed=counts.failed,
            joined=state.joined,
            sealed=sealed + ended[CUT_OVER] + ended[SEALED],
            failures=tuple(sorted(failures, key=lambda one: one.stream)[:FAILURES]),
        )

    def _results(self, state: ScopeState, seen: _SeenStreams) -> tuple[StreamResult, ...]:
        """Return all streams, for people. They are made anew if some have joined, or changed."""
        key = state.run, state.known, len(state.results), frozenset(seen.missing)
        if self._told[0] != key:
            places = set(range(len(state.plan.items))) - state.results.keys() - seen.missing.keys()
            followed = {"state": StreamState.FOLLOWED}
            results = tuple(
                result.model_copy(update=followed) if place in places else result
                for place, result in enumerate(state.streams)
            )
            self._told = key, results
        return self._told[1]

    def _worst(self, state: ScopeState, seen: _SeenStreams, now: float) -> tuple[StreamLag, ...]:
        """Return the streams that are furthest behind: whose missing bytes are oldest, or most."""
        ages: dict[int, float] = {}
        for (place, _), age in self._behind.ages(now, seen.has).items():
            ages[place] = max(age, ages.get(place, 0.0))
        lags = seen.lags
        worst = sorted(lags, key=lambda place: (-ages.get(place, 0.0), -lags[place], place))[:WORST]
        items = state.plan.items
        return tuple(
            StreamLag(items[place].name, lags[place], ages.get(place, 0.0)) for place in worst
        )


def _known(age: Age, seen: _SeenStreams) -> Age:
    """Return an age, which is not certain while some streams were not looked at."""
    return age._replace(certain=age.certain and not seen.unknown)


def _stopped(state: ScopeState) -> str | None:
    """Return why no stream is followed any more; None while some are."""
    if not state.is_over:
        return None
    return next((one.ended for one in state.results.values() if one.ended), NOTHING_LEFT)
