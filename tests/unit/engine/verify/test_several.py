"""The target of a copy of several streams, compared with them."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from sluice.core.copy.planner import Range, RangeEnd, SourceRequest
from sluice.core.events.digest import combine
from sluice.core.values.model import StreamName
from sluice.core.verify.verification import Result, What
from sluice.core.workloads.plan import StreamCopyPlan
from sluice.engine.copy.planning import resolve
from sluice.engine.tasks.executor import InlineExecutor
from sluice.engine.verify.compare import Subject, compare, match_copy
from support.engine.plans import ADDRESS, COPY, SOURCE, TARGET
from support.engine.runners import copy_runner
from support.engine.sources import REQUEST, events_of, put_scaled_source
from support.engine.verifying import MOVES, SHAPES, of, only
from support.model import ModelStore, World

if TYPE_CHECKING:
    from sluice.core.copy.planner import CopyRequest
    from sluice.core.verify.verification import Verification

SECOND = StreamName(scope="in", stream="second")
THIRD = StreamName(scope="attic", stream="s")


class Stores:
    """Two stores with three streams of the same segment ids, and a copy of all three."""

    def __init__(self, *ranges: Range) -> None:
        self.here, self.there = World(), World()
        sources = []
        for number, (name, world) in enumerate(
            [(SOURCE, self.here), (SECOND, self.here), (THIRD, self.there)]
        ):
            put_scaled_source(world, SHAPES[number:] + SHAPES[:number], MOVES[:number], name=name)
            sources.append(SourceRequest(stream=name, store=int(world is self.there)))
        if ranges:
            sources[1] = sources[1].model_copy(update={"ranges": ranges})
        self.request: CopyRequest = REQUEST.model_copy(update={"sources": tuple(sources)})
        self.stores = [ModelStore(self.here, block=7), ModelStore(self.there, block=7)]
        plan = resolve(self.request, self.stores, self.stores[0]).plan
        assert plan is not None
        (self.report,) = copy_runner(
            StreamCopyPlan(sources=(ADDRESS, ADDRESS), target=ADDRESS, streams=(plan,)),
            sources=self.stores,
            target=self.stores[0],
            executor=InlineExecutor(self.stores, self.stores[0]),
        ).run()
        assert self.report.error is None

    def verified(self, *, exact: bool = False) -> Verification:
        """Return the comparison of the target with all three streams."""
        sources = [
            Subject(self.stores[source.store], f"tcp://store{source.store}:1", source.stream)
            for source in self.request.sources
        ]
        target = Subject(self.stores[0], "tcp://store0:1", TARGET)
        whole = [i for i, one in enumerate(self.request.sources) if one.ranges == (Range(),)]
        return compare(match_copy(COPY, "week", sources, target, whole=whole), exact=exact)


@pytest.fixture
def stores() -> Stores:
    """Return a copy of three streams from two stores."""
    return Stores()


def test_a_copy_of_several_streams_is_equal_to_them(stores: Stores) -> None:
    """Each pair names its stream, and the digest over all is the recorded one."""
    found = stores.verified(exact=True)
    assert (found.result, found.differences) == (Result.EQUAL, ())
    assert found.recorded_digest == found.target.digest == found.source.digest
    assert found.recorded_digest == stores.report.digest
    assert [one.source.segment for one in found.segments] == [
        one.source for one in stores.report.segments
    ]
    assert [one.source_index for one in found.segments] == sorted(
        one.source_index for one in found.segments
    )
    assert (found.source.bytes, found.source.events) == (found.target.bytes, found.target.events)


def test_each_stream_is_told_by_itself(stores: Stores) -> None:
    """The report has its store, bytes, events, and the digest of its own segments."""
    found = stores.verified()
    assert [(one.stream, one.store) for one in found.sources] == [
        (SOURCE, "tcp://store0:1"),
        (SECOND, "tcp://store0:1"),
        (THIRD, "tcp://store1:1"),
    ]
    for place, (name, world) in enumerate(
        [(SOURCE, stores.here), (SECOND, stores.here), (THIRD, stores.there)]
    ):
        side = found.sources[place]
        own = [one.source for one in found.segments if one.source_index == place]
        assert side.bytes == sum(map(len, world.bytes_of(name)))
        assert side.events == sum(one.events or 0 for one in own)
        assert side.digest == combine(bytes.fromhex(one.digest) for one in own).hex()


@pytest.mark.parametrize("place", [0, 1, 2])
def test_a_difference_names_its_stream(stores: Stores, place: int) -> None:
    """The stream distinguishes segments of the same id."""
    first = [one.source_index for one in stores.verified().segments].index(place)
    of(stores.here, TARGET, first).data[3] ^= 1
    difference = stores.verified().differences[0]
    assert (difference.what, difference.source_index) == (What.BYTES, place)
    assert (difference.segment, difference.offset) == (0, 3)
    assert difference.target_segment == stores.here.streams[TARGET].readable[first].id


@pytest.mark.parametrize(("place", "name"), [(1, SECOND), (2, THIRD)])
def test_a_stream_that_is_gone_leaves_the_others_to_compare(
    stores: Stores, place: int, name: StreamName
) -> None:
    """Only the bytes of that stream are not compared. The recorded digest still counts."""
    world = stores.stores[stores.request.sources[place].store]
    world.seal_stream(name)
    world.delete_stream(name)
    found = stores.verified()
    assert (found.result, found.sources[place].bytes) == (Result.INCOMPLETE, 0)
    assert {one.source_index for one in found.segments if one.gone} == {place}
    assert found.target.digest == found.recorded_digest
    last = [one.source_index for one in found.segments].index(place)
    of(stores.here, TARGET, last).data[0] ^= 1
    assert only(stores.verified()).what is What.DIGEST


def test_what_streams_got_since_is_not_compared(stores: Stores) -> None:
    """The streams and the target go on after the copy."""
    for world, name in ((stores.here, SOURCE), (stores.there, THIRD), (stores.here, TARGET)):
        of(world, name, -1).data += events_of([4])
    found = stores.verified()
    assert (found.result, found.beyond) == (Result.EQUAL, 12)


def test_what_one_of_them_had_before_its_range_is_not_missing() -> None:
    """The copy took only the end of the second stream, and all of the other streams."""
    world = Stores().here
    cut = tuple((segment.id, 0) for segment in world.streams[SECOND].segments)
    stores = Stores(Range(begin=RangeEnd(offsets=cut)))
    found = stores.verified()
    assert (found.result, found.missing) == (Result.EQUAL, ())
    assert sum(one.source_index == 1 for one in found.segments) == len(cut)


def test_segments_that_are_missing_are_named_with_their_stream(stores: Stores) -> None:
    """A truncated target lacks whole segments of the first streams."""
    stores.here.truncate(TARGET)
    found = stores.verified()
    assert found.result is Result.DIFFERENT
    missing = [(one.source_index, one.segment) for one in found.missing]
    assert missing
    assert [
        (one.source_index, one.segment)
        for one in found.differences
        if one.what is What.SEGMENT_MISSING
    ] == missing
