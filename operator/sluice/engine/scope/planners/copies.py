"""Plan the copies of streams to a scope: find which are done, and take the others' bounds."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final, NamedTuple

from sluice.core.copy.planner import part_size, plan_stream
from sluice.core.scope.scope import StreamResult, StreamState
from sluice.core.values import identity
from sluice.core.values.identity import TAG_MANAGED
from sluice.core.values.model import StreamName
from sluice.core.workloads.answers import UNVERIFIED
from sluice.engine.access import parallel
from sluice.engine.copy.bounds import bounds_of, bounds_together
from sluice.engine.copy.completion import whole
from sluice.engine.copy.planning import begun, refuse_itself, refuse_unfollowable, taken
from sluice.engine.scope.planners.base import (
    Fresh,
    Item,
    LivePlanner,
    ScopePlanner,
    failed,
    few,
    in_the_making,
    is_for_all,
)
from sluice.errors import ScopeNotFound, SluiceError, TargetExists

if TYPE_CHECKING:
    from collections.abc import Sequence

    from sluice.core.copy.planner import SeenSegment
    from sluice.core.scope.request import ScopeRequest
    from sluice.core.scope.selection import Chosen
    from sluice.core.values.model import StreamConfig
    from sluice.core.workloads.answers import Complete
    from sluice.stores.base import Source, Store
    from sluice.stores.reading import Stream

_TOGETHER: Final = 64
"""How many streams' bounds are taken together."""


class _Bound(NamedTuple):
    """A stream with its bounds."""

    fresh: Fresh
    config: StreamConfig
    segments: Sequence[SeenSegment]


def copied(stream: str, target: str, complete: Complete) -> StreamResult:
    """Return the result of a stream whose target is complete."""
    return StreamResult(
        stream=stream,
        target=target,
        state=StreamState.COPIED,
        bytes=complete.bytes or 0,
        events=complete.events,
        digest=None if complete.digest == UNVERIFIED else complete.digest,
        lost=sum(gap.length for gap in complete.gaps),
    )


class ToScope(ScopePlanner):
    """A planner for copies to a scope of a live store. Subclasses say where streams are read."""

    target: Store

    def there(self) -> list[str] | None:
        """List all streams of the target's scope; None if the scope does not exist."""
        try:
            return self.target.list_streams(self.request.target, internal=True)
        except ScopeNotFound:
            return None

    def exist(self, exists: Sequence[Chosen]) -> SluiceError:
        """Return the error that these streams exist, and this copy did not make them."""
        what = "stream is" if len(exists) == 1 else "streams are"
        names = few([one.target for one in exists])
        return TargetExists(
            f"{len(exists)} {what} in the scope {self.request.target} already, and this copy did "
            f"not make them: {names}",
            field="spec.onExists",
            remedy="Take onExists: Skip to leave them out or Append to append to them, or rename.",
        )

    def _stand(self, one: Chosen) -> Item | StreamResult | Fresh | None:
        wanted = self.request.of(*one)
        try:
            config = self.target.configuration(wanted.target)
            if config is not None and not identity.is_ours(config.tags, wanted.copy_id):
                if not wanted.append:
                    return None
                if identity.is_followed(config.tags):
                    return failed(*one, taken(wanted.target))
                if identity.is_unfinished(config.tags):
                    return failed(*one, in_the_making(wanted.target))
            found = begun(wanted, self.target)
            if found.digest is None:
                return found.plan or Fresh(one, found.append)
            known = self.known.get(wanted.copy_id)
            complete = whole(wanted, self.target, found.digest, known=known, receipt=found.receipt)
        except SluiceError as error:
            if is_for_all(error):
                raise
            return failed(*one, error)
        return copied(*one, complete)

    def _ours(self, there: Sequence[str]) -> list[str]:  # noqa: ARG002 - the store knows
        return self.target.list_streams(self.request.target, TAG_MANAGED)

    def _has_made(self, target: str, stream: str) -> bool:
        config = self.target.configuration(StreamName(scope=self.request.target, stream=target))
        tags = () if config is None else config.tags
        copy_id = identity.stream_copy_id(self.request.scope_id, stream)
        return identity.completed(tags, copy_id) is not None


class CopyPlanner(ToScope, LivePlanner):
    """A planner for the copy of a scope to another scope.

    Args:
        request: the copy to plan.
        source: the store to read from.
        target: the store to write to.
    """

    def __init__(self, request: ScopeRequest, source: Source, target: Store) -> None:
        LivePlanner.__init__(self, request, source)
        self.target = target

    def bind(self, fresh: Sequence[Fresh]) -> None:
        """Take the bounds of streams, cut them into parts, and plan the copies."""
        bound: list[_Bound] = []
        for group in parallel.each(self._bound, [*parallel.batches(self._ready(fresh), _TOGETHER)]):
            for found in group:
                if isinstance(found, StreamResult):
                    self.settled.append(found)
                else:
                    bound.append(found)
        # Parts only serve to keep all tasks busy, so their size follows from all streams together.
        total = sum(segment.end - segment.start for one in bound for segment in one.segments)
        size = part_size(total, self.request.tasks, self.request.part_bytes)
        for each in bound:
            self._plan(each, size)

    def _plan(self, bound: _Bound, part_bytes: int) -> None:
        (chosen, append), config, segments = bound
        wanted = self.request.of(*chosen)
        wanted = wanted.model_copy(update={"part_bytes": part_bytes, "tasks": 1})
        try:
            refuse_unfollowable(wanted)
            plan = plan_stream(wanted, config=config, seen=segments, append=append)
            refuse_itself(plan, self.target)
        except SluiceError as error:
            self.fail(chosen, error)
        else:
            self.plans.append(plan)

    def _bound(self, streams: Sequence[tuple[Fresh, Stream]]) -> list[_Bound | StreamResult]:
        """Take the bounds of some streams. A stream without bounds gets a failed result instead."""
        self._take()
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
        self._take()
        return found

    def _alone(self, one: Fresh) -> _Bound:
        """Describe a stream that changed since it was seen once more, and take its bounds."""
        stream = self._describe(one.chosen.stream)
        if isinstance(stream, SluiceError):
            raise stream
        (source,) = self.request.of(*one.chosen).sources
        return _Bound(one, stream.config, bounds_of(source, self.source, stream))
