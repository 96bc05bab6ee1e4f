"""Archives that lack what their stream had lost, restored."""

from __future__ import annotations

import pytest

from sluice.archive.archive import place
from sluice.core.archive.names import Format
from sluice.core.archive.plan import gone
from sluice.core.reconcile.world import Complete, Gap
from sluice.engine.report import Outcome
from sluice.engine.settle import ask
from sluice.errors import SourceTruncated
from support.archives import take
from support.model import ModelStore
from support.plans import ADDRESS, TARGET
from support.restore_lab import BLOCK, SIZES, Lab


def test_gaps_are_refused_or_recorded() -> None:
    """Bytes that were lost before a run are an error, or are told as lost.

    What was archived before a gap is restored too: what follows is in a segment of its own, which
    takes the same keys, as after a scale event.
    """
    lab = Lab()
    lab.take()
    first, one = lab.source.segments[0], len(lab.source.segments[0].data)
    lab.source.write(SIZES)
    lab.source.write(SIZES)
    first.start = 2 * one
    lab.take(split=True)
    for again in lab.source.segments[1:]:
        again.start = len(again.data)
    lab.take()
    with pytest.raises(SourceTruncated, match=f"lacks bytes {one} to {2 * one} of seg") as caught:
        lab.restore()
    assert "onTruncation: Record" in caught.value.remedy
    lab.assert_nothing_is_there()
    report = lab.restore(lab.request(on_truncation="Record"))
    assert report.outcome is Outcome.COPIED, report.error
    data = [bytes(segment.data) for segment in lab.source.segments]
    assert lab.restored == [data[0][:one], data[0][2 * one :], *data[1:]]
    assert [segment.lost for segment in report.segments] == [0, one, 0, 0]
    keys = [segment.keys for segment in lab.world.streams[TARGET].readable]
    assert keys[0] == keys[1] == first.keys


def test_bytes_that_were_lost_first_are_told() -> None:
    """A run whose first bytes were lost while it was made begins with what there is."""
    lab = Lab()
    lab.source.write(SIZES)
    (segment,) = lab.source.segments
    lost = len(segment.data)
    take_with_gap(lab, lost)
    report = lab.restore(lab.request(on_truncation="Record"))
    assert report.outcome is Outcome.COPIED, report.error
    assert lab.restored == [bytes(segment.data[lost:])]
    assert [(gap.start, gap.lost) for gap in report.gaps] == [(lost, lost)]


def test_what_nobody_knows_of_a_segment_is_told() -> None:
    """One that was gone when a run came back to it had perhaps more than is archived."""
    lab = Lab()
    lab.take()
    lab.take(split=True)
    lose_the_first(lab)
    with pytest.raises(SourceTruncated, match="lacks what segment 0 had from offset"):
        lab.restore()
    request, store = lab.request(on_truncation="Record"), ModelStore(lab.world, block=BLOCK)
    plan = lab.plan(store, request)
    report = lab.restore(request)
    assert report.outcome is Outcome.COPIED, report.error
    assert lab.restored == lab.then[1]
    end = len(lab.then[1][0])
    assert [(one.source, one.end) for one in report.segments if one.torn] == [(0, end)]
    found = ask(request, sources=[(ADDRESS, lab.shelf)], target=(ADDRESS, store), known=plan)
    assert isinstance(found, Complete)
    assert found.gaps == (Gap(0, 0, end, None),)


def lose_the_first(lab: Lab) -> None:
    """Record a run that has found the first segment gone."""
    head = lab.archive.head()
    number, parent = place(head)
    assert head is not None
    before = lab.archive.manifest(head.runs[-1])
    first, *others = before.segments
    first = first.model_copy(update={"lost": gone(number)})
    changes = {"run": number, "parent": parent, "segments": (first, *others)}
    lab.archive.record(before.model_copy(update=changes), head, verified=True)


def take_with_gap(lab: Lab, lost: int) -> None:
    """Record a run that was to begin at offset 0, and lacks its first bytes."""
    empty = Lab()
    take(empty.archive, Format.SEGMENTS, empty.source)
    lab.objects.held = empty.objects.held
    lab.objects.modified = empty.objects.modified
    lab.source.segments[0].start = lost
    lab.take()
    head = lab.archive.head()
    assert head is not None
    lab.archive.forget([1], head)
