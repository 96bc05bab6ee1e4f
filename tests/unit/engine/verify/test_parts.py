"""Parts of streams, compared with other streams or with their parts."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from sluice.core.copy.planner import Range, RangeEnd
from sluice.core.verify.pairing import Alignment
from sluice.core.verify.verification import Result, What
from sluice.errors import InvalidSpec
from support.engine.plans import SOURCE, TARGET
from support.engine.sources import put_source as put
from support.engine.verifying import (
    of,
    only,
    verified,
)
from support.model import EVENT_COUNT, ModelStore, World

if TYPE_CHECKING:
    from sluice.core.values.model import StreamName


def test_a_range_is_compared_with_a_whole_stream() -> None:
    """The target has the bytes between two cuts of the source, from offset 0 on."""
    world = World()
    contents = put(world, [5, 9, 30, 2], [6, 9])
    put(world, [], [], name=TARGET)
    bounds = [(13, 68), (0, 14)]
    for index, (start, end) in enumerate(bounds):
        of(world, TARGET, index).data += contents[index][start:end]
        of(world, TARGET, index).attributes[EVENT_COUNT] = 2 - index
    begin, end = (
        ModelStore(world).write_cut(SOURCE, dict(enumerate(side)))
        for side in zip(*bounds, strict=True)
    )
    range_ = Range(begin=RangeEnd(text=begin), end=RangeEnd(text=end))
    found = verified(world, source=range_)
    assert (found.result, found.source.events) == (Result.EQUAL, 3)
    places = [(one.start, one.end, one.shift) for one in found.segments]
    assert places == [(13, 68, -13), (0, 14, 0)]
    assert (found.source.begin, found.source.end, found.target.end) == (begin, end, None)
    assert verified(world).result is Result.DIFFERENT


def test_a_part_of_a_range_that_differs_is_located_at_both_offsets() -> None:
    """The report has the offset in the source, and the offset in the target."""
    world = World()
    (content,) = put(world, [5, 9, 30, 2])
    put(world, [], name=TARGET)
    of(world, TARGET, 0).data += content[13:68]
    range_ = Range(begin=RangeEnd(offsets=((0, 13),)), end=RangeEnd(offsets=((0, 68),)))
    found = verified(world, source=range_)
    assert found.differences[0].what is What.EVENT_COUNT
    of(world, TARGET, 0).attributes[EVENT_COUNT] = 2
    assert verified(world, source=range_).result is Result.EQUAL
    of(world, TARGET, 0).data[20] ^= 1
    different = only(verified(world, source=range_))
    assert (different.offset, different.target_offset) == (33, 20)


def test_ranges_of_both_streams_are_compared(twins: World) -> None:
    """A part of one stream equals a part of the other stream at other offsets."""
    of(twins, TARGET, 0).data[:0] = b"\0" * 8
    source, target = (
        Range(
            begin=RangeEnd(offsets=((0, 13 + shift), (1, 0))),
            end=RangeEnd(offsets=((0, 111 + shift), (1, 0))),
        )
        for shift in (0, 8)
    )
    found = verified(twins, source=source, target=target)
    assert (found.result, found.source.bytes, found.segments[0].shift) == (Result.EQUAL, 98, 8)


def test_a_truncated_source_is_compared_from_its_first_byte_on(twins: World) -> None:
    """A target that begins with the source's first readable byte has shifted offsets."""
    of(twins, SOURCE, 0).start = 13
    del of(twins, TARGET, 0).data[:13]
    of(twins, TARGET, 0).attributes[EVENT_COUNT] = 2
    found = verified(twins)
    assert (found.result, found.segments[0].shift) == (Result.EQUAL, -13)
    of(twins, TARGET, 0).data[40] ^= 1
    different = only(verified(twins))
    assert (different.offset, different.target_offset) == (53, 40)


def test_streams_truncated_at_different_places_are_compared_by_offset(twins: World) -> None:
    """Bytes of the source alone are missing. Bytes of the target alone are only reported."""
    of(twins, SOURCE, 0).start = 13
    of(twins, TARGET, 1).start = 48
    assert verified(twins).result is Result.DIFFERENT
    found = verified(twins, alignment=Alignment.OFFSETS)
    missing = only(found)
    assert (missing.what, missing.segment, missing.offset) == (What.MISSING, 1, 0)
    assert (found.segments[0].before, found.segments[0].equal, found.beyond) == (13, True, 13)
    exact = verified(twins, alignment=Alignment.OFFSETS, exact=True)
    assert [(one.what, one.offset) for one in exact.differences] == [
        (What.EXTRA, 0),
        (What.MISSING, 0),
    ]


@pytest.mark.parametrize(
    ("side", "name", "field"), [("source", SOURCE, "SOURCE"), ("target", TARGET, "TARGET")]
)
def test_a_stream_that_is_not_there_is_wrong_input(
    twins: World, side: str, name: StreamName, field: str
) -> None:
    """The error tells whether the source or the target is missing."""
    del twins.streams[name]
    with pytest.raises(InvalidSpec, match=f"there is no stream {name}") as raised:
        verified(twins)
    assert raised.value.field == field


@pytest.mark.parametrize(
    ("ranges", "field"),
    [
        ({"source": Range(begin=RangeEnd(offsets=((9, 0),)))}, "--source-from"),
        ({"target": Range(end=RangeEnd(offsets=((0, 999), (1, 0))))}, "--target-to"),
        ({"source": Range(end=RangeEnd(text="in/other/0=0/1=0"))}, "--source-to"),
    ],
)
def test_a_range_that_is_none_is_wrong_input(
    twins: World, ranges: dict[str, Range], field: str
) -> None:
    """The error names the option."""
    with pytest.raises(InvalidSpec) as raised:
        verified(twins, **ranges)  # type: ignore[arg-type]
    assert raised.value.field == field
