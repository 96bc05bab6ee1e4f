"""Plans for tests, made by hand. Fields that a test does not name do not matter to it."""

from sluice.core.copy.plan import SegmentPlan, SourceStream, StreamPlan
from sluice.core.scope.scope import ScopePlan
from sluice.core.values.model import KeyRange, StoreAddress, StreamConfig, StreamName
from sluice.core.workloads.plan import ScopeCopyPlan, StreamCopyPlan

COPY = "ab" * 16
SOURCE = StreamName(scope="in", stream="s")
TARGET = StreamName(scope="out", stream="t")
ADDRESS = StoreAddress(uri="tcp://model:1")


def segment_plan(
    end: int, *, start: int = 0, cuts: tuple[int, ...] = (), events: int | None = 1, number: int = 0
) -> SegmentPlan:
    """Return a segment's plan. `stream_plan` gives it its keys."""
    return SegmentPlan(
        id=number,
        keys=KeyRange(low=0, high=1),
        start=start,
        end=end,
        created=1_000 + number,
        events=events,
        cuts=cuts,
    )


def stream_plan(
    *segments: SegmentPlan,
    copy: str = COPY,
    source: StreamName = SOURCE,
    target: StreamName = TARGET,
    verify: bool = True,
) -> StreamPlan:
    """Return a stream's plan, in which the segments share the keys equally."""
    count = len(segments)
    return StreamPlan(
        copy_id=copy,
        sources=(SourceStream(stream=source),),
        target=target,
        segments=tuple(
            segment.model_copy(update={"keys": KeyRange(low=i / count, high=(i + 1) / count)})
            for i, segment in enumerate(segments)
        ),
        config=StreamConfig(tags=("team=a",)),
        verify=verify,
    )


def whole_plan(*streams: StreamPlan) -> StreamCopyPlan:
    """Return a plan of these streams within one store."""
    return StreamCopyPlan(sources=(ADDRESS,), target=ADDRESS, streams=streams)


def whole_scope(scope: ScopePlan, *streams: StreamPlan) -> ScopeCopyPlan:
    """Return a plan of these streams of a scope within one store."""
    return ScopeCopyPlan(sources=(ADDRESS,), target=ADDRESS, streams=streams, scope=scope)
