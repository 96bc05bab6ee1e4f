"""Several streams copied into one, in order. The Java client reads the target."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from segment_hash import segment_report
from sluice.engine.copy.report import Outcome
from sluice.stores.pravega.groups import cuts
from support.command.sluice_command import Copy
from support.store.inline import run_inline, staging_of

if TYPE_CHECKING:
    from pathlib import Path

    from localstore import ForeignClient, Standalone

EVENTS = 3000
KEYS = 32


@pytest.fixture
def copy(tmp_path: Path, standalone: Standalone, scope: str) -> Copy:
    """Return a copy of three streams. Each continues the keys of its predecessor."""
    return Copy(
        tmp_path,
        standalone.controller_uri,
        (scope, "monday"),
        (scope, "week"),
        more=[((scope, "tuesday"), []), ((scope, "wednesday"), [])],
    )


def _written(copy: Copy, foreign: ForeignClient) -> None:
    """Write three streams with different numbers of segments. The second one is scaled."""
    streams = [copy.source, *(stream for stream, _ in copy.more)]
    for number, stream in enumerate(streams):
        foreign.create(*stream, segments=number + 1)
        foreign.write(*stream, events=EVENTS // 2, keys=KEYS, first=number * EVENTS)
        if number == 1:
            assert foreign.scale(*stream)
        first = number * EVENTS + EVENTS // 2
        foreign.write(*stream, events=EVENTS // 2, keys=KEYS, first=first)


@pytest.mark.exhaustive
def test_streams_follow_one_another_in_the_order_given(
    copy: Copy, standalone: Standalone, foreign: ForeignClient
) -> None:
    """Each key's events come in the order of the sources, and within them in theirs."""
    _written(copy, foreign)
    report = run_inline(copy)
    assert report.outcome is Outcome.COPIED, report.error
    assert report.source.endswith("monday and 2 more")
    assert report.events == 3 * EVENTS
    read = foreign.read(*copy.target)
    assert read.clean, read
    assert read.events == 3 * EVENTS
    assert staging_of(copy, standalone, [one.target for one in report.segments]) == []
    foreign.write(*copy.target, events=1000, keys=KEYS, first=3 * EVENTS)
    assert foreign.read(*copy.target).clean


@pytest.mark.exhaustive
def test_a_part_of_each_is_taken_where_that_is_asked_for(
    copy: Copy, foreign: ForeignClient
) -> None:
    """Each range applies to its own source."""
    _written(copy, foreign)
    tuesday = copy.more[0][0]
    cut = foreign.info(*copy.source).tail
    copy.ranges = [{"from": {"at": "StreamCut", "streamCut": cut}}]
    foreign.write(*copy.source, events=500, keys=KEYS, seed=1)
    copy.more = [(tuesday, [])]
    report = run_inline(copy)
    assert report.outcome is Outcome.COPIED, report.error
    assert report.events == 500 + EVENTS
    assert foreign.read(*copy.target).events == 500 + EVENTS


@pytest.mark.exhaustive
def test_the_target_is_verified_against_each_source(
    copy: Copy, standalone: Standalone, foreign: ForeignClient
) -> None:
    """Each source is compared by the script's digest. A source may be deleted afterwards."""
    _written(copy, foreign)
    copied = run_inline(copy)
    assert copied.outcome is Outcome.COPIED, copied.error
    ended = copy.run("verify", "--exact", "-o", "json")
    assert ended.code == 0, ended.err
    (found,) = ended.json["verifications"]
    assert (found["result"], found["recordedDigest"]) == ("Equal", copied.digest)
    streams = [copy.source, *(stream for stream, _ in copy.more)]
    named = [(one["stream"]["scope"], one["stream"]["stream"]) for one in found["sources"]]
    assert named == streams
    assert [one["events"] for one in found["sources"]] == [EVENTS] * 3
    for pair in found["segments"]:
        stream = streams[pair["sourceIndex"]]
        witness = segment_report(*standalone.segment_store, *stream, pair["source"]["segment"])
        assert witness["chunks_sha256"] == pair["source"]["digest"] == pair["target"]["digest"]
    foreign.delete(*streams[1])
    ended = copy.run("verify", "-o", "json")
    assert ended.code == 6
    (found,) = ended.json["verifications"]
    assert found["result"] == "Incomplete"
    assert {one["sourceIndex"] for one in found["segments"] if one["gone"]} == {1}
    assert found["target"]["digest"] == copied.digest


@pytest.mark.exhaustive
def test_positions_of_each_source_are_translated(copy: Copy, foreign: ForeignClient) -> None:
    """Translations tell segments with equal ids apart by their stream."""
    _written(copy, foreign)
    assert run_inline(copy).outcome is Outcome.COPIED
    last = copy.more[-1][0]
    translated = copy.run("position", "--cut", foreign.info(*last).tail)
    assert translated.code == 0, translated.err
    assert cuts.read(translated.out.strip()) == cuts.read(foreign.info(*copy.target).tail)


def test_a_source_that_is_not_there_is_named_by_its_place(
    copy: Copy, foreign: ForeignClient
) -> None:
    """A missing source is named by its place, and the others are not copied."""
    _written(copy, foreign)
    copy.more.append(((copy.source[0], "sunday"), []))
    error = run_inline(copy).error
    assert error is not None
    assert (error.reason, error.field) == ("SourceNotFound", "spec.sources[3].stream")
    assert "week" not in (foreign.streams(copy.source[0]) or [])
