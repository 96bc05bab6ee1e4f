from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sluice.core.copy.plan import SegmentPlan, StreamPlan
from sluice.core.copy.planner import (
    LEAST_PART_BYTES,
    CopyRequest,
    SeenSegment,
    SourceRequest,
    cuts,
    part_size,
    plan_stream,
)
from sluice.core.values.model import (
    KeyRange,
    RetentionType,
    ScaleType,
    Scaling,
    StoreAddress,
    StreamConfig,
    StreamName,
    StreamRetention,
)
from sluice.core.workloads.plan import StreamCopyPlan
from sluice.errors import SourceUnsupported

MIB = 1 << 20
LOGIN = "login"
CHUNK = 8 * MIB
REQUEST = CopyRequest(
    copy_id="ab" * 16,
    sources=(SourceRequest(stream=StreamName(scope="in", stream="s")),),
    target=StreamName(scope="out", stream="t"),
)
offsets = st.integers(0, 1 << 45)


def seen(low: float, high: float, number: int = 0, generation: int = 0) -> SeenSegment:
    """Return a segment of the source with these keys."""
    keys = KeyRange(low=low, high=high)
    return SeenSegment(0, number, keys, generation, None, start=3, end=90, created=7, events=4)


@given(offsets, offsets)
def test_parts_cover_the_range_exactly(start: int, length: int) -> None:
    """The cuts ascend inside the bounds at chunk boundaries, and make at most 64 parts."""
    end = start + length
    made = cuts(start, end)
    assert list(made) == sorted(set(made))
    assert all(start < cut < end and cut % CHUNK == 0 for cut in made)
    assert len(made) < 64
    segment = SegmentPlan(
        id=0,
        keys=KeyRange(low=0, high=1),
        start=start,
        end=end,
        created=0,
        events=0,
        cuts=made,
    )
    parts = segment.parts
    assert [part.number for part in parts] == list(range(len(parts)))
    assert all(part.length > 0 for part in parts)
    edges = [edge for part in parts for edge in (part.start, part.end)]
    inner = [cut for cut in made for _ in range(2)]
    assert edges == ([start, *inner, end] if length else [])


@pytest.mark.parametrize(
    ("start", "end", "expected"),
    [
        (0, 0, ()),
        (5, 5, ()),
        (0, 256 * MIB, ()),
        (0, 256 * MIB + 1, (128 * MIB,)),
        (1, 256 * MIB + 2, (128 * MIB,)),
        (0, 1024 * MIB, (256 * MIB, 512 * MIB, 768 * MIB)),
    ],
)
def test_only_ranges_longer_than_a_part_are_divided(
    start: int, end: int, expected: tuple[int, ...]
) -> None:
    """A range of up to 256 MiB stays whole. A longer one is divided evenly at chunk boundaries."""
    assert cuts(start, end) == expected


@given(offsets, offsets, st.integers(CHUNK, 1 << 30))
def test_parts_are_about_equally_long(start: int, length: int, part_bytes: int) -> None:
    """Parts differ by at most two chunks, and exceed the limit by one chunk unless there are 64."""
    made = cuts(start, start + length, part_bytes)
    edges = [start, *made, start + length]
    sizes = [end - begin for begin, end in pairwise(edges)]
    assert max(sizes) - min(sizes) <= 2 * CHUNK
    assert len(made) == 63 or max(sizes) <= part_bytes + CHUNK


@pytest.mark.parametrize(
    ("size", "tasks", "parts"),
    [
        (1_000_000_000, 1, 4),
        (1_000_000_000, 2, 4),
        (1_000_000_000, 8, 15),
        (1_000_000_000, 64, 30),
        (200 * MIB, 1, 1),
        (200 * MIB, 2, 4),
        (60 * MIB, 4, 2),
        (32 * MIB, 64, 1),
        (40 << 30, 4, 64),
    ],
)
def test_a_segment_is_divided_by_its_size_and_the_tasks(size: int, tasks: int, parts: int) -> None:
    """The numbers of parts include those that `docs/protocol.md` names."""
    one = seen(0, 1)._replace(start=0, end=size)
    request = REQUEST.model_copy(update={"tasks": tasks})
    plan = plan_stream(request, config=StreamConfig(), seen=[one])
    assert len(plan.segments[0].parts) == parts


def test_many_segments_stay_whole() -> None:
    """Sixteen segments of 100 MiB are enough work for four tasks, so none is divided."""
    many = [seen(i / 16, (i + 1) / 16, i)._replace(start=0, end=100 * MIB) for i in range(16)]
    request = REQUEST.model_copy(update={"tasks": 4})
    plan = plan_stream(request, config=StreamConfig(), seen=many)
    assert [segment.cuts for segment in plan.segments] == [()] * 16


@given(st.integers(0, 1 << 45), st.integers(1, 10_000), st.integers(CHUNK, 1 << 30))
def test_every_task_has_its_share_of_a_long_segment(total: int, tasks: int, most: int) -> None:
    """A task gets about two parts, within the bounds of a part's size and of the parts' number."""
    size = part_size(total, tasks, most)
    assert CHUNK <= size <= most
    parts = len(cuts(0, total, size)) + 1
    assert parts <= max(2 * tasks, -(-total // most))
    if tasks > 1 and size > LEAST_PART_BYTES and parts < 64:
        assert total / parts <= -(-total // (2 * tasks)) + 2 * CHUNK or size == most


def test_segments_are_planned_in_the_order_of_their_keys() -> None:
    """The plan sorts segments by their keys, whatever the catalog's order.

    It keeps their bounds.
    """
    plan = plan_stream(
        REQUEST,
        config=StreamConfig(),
        seen=[seen(0.5, 1, 4), seen(0, 0.5, 9)],
    )
    assert [segment.id for segment in plan.segments] == [9, 4]
    assert [(s.start, s.end, s.created, s.events) for s in plan.segments] == [(3, 90, 7, 4)] * 2
    assert (plan.bytes, plan.events) == (174, 8)


@pytest.mark.parametrize("count", [1, 2, 3, 7, 100])
def test_uniform_ranges_are_accepted(count: int) -> None:
    """A new stream's uniform ranges are accepted although their bounds are rounded."""
    ranges = [seen(i / count, min(1.0, i / count + 1 / count), i) for i in range(count)]
    plan = plan_stream(REQUEST, config=StreamConfig(), seen=ranges)
    assert len(plan.segments) == count


def test_a_scaled_source_is_planned_by_generations() -> None:
    """The segments of a scale event keep the store's order.

    They take the keys of those they replace.
    """
    made = [seen(0, 0.5, 0), seen(0.5, 1, 1)]
    made += [seen(0.3, 0.5, 2, 1), seen(0, 0.3, 3, 1)]  # split
    made += [seen(0, 1, 4, 2)]  # merged
    plan = plan_stream(REQUEST, config=StreamConfig(), seen=made)
    assert [segment.id for segment in plan.segments] == [0, 1, 2, 3, 4]
    assert plan.generations == ((0, 1), (2, 3), (4,))
    assert plan.active == ((0, 1), (3, 2, 1), (4,))


@pytest.mark.parametrize(
    "segments",
    [
        [seen(0.5, 1)],
        [seen(0, 0.5), seen(0.6, 1, 1)],
        [seen(0, 1), seen(0, 0.5, 1, 1)],
        [seen(0, 0.5), seen(0.5, 1, 1), seen(0.4, 0.6, 2, 1)],
    ],
    ids=["half missing", "a gap", "half replaced", "parts replaced"],
)
def test_generations_that_do_not_follow_are_refused(segments: list[SeenSegment]) -> None:
    """Key ranges that no scale events can have made raise SourceUnsupported."""
    with pytest.raises(SourceUnsupported) as caught:
        plan_stream(REQUEST, config=StreamConfig(), seen=segments)
    assert caught.value.field == "spec.source.stream"


def test_a_plan_with_uncounted_events_does_not_know_their_number() -> None:
    """If one segment's events are not counted, the plan has no number of events."""
    unknown = seen(0, 0.5)._replace(events=None)
    plan = plan_stream(REQUEST, config=StreamConfig(), seen=[unknown, seen(0.5, 1, 1)])
    assert plan.events is None


configs = st.builds(
    StreamConfig,
    scaling=st.builds(
        Scaling,
        type=st.sampled_from(ScaleType),
        target_rate=st.integers(0, 1 << 31),
        scale_factor=st.integers(0, 10),
        min_segments=st.integers(1, 100),
    ),
    retention=st.builds(
        StreamRetention,
        type=st.sampled_from(RetentionType),
        minimum=st.integers(0, 1 << 62),
        maximum=st.integers(0, 1 << 62),
    ),
    tags=st.lists(st.text(max_size=20), max_size=3).map(tuple),
)


@st.composite
def stream_plans(draw: st.DrawFn) -> StreamPlan:
    """Draw a plan as the planner makes it."""
    count = draw(st.integers(1, 5))
    ranges = []
    for number in range(count):
        start, length = draw(offsets), draw(offsets)
        keys = KeyRange(low=number / count, high=(number + 1) / count)
        events = draw(st.none() | st.integers(0, 1 << 62))
        ranges.append(
            SeenSegment(0, number, keys, 0, None, start, start + length, draw(offsets), events)
        )
    return plan_stream(REQUEST, config=draw(configs), seen=ranges)


@given(stream_plans())
def test_a_plan_survives_json(plan: StreamPlan) -> None:
    """A plan that is read back from its JSON is equal and has the same hash."""
    again = StreamPlan.model_validate_json(plan.model_dump_json())
    assert again == plan
    assert again.hash == plan.hash
    whole = StreamCopyPlan(
        sources=((at := StoreAddress(uri="tcp://a:1", secret=LOGIN)),),
        target=at,
        streams=(plan,),
    )
    read = StreamCopyPlan.model_validate_json(whole.model_dump_json())
    assert read == whole
    assert read.hash == whole.hash


@given(stream_plans(), st.integers(1, 1000))
def test_another_bound_is_another_plan(plan: StreamPlan, more: int) -> None:
    """The hash of a plan changes with its bounds."""
    first = plan.segments[0]
    longer = first.model_copy(update={"end": first.end + more})
    other = plan.model_copy(update={"segments": (longer, *plan.segments[1:])})
    assert StreamPlan.model_validate(other.model_dump()).hash != plan.hash
