"""Copies of parts of a stream. The Java client gave their bounds."""

from __future__ import annotations

import base64
import gzip
from typing import TYPE_CHECKING

import pytest

from sluice.engine.copy.report import Outcome
from support.command.sluice_command import Copy
from support.store.inline import assert_equal_segments, leftovers, run_inline, staging_of

if TYPE_CHECKING:
    from pathlib import Path

    from localstore import ForeignClient, Standalone

EVENTS = 2000
KEYS = 32
FRAME = 108
"""Bytes of an event of 100 bytes in its segment."""


@pytest.fixture
def copy(tmp_path: Path, standalone: Standalone, scope: str) -> Copy:
    """Return a copy within a scope of its own, whose source is still to be made."""
    return Copy(tmp_path, standalone.controller_uri, (scope, "source"), (scope, "target"))


def _written(copy: Copy, foreign: ForeignClient) -> list[str]:
    """Write 2,000 events four times, with scale events. Return the tails in between, as text."""
    foreign.create(*copy.source, segments=2)
    cuts = []
    for number in range(4):
        foreign.write(*copy.source, events=EVENTS, keys=KEYS, first=number * EVENTS)
        cuts.append(foreign.info(*copy.source).tail)
        assert foreign.scale(*copy.source)
    return cuts


def _at(text: str) -> dict[str, object]:
    return {"at": "StreamCut", "streamCut": text}


def _plain(text: str) -> str:
    """Return the client's text, without its compression."""
    return gzip.decompress(base64.b64decode(text)).decode()


@pytest.mark.exhaustive
def test_a_range_between_two_cuts_is_copied(
    copy: Copy, standalone: Standalone, foreign: ForeignClient
) -> None:
    """A range over scale events has exactly the events between its two cuts."""
    cuts = _written(copy, foreign)
    copy.ranges = [{"from": _at(cuts[0]), "to": _at(_plain(cuts[2]))}]
    report = run_inline(copy)
    assert report.outcome is Outcome.COPIED, report.error
    assert sum(assert_equal_segments(copy, standalone, report)) == report.events == 2 * EVENTS
    read = foreign.read(*copy.target)
    assert (read.events, read.out_of_order, read.duplicates) == (2 * EVENTS, 0, 0)
    assert staging_of(copy, standalone, [one.target for one in report.segments]) == []


def test_ranges_follow_one_another_in_the_order_given(
    copy: Copy, standalone: Standalone, foreign: ForeignClient
) -> None:
    """Two ranges with a gap between them are copied.

    A foreign reader sees their events in order.
    """
    cuts = _written(copy, foreign)
    copy.ranges = [{"to": _at(cuts[0])}, {"from": _at(cuts[1])}]
    report = run_inline(copy)
    assert report.outcome is Outcome.COPIED, report.error
    assert sum(assert_equal_segments(copy, standalone, report)) == report.events == 3 * EVENTS
    read = foreign.read(*copy.target)
    assert (read.events, read.out_of_order, read.duplicates) == (3 * EVENTS, 0, 0)
    assert read.missing > 0


@pytest.mark.exhaustive
def test_the_same_range_twice_is_there_twice(
    copy: Copy, standalone: Standalone, foreign: ForeignClient
) -> None:
    """A range that is named twice is copied twice."""
    foreign.create(*copy.source, segments=2)
    foreign.write(*copy.source, events=EVENTS, keys=KEYS)
    copy.ranges = [{}, {}]
    report = run_inline(copy)
    assert report.outcome is Outcome.COPIED, report.error
    assert sum(assert_equal_segments(copy, standalone, report)) == 2 * EVENTS
    assert foreign.read(*copy.target).duplicates == EVENTS


@pytest.mark.exhaustive
def test_a_range_by_offsets_is_copied(
    copy: Copy, standalone: Standalone, foreign: ForeignClient
) -> None:
    """Offsets in segments, at the ends of events, can bound a range."""
    foreign.create(*copy.source, segments=2)
    foreign.write(*copy.source, events=EVENTS, keys=KEYS)
    begin = [{"segmentID": 0, "offset": 10 * FRAME}, {"segmentID": 1, "offset": 0}]
    end = [{"segmentID": 0, "offset": 30 * FRAME}, {"segmentID": 1, "offset": 5 * FRAME}]
    copy.ranges = [
        {"from": {"at": "Offsets", "offsets": begin}, "to": {"at": "Offsets", "offsets": end}}
    ]
    report = run_inline(copy)
    assert report.outcome is Outcome.COPIED, report.error
    assert assert_equal_segments(copy, standalone, report) == [20, 5]
    assert foreign.read(*copy.target).events == 25


@pytest.mark.parametrize("side", ["from", "to"])
def test_a_cut_inside_an_event_leaves_nothing(
    copy: Copy, standalone: Standalone, foreign: ForeignClient, side: str
) -> None:
    """A cut inside an event fails before publication. The error has its range and offset."""
    foreign.create(*copy.source, segments=1)
    foreign.write(*copy.source, events=EVENTS, keys=KEYS)
    at = 7 * FRAME + 20
    copy.ranges = [{side: {"at": "Offsets", "offsets": [{"segmentID": 0, "offset": at}]}}]
    report = run_inline(copy)
    assert report.error is not None
    assert (report.error.reason, report.cleaned) == ("CutInsideEvent", True)
    assert report.error.field == "spec.source.ranges[0]"
    assert str(at) in report.error.message
    assert leftovers(copy, standalone) == []


@pytest.mark.exhaustive
def test_cuts_that_the_stream_does_not_have_are_refused_up_front(
    copy: Copy, standalone: Standalone, foreign: ForeignClient
) -> None:
    """Cuts of another stream, beyond the end, backwards or malformed are refused."""
    cuts = _written(copy, foreign)
    foreign.create(copy.source[0], "other")
    other = foreign.info(copy.source[0], "other").tail
    beyond = [{"segmentID": 0, "offset": 1 << 30}, {"segmentID": 1, "offset": 0}]
    tried: list[tuple[dict[str, object], str, str]] = [
        ({"from": _at(other)}, "from.streamCut", "not of"),
        ({"from": _at("cut")}, "from.streamCut", "no StreamCut"),
        ({"from": _at(cuts[1]), "to": _at(cuts[0])}, "to", "before it begins"),
        ({"to": {"at": "Offsets", "offsets": beyond}}, "to", "ends at"),
        ({"to": {"at": "Offsets", "offsets": beyond[:1]}}, "to", "no position"),
    ]
    for asked, field, message in tried:
        copy.ranges = [asked]
        error = run_inline(copy).error
        assert error is not None, asked
        assert (error.reason, error.field) == ("InvalidSpec", f"spec.source.ranges[0].{field}")
        assert message in error.message
    assert leftovers(copy, standalone) == []


@pytest.mark.exhaustive
def test_a_cut_before_the_head_is_refused(copy: Copy, foreign: ForeignClient) -> None:
    """A range with truncated events is refused instead of a silent gap."""
    cuts = _written(copy, foreign)
    foreign.truncate(*copy.source, cut=cuts[1])
    copy.ranges = [{"from": _at(cuts[0])}]
    error = run_inline(copy).error
    assert error is not None
    assert (error.reason, error.field) == ("InvalidSpec", "spec.source.ranges[0].from")
