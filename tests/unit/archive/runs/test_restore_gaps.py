"""Restores of archives with gaps."""

from __future__ import annotations

import pytest

from sluice.archive.runs.archive import place
from sluice.core.archive.names import Format
from sluice.core.archive.plan import gone
from sluice.core.workloads.answers import Complete, CopyGap
from sluice.engine.copy.query import ask
from sluice.engine.copy.report import Outcome
from sluice.errors import SourceTruncated
from support.archiving.archives import take
from support.archiving.restore_env import BLOCK, SIZES, Env
from support.engine.plans import ADDRESS, TARGET
from support.model import ModelStore


def test_gaps_are_refused_or_recorded() -> None:
    """Bytes that were lost before a run are an error, or are reported as lost.

    Archived bytes before a gap are restored, too. The bytes behind it are in a segment of their own
    with the same keys, as after a scale event.
    """
    env = Env()
    env.take()
    first, one = env.source.segments[0], len(env.source.segments[0].data)
    env.source.write(SIZES)
    env.source.write(SIZES)
    first.start = 2 * one
    env.take(split=True)
    for again in env.source.segments[1:]:
        again.start = len(again.data)
    env.take()
    with pytest.raises(SourceTruncated, match=f"lacks bytes {one} to {2 * one} of seg") as caught:
        env.restore()
    assert "onTruncation: Record" in caught.value.remedy
    env.assert_nothing_is_there()
    report = env.restore(env.request(on_truncation="Record"))
    assert report.outcome is Outcome.COPIED, report.error
    data = [bytes(segment.data) for segment in env.source.segments]
    assert env.restored == [data[0][:one], data[0][2 * one :], *data[1:]]
    assert [segment.lost for segment in report.segments] == [0, one, 0, 0]
    keys = [segment.keys for segment in env.world.streams[TARGET].readable]
    assert keys[0] == keys[1] == first.keys


def test_bytes_that_were_lost_first_are_told() -> None:
    """A run whose first bytes were lost while it was made begins with the existing bytes."""
    env = Env()
    env.source.write(SIZES)
    (segment,) = env.source.segments
    lost = len(segment.data)
    take_with_gap(env, lost)
    report = env.restore(env.request(on_truncation="Record"))
    assert report.outcome is Outcome.COPIED, report.error
    assert env.restored == [bytes(segment.data[lost:])]
    assert [(gap.start, gap.lost) for gap in report.gaps] == [(lost, lost)]


def test_unknown_bytes_of_a_segment_are_told() -> None:
    """A segment that was gone when a run came back to it may have had more bytes."""
    env = Env()
    env.take()
    env.take(split=True)
    lose_the_first(env)
    with pytest.raises(SourceTruncated, match="lacks what segment 0 had from offset"):
        env.restore()
    request, store = env.request(on_truncation="Record"), ModelStore(env.world, block=BLOCK)
    plan = env.plan(store, request)
    report = env.restore(request)
    assert report.outcome is Outcome.COPIED, report.error
    assert env.restored == env.then[1]
    end = len(env.then[1][0])
    assert [(one.source, one.end) for one in report.segments if one.torn] == [(0, end)]
    found = ask(request, sources=[(ADDRESS, env.root)], target=(ADDRESS, store), known=plan)
    assert isinstance(found, Complete)
    assert found.gaps == (CopyGap(0, 0, end, None),)


def lose_the_first(env: Env) -> None:
    """Record a run that has found the first segment gone."""
    head = env.archive.head()
    number, parent = place(head)
    assert head is not None
    before = env.archive.manifest(head.runs[-1])
    first, *others = before.segments
    first = first.model_copy(update={"lost": gone(number)})
    changes = {"run": number, "parent": parent, "segments": (first, *others)}
    env.archive.record(before.model_copy(update=changes), head, verified=True)


def take_with_gap(env: Env, lost: int) -> None:
    """Record a run that was to begin at offset 0, and lacks its first bytes."""
    empty = Env()
    take(empty.archive, Format.SEGMENTS, empty.source)
    env.objects.held = empty.objects.held
    env.objects.modified = empty.objects.modified
    env.source.segments[0].start = lost
    env.take()
    head = env.archive.head()
    assert head is not None
    env.archive.drop_runs([1], head)
