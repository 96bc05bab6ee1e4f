from __future__ import annotations

from itertools import pairwise

import pytest

from bench.archive_phases import archive_phases
from bench.floor import floor_processes
from bench.model import (
    EVENT_HEADER,
    BenchError,
    Comparison,
    Goal,
    Measurement,
    Phase,
    Result,
    Run,
    Source,
)
from bench.ours import Spark
from bench.phases import all_phases, peak_rss, seconds
from bench.theirs import Java

SOURCE = Source(events=10, size=100, segments=1)
LITTLE = Source(events=1, size=100, segments=1)
NEWER = Comparison("key", "new", "old", seconds, Goal("<=", 1.5))


def runs(*each: float) -> tuple[Run, ...]:
    """Return runs that took these seconds."""
    return tuple(Run(seconds=one, bytes=1, cpu=0) for one in each)


def side(name: str, source: Source = SOURCE) -> Java:
    """Return a side of this name."""
    return Java(name, source, "batches")


def test_sides_are_compared_by_their_medians() -> None:
    """One disturbed pair does not decide the result, and remains visible in its sample."""
    result = Result(NEWER, runs(1, 9, 3), runs(1, 2, 20))
    assert (result.value, result.met) == (1.5, True)
    assert result.samples == [1, 4.5, 0.15]


def test_a_run_without_the_number_is_no_result() -> None:
    """The result fails when it is made, so that other phases' results are still written."""
    with pytest.raises(BenchError, match="worker"):
        Result(Comparison("key", "new", "old", peak_rss), runs(1), runs(1))


def test_a_side_that_is_alone_has_its_own_median() -> None:
    """Without a second side, the samples are the runs' own numbers."""
    alone = Comparison("key", "new", "new", seconds, Goal("<", 3))
    result = Result(alone, runs(1, 9, 3), runs(1, 9, 3))
    assert (result.value, result.samples, result.met) == (3, [1, 9, 3], False)


def test_seconds_with_a_base_are_compared_by_their_medians() -> None:
    """With a base, a measurement's value is the ratio of both medians."""
    found = Measurement("key", (9, 3, 1), Goal("<=", 1.5), unit="", base=(2, 20, 1))
    assert (found.value, found.met) == (1.5, True)


@pytest.mark.parametrize("events", [1, 80, 81, 82, 1000])
def test_mixed_events_are_as_long_as_the_java_client_makes_them(events: int) -> None:
    """An event's length, 60 to 140 bytes, follows from its number, also in an incomplete cycle."""
    source = Source(events=events, size=100, segments=1, kind="mixed")
    assert source.payload == sum(60 + number * 37 % 81 for number in range(events))
    assert source.bytes == source.payload + events * EVENT_HEADER


def test_mixed_events_have_all_lengths_and_their_mean() -> None:
    """One cycle has each length from 60 to 140 bytes once."""
    turn = [Source(events=n, size=100, segments=1, kind="mixed").payload for n in range(82)]
    lengths = [after - before for before, after in pairwise(turn)]
    assert sorted(lengths) == [*range(60, 141)]
    assert turn[-1] == 81 * 100


def test_a_source_is_of_about_so_many_bytes() -> None:
    """`of_bytes` and `of_mixed` choose the number of events for the wanted bytes."""
    assert Source.of_bytes(1e9, segments=4, size=992).bytes == 1e9
    assert Source.of_mixed(1e9, segments=4).bytes == pytest.approx(1e9)
    assert str(Source.of_mixed(108, segments=4)) == "1 x 60 to 140 B in 4 segment(s)"


def test_only_sides_that_are_needed_take_part() -> None:
    """A phase that is restricted to keys also rehearses only the sides that they need."""
    comparisons = (NEWER, Comparison("other", "new", "odd", seconds))
    sides = (side("new"), side("old"), side("odd"))
    whole = Phase("phase", sides, comparisons, tuple(side(one.name, LITTLE) for one in sides))
    phase = whole.restricted(["key"])
    assert phase.comparisons == (NEWER,)
    assert phase.sides == (side("new"), side("old"))
    assert phase.rehearsed == (side("new", LITTLE), side("old", LITTLE))


@pytest.mark.parametrize(("rehearsal", "rehearsed"), [(None, (side("new"),)), ((), ())])
def test_all_sides_rehearse_unless_it_is_told(
    rehearsal: tuple[Java, ...] | None, rehearsed: tuple[Java, ...]
) -> None:
    """The choice of rehearsals survives a restriction to keys."""
    phase = Phase("phase", (side("new"),), (NEWER,), rehearsal)
    assert phase.rehearsed == phase.restricted(["key"]).rehearsed == rehearsed


def test_comparisons_name_sides_that_there_are() -> None:
    """Each key is unique, and rehearsals have names of sides too."""
    with Spark() as spark, floor_processes() as floor:  # nothing starts before it is used
        phases = [*all_phases(spark, floor, 1), *archive_phases(spark, 1)]
    keys = [one.key for phase in phases for one in phase.comparisons]
    assert len(keys) == len(set(keys))
    for phase in phases:
        names = {one.name for one in phase.sides}
        used = {name for one in phase.comparisons for name in (one.ours, one.theirs)}
        assert used <= names
        assert {one.name for one in phase.rehearsed} <= names
