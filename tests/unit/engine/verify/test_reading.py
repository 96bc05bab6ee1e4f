"""How streams are read while they are compared, and how they may change meanwhile."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from sluice.core.verify.pairing import Alignment
from sluice.core.verify.verification import Result, What
from sluice.engine.verify.compare import Subject, compare, match_streams
from sluice.errors import SegmentTruncated, StoreUnavailable
from support.engine.plans import SOURCE, TARGET
from support.engine.sources import events_of
from support.engine.sources import put_source as put
from support.engine.verifying import (
    of,
    only,
    subject,
)
from support.model import Fate, ModelStore, World, segment_name

if TYPE_CHECKING:
    from sluice.core.values.model import StreamName


def test_bytes_are_read_side_by_side() -> None:
    """However long a segment is, neither side is read more than a block ahead of the other."""
    world = World()
    for name in (SOURCE, TARGET):
        put(world, [50] * 40, name=name)
    at = {SOURCE: 0, TARGET: 0}
    ahead: list[int] = []

    def watching(name: StreamName) -> ModelStore:
        def gate(what: str) -> Fate:
            if what.startswith("read"):
                at[name] += 16
                ahead.append(abs(at[SOURCE] - at[TARGET]))
            return Fate.DONE

        return ModelStore(world, gate, block=16)

    sides = [Subject(watching(name), "", name) for name in (SOURCE, TARGET)]
    matched = match_streams(*sides, Alignment.BEGINNINGS)
    assert compare(matched).result is Result.EQUAL
    assert len(ahead) == 2 * -(-2320 // 16)
    assert max(ahead) == 16


def test_what_is_read_is_told(twins: World) -> None:
    """The reported numbers add up to the bytes of both sides."""
    matched = match_streams(subject(twins, SOURCE), subject(twins, TARGET), Alignment.BEGINNINGS)
    seen: list[int] = []
    compare(matched, told=seen.append)
    assert sum(seen) == matched.bytes == 2 * sum(map(len, twins.bytes_of(SOURCE)))


def test_a_source_that_is_written_meanwhile_is_compared_within_its_bounds(twins: World) -> None:
    """Bytes that come after the bounds were taken are neither read nor missing."""
    matched = match_streams(subject(twins, SOURCE), subject(twins, TARGET), Alignment.BEGINNINGS)
    of(twins, SOURCE, -1).data += events_of([70])
    twins.scale(SOURCE, 2)
    assert compare(matched).result is Result.EQUAL


def test_a_source_that_is_truncated_meanwhile_is_compared_as_far_as_it_is_there(
    twins: World,
) -> None:
    """The lost bytes are reported. The rest is read again, and differences in it are found."""
    gone = []

    def gate(what: str) -> Fate:
        if what == "read in/s/0 [32, 64)" and not gone:
            of(twins, SOURCE, 0).start = 111
            gone.append(what)
        return Fate.DONE

    source = Subject(ModelStore(twins, gate), "", SOURCE)
    seen: list[int] = []
    matched = match_streams(source, subject(twins, TARGET), Alignment.BEGINNINGS)
    found = compare(matched, told=seen.append)
    assert (found.result, found.gone, found.segments[0].gone) == (Result.INCOMPLETE, 111, 111)
    assert found.segments[0].source.start == 111
    assert (found.segments[0].source.events, found.segments[0].target.events) == (1, 3)
    assert sum(seen) == matched.bytes - 111
    gone.clear()
    of(twins, SOURCE, 0).start = 0
    of(twins, TARGET, 0).data[115] ^= 1
    assert only(compare(matched)).offset == 115


def test_a_target_that_is_truncated_meanwhile_lacks_what_went(twins: World) -> None:
    """Its store's count includes the lost events, so the report does not use it."""

    def gate(what: str) -> Fate:
        if what == "read out/t/0 [0, 32)":
            of(twins, TARGET, 0).start = 13
        return Fate.DONE

    target = Subject(ModelStore(twins, gate), "", TARGET)
    found = compare(match_streams(subject(twins, SOURCE), target, Alignment.BEGINNINGS))
    missing = only(found)
    assert (missing.what, missing.segment, missing.offset) == (What.MISSING, 0, 0)
    side = found.segments[0].target
    assert (side.start, side.events, side.store_events) == (13, 2, None)


def test_a_source_that_goes_on_being_truncated_ends_the_command(twins: World) -> None:
    """After a few tries the store's error is raised, and no other segment is waited for."""

    def gate(what: str) -> Fate:
        if what.startswith("read in/s/0"):
            of(twins, SOURCE, 0).start += 1
        return Fate.DONE

    source = Subject(ModelStore(twins, gate), "", SOURCE)
    matched = match_streams(source, subject(twins, TARGET), Alignment.BEGINNINGS)
    with pytest.raises(SegmentTruncated):
        compare(matched, tasks=2)


def test_a_target_whose_segment_is_deleted_meanwhile_lacks_it(twins: World) -> None:
    """All bytes that the source has in this segment are missing."""
    matched = match_streams(subject(twins, SOURCE), subject(twins, TARGET), Alignment.BEGINNINGS)
    del twins.segments[segment_name(TARGET, 1)]
    missing = only(compare(matched))
    assert (missing.what, missing.segment, missing.offset) == (What.MISSING, 1, 0)


def test_a_store_that_is_away_ends_the_command(twins: World) -> None:
    """The store's error is raised, whichever segment it came from."""
    away = ModelStore(
        twins, lambda what: Fate.REQUEST_LOST if what.startswith("read out/t/1 ") else Fate.DONE
    )
    matched = match_streams(subject(twins, SOURCE), Subject(away, "", TARGET), Alignment.BEGINNINGS)
    with pytest.raises(StoreUnavailable):
        compare(matched, tasks=3)


@pytest.mark.parametrize("tasks", [1, 2, 8])
def test_any_number_of_tasks_finds_the_same(twins: World, tasks: int) -> None:
    """The report has the order of the source, whichever segment is read first."""
    of(twins, TARGET, 3).data[2] ^= 1
    matched = match_streams(subject(twins, SOURCE), subject(twins, TARGET), Alignment.BEGINNINGS)
    assert compare(matched, tasks=tasks) == compare(matched)
