"""What becomes of each stream that is chosen of a scope: which are done, and the others' bounds."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING, Final, NamedTuple

from sluice.core import identity, selection
from sluice.core.identity import TAG_MANAGED
from sluice.core.model import StreamName
from sluice.core.planner import part_size, plan_stream
from sluice.core.reconcile.world import UNVERIFIED
from sluice.core.scope import StreamResult, StreamState
from sluice.core.selection import Chosen
from sluice.core.trouble import Trouble
from sluice.engine import pool
from sluice.engine.bounds import bounds_of, bounds_together
from sluice.engine.planning import Resolved, begun, refuse_itself
from sluice.engine.whole import whole
from sluice.errors import AuthenticationFailed, SluiceError, SourceNotFound, StoreBusy

if TYPE_CHECKING:
    from collections.abc import Collection, Mapping, Sequence

    from sluice.core.model import StreamConfig
    from sluice.core.plan import StreamPlan
    from sluice.core.planner import SeenSegment
    from sluice.core.reconcile.world import Complete
    from sluice.core.scope_request import ScopeRequest
    from sluice.stores.base import Store, Stream

    Seen = Stream | SluiceError
    """A stream of the source as it is, or why it cannot be seen."""

_TOGETHER: Final = 64
"""Streams whose bounds are asked for in one go."""


class _Fresh(NamedTuple):
    """A stream that is to be bound, and whether its target is appended to."""

    chosen: Chosen
    append: bool


class _Bound(NamedTuple):
    """A stream with its bounds."""

    fresh: _Fresh
    config: StreamConfig
    segments: Sequence[SeenSegment]


def copied(stream: str, target: str, complete: Complete) -> StreamResult:
    """The result of a stream whose target is whole."""
    return StreamResult(
        stream=stream,
        target=target,
        state=StreamState.COPIED,
        bytes=complete.bytes or 0,
        events=complete.events,
        digest=None if complete.digest == UNVERIFIED else complete.digest,
        lost=sum(gap.length for gap in complete.gaps),
    )


def failed(stream: str, target: str, error: SluiceError) -> StreamResult:
    """The result of a stream that cannot be copied. No field of a scope's copy is about it."""
    trouble = Trouble.of(error).model_copy(update={"field": None})
    return StreamResult(stream=stream, target=target, state=StreamState.FAILED, trouble=trouble)


def is_for_all(error: SluiceError) -> bool:
    """Whether an error is about a whole store, rather than one of its streams."""
    return error.retryable or isinstance(error, AuthenticationFailed)


class ScopePlanner:
    """Looks at the streams of a scope and plans them. Nothing is changed.

    Args:
        request: what is wanted.
        source: the store to read from.
        target: the store to write to.

    Attributes:
        plans: of the streams that are to be copied.
        settled: what came of those that are not: their targets are whole, or it cannot be done.
        known: plans of a run before by their copy ids, to hold whole targets against.
    """

    def __init__(self, request: ScopeRequest, source: Store, target: Store) -> None:
        self.request = request
        self.source = source
        self.plans: list[StreamPlan] = []
        self.settled: list[StreamResult] = []
        self.known: Mapping[str, StreamPlan] = {}
        self._target = target
        self._taken: list[int] = []

    @property
    def taken(self) -> tuple[int, int]:
        """When the first and the last bounds were taken; now, where none were."""
        moments = self._taken or [_now()]
        return min(moments), max(moments)

    def fail(self, one: Chosen, error: SluiceError) -> None:
        """A stream cannot be copied."""
        self.settled.append(failed(*one, error))

    def describe(self, streams: Sequence[str]) -> dict[str, Seen]:
        """Streams of the source as they are now."""
        return dict(zip(streams, pool.each(self._describe, streams), strict=True))

    def stand(
        self, chosen: Sequence[Chosen], asked: Collection[Chosen]
    ) -> tuple[list[_Fresh], list[Chosen]]:
        """Look what there is of some streams' copies.

        Args:
            chosen: the streams.
            asked: those of them of which there may be something in the target store.

        Returns:
            Those that are to be bound, and those whose target is there, is somebody's, and is not
            to be appended to.
        """
        found = dict(zip(asked, pool.each(self._stand, [*asked]), strict=True))
        fresh: list[_Fresh] = []
        exists: list[Chosen] = []
        for one in chosen:
            match found.get(one, Resolved(None)):
                case None:
                    exists.append(one)
                case StreamResult() as result:
                    self.settled.append(result)
                case Resolved(plan=plan) if plan is not None:
                    self.plans.append(plan)
                case Resolved(append=append):
                    fresh.append(_Fresh(one, append))
        return fresh, exists

    def moved(self, chosen: Sequence[Chosen], there: Sequence[str]) -> bool:
        """Look for streams that this copy has moved, so that the source has them no more.

        Args:
            chosen: those that the source has.
            there: all streams of the target's scope.

        Returns:
            Whether there are any.
        """
        if not there:
            return False
        known = {one.target for one in chosen}
        ours = self._target.list_streams(self.request.target, TAG_MANAGED)
        found = pool.each(self._origin, [name for name in ours if name not in known])
        gone = [one for one in found if one is not None]
        self.stand(gone, gone)
        return bool(gone)

    def bind(self, fresh: Sequence[_Fresh], seen: Mapping[str, Seen]) -> None:
        """Take the bounds of streams, and plan them.

        Args:
            fresh: the streams.
            seen: each as it is in the source.
        """
        ready: list[tuple[_Fresh, Stream]] = []
        for one in fresh:
            stream = seen[one.chosen.stream]
            if isinstance(stream, SluiceError):
                self.fail(one.chosen, stream)
            elif identity.is_unfinished(stream.config.tags):
                self.fail(one.chosen, _in_the_making(self._name(one.chosen.stream)))
            else:
                ready.append((one, stream))
        bound: list[_Bound] = []
        for group in pool.each(self._bound, [*pool.batches(ready, _TOGETHER)]):
            for found in group:
                if isinstance(found, StreamResult):
                    self.settled.append(found)
                else:
                    bound.append(found)
        # Parts are for tasks that would have nothing to do, so all streams count together.
        total = sum(segment.end - segment.start for one in bound for segment in one.segments)
        size = part_size(total, self.request.tasks, self.request.part_bytes)
        for each in bound:
            self._plan(each, size)

    def _plan(self, bound: _Bound, part_bytes: int) -> None:
        (chosen, append), config, segments = bound
        wanted = self.request.of(*chosen)
        wanted = wanted.model_copy(update={"part_bytes": part_bytes, "tasks": 1})
        try:
            plan = plan_stream(wanted, config=config, seen=segments, append=append)
            refuse_itself(plan, self._target)
        except SluiceError as error:
            self.fail(chosen, error)
        else:
            self.plans.append(plan)

    def _bound(self, streams: Sequence[tuple[_Fresh, Stream]]) -> list[_Bound | StreamResult]:
        """The bounds of some streams; the result of one that cannot be bound."""
        self._taken.append(_now())
        named = [(self._name(one.chosen.stream), stream) for one, stream in streams]
        found: list[_Bound | StreamResult] = []
        for (one, stream), segments in zip(
            streams, bounds_together(named, self.source), strict=True
        ):
            try:
                bound = (
                    self._alone(one) if segments is None else _Bound(one, stream.config, segments)
                )
            except SluiceError as error:
                if is_for_all(error):
                    raise
                found.append(failed(*one.chosen, error))
            else:
                found.append(bound)
        self._taken.append(_now())
        return found

    def _alone(self, one: _Fresh) -> _Bound:
        """A stream that was changed since it was seen, with its bounds as it is now."""
        stream = self._describe(one.chosen.stream)
        if isinstance(stream, SluiceError):
            raise stream
        (source,) = self.request.of(*one.chosen).sources
        return _Bound(one, stream.config, bounds_of(source, self.source, stream))

    def _stand(self, one: Chosen) -> Resolved | StreamResult | None:
        """What there is of a stream's copy; None where its target is there and not ours."""
        wanted = self.request.of(*one)
        try:
            config = self._target.configuration(wanted.target)
            if config is not None and not identity.is_ours(config.tags, wanted.copy_id):
                if not wanted.append:
                    return None
                if identity.is_unfinished(config.tags):
                    return failed(*one, _in_the_making(wanted.target))
            found = begun(wanted, self._target)
            if found.digest is None:
                return found
            known = self.known.get(wanted.copy_id)
            complete = whole(wanted, self._target, found.digest, known=known, receipt=found.receipt)
        except SluiceError as error:
            if is_for_all(error):
                raise
            return failed(*one, error)
        return copied(*one, complete)

    def _origin(self, target: str) -> Chosen | None:
        """The stream of which a target is whole, if this copy has made it."""
        name = StreamName(scope=self.request.target, stream=target)
        config = self._target.configuration(name)
        tags = () if config is None else config.tags
        for stream in selection.origins_of(target, self.request.rename):
            copy_id = identity.stream_copy_id(self.request.scope_id, stream)
            if identity.completed(tags, copy_id) is not None:
                return Chosen(stream, target)
        return None

    def _describe(self, stream: str) -> Seen:
        name = self._name(stream)
        try:
            found = self.source.describe(name)
        except SluiceError as error:
            if is_for_all(error):
                raise
            return error
        gone = SourceNotFound(f"stream {name} does not exist in the source store any more")
        return gone if found is None else found

    def _name(self, stream: str) -> StreamName:
        return StreamName(scope=self.request.source, stream=stream)


def _in_the_making(name: StreamName) -> StoreBusy:
    return StoreBusy(
        f"{name} is being made by another copy",
        remedy="Have what failed tried again when that copy is done.",
    )


def _now() -> int:
    """Milliseconds since 1970."""
    return time.time_ns() // 1_000_000
