"""Runs of archives restored into a real Pravega; the Java client reads what became of them."""

from __future__ import annotations

import itertools
import random
from datetime import UTC, datetime
from typing import TYPE_CHECKING

import pytest

from sluice.core.archive.names import DATA, Format
from sluice.engine.report import Outcome
from support.restores import MERGED, SPLIT, Lab, assert_like_the_source

if TYPE_CHECKING:
    from localstore import Standalone

FRAME = 108
"""Bytes of an event of 100 bytes in its segment."""

# The first one to need the gateway compiles it.
pytestmark = pytest.mark.timeout(1200)


TELLING = {
    ("bucket", Format.SEGMENTS),
    ("volume", Format.PARQUET),
    ("bucket", Format.EVENT_OBJECTS),
}
"""The kinds of stores and formats that say most; the others are alike."""


@pytest.mark.parametrize(
    ("lab", "form"),
    [
        pytest.param(
            *pair, marks=[] if pair in TELLING else [pytest.mark.exhaustive], id=" ".join(pair)
        )
        for pair in itertools.product(["volume", "bucket"], Format)
    ],
    indirect=["lab"],
)
def test_a_stream_that_was_scaled_is_restored_as_it_was(
    lab: Lab, standalone: Standalone, form: Format
) -> None:
    """From each format: ids, key ranges, bytes, order and configuration are the source's."""
    lab.make()
    lab.write()
    lab.scale(*SPLIT)
    lab.write()
    lab.take(form)
    lab.scale(*MERGED)
    lab.write()
    lab.take(form)
    report = lab.restore.run_inline()
    assert_like_the_source(lab, standalone, report)
    assert report.events == lab.events
    assert lab.restore.run_inline().outcome is Outcome.ALREADY_COMPLETE


def test_earlier_runs_are_restored_by_number_and_by_time(
    volume_lab: Lab, standalone: Standalone
) -> None:
    """Each of three runs gives the stream as it was when that run ended."""
    lab = volume_lab
    lab.make()
    for moves in ([SPLIT], [MERGED], []):
        lab.write(2000)
        lab.take(Format.SEGMENTS)
        for move in moves:
            lab.scale(*move)
    head = lab.archive.head()
    assert head is not None
    first, second, _ = head.runs
    between = datetime.fromtimestamp(second.time / 1000, UTC).isoformat(timespec="milliseconds")
    for which, entry in (({"run": 1}, first), ({"until": between}, second)):
        lab.restore.target = (lab.source[0], f"restored-{entry.run}")
        lab.restore.which = which
        report = lab.restore.run_inline()
        assert report.outcome is Outcome.COPIED, report.error
        assert report.events == entry.run * 2000
        assert lab.foreign.read(*lab.restore.target).events == entry.run * 2000
    lab.restore.target = (lab.source[0], "restored")
    lab.restore.which = {}
    assert_like_the_source(lab, standalone, lab.restore.run_inline())


def test_a_run_is_appended_to_a_stream_that_is_written_to(volume_lab: Lab) -> None:
    """The events of the archive follow on those that are there, once, and readers get all."""
    lab = volume_lab
    lab.make()
    lab.write(3000)
    lab.scale(*SPLIT)
    lab.write(3000)
    lab.take(Format.PARQUET)
    lab.foreign.create(*lab.restore.target, segments=2)
    lab.foreign.write(*lab.restore.target, events=1000, keys=8, first=0)
    lab.restore.exists = "Append"
    report = lab.restore.run_inline()
    assert report.outcome is Outcome.COPIED, report.error
    assert lab.foreign.read(*lab.restore.target).events == 7000
    assert lab.restore.run_inline().outcome is Outcome.ALREADY_COMPLETE
    assert lab.foreign.read(*lab.restore.target).events == 7000


def test_damage_is_refused_by_name_before_the_target_is_visible(volume_lab: Lab) -> None:
    """20 bytes changed by chance, a missing object, two swapped ones, an edited manifest."""
    lab = volume_lab
    lab.make()
    lab.write(2000)
    lab.take(Format.SEGMENTS)
    lab.write(2000)
    lab.take(Format.SEGMENTS)
    head = lab.archive.head()
    assert head is not None
    objects = lab.archive.objects
    manifest = head.runs[-1].name
    names = [one.name for one in objects.list(DATA)]
    good = {name: objects.get(name) or b"" for name in (*names, manifest)}
    chance = random.Random(3)  # noqa: S311 - no secrets

    def flipped(name: str) -> bytes:
        data = bytearray(good[name])
        data[chance.randrange(len(data))] ^= 1 << chance.randrange(8)
        return bytes(data)

    damages: list[dict[str, bytes | None]] = [
        {(name := chance.choice(names)): flipped(name)} for _ in range(20)
    ]
    damages += [
        {names[1]: None},
        {names[0]: good[names[1]], names[1]: good[names[0]]},
        {manifest: flipped(manifest)},
    ]
    for number, damage in enumerate(damages):
        for name, data in damage.items():
            if data is None:
                objects.delete([name])
            else:
                objects.put(name, data)
        lab.restore.target = (lab.source[0], f"restored-{number}")
        report = lab.restore.run_inline()
        assert report.error is not None
        assert report.error.reason == "ArchiveDamaged"
        assert any(name in report.error.message for name in damage)
        assert lab.store.describe(lab.target) is None
        for name in damage:
            objects.put(name, good[name])
    lab.restore.target = (lab.source[0], "restored")
    assert lab.restore.run_inline().outcome is Outcome.COPIED


def test_what_retention_took_between_runs_is_told_and_the_rest_restored(volume_lab: Lab) -> None:
    """A stream that was truncated past what was archived: before and after it all is there."""
    lab = volume_lab
    lab.make()
    lab.write(2000)
    lab.take(Format.SEGMENTS)
    archived = [one.end for one in lab.manifest.segments]
    lab.write(2000)
    cut = {0: archived[0] + 10 * FRAME, 1: archived[1] + 20 * FRAME}
    lab.foreign.truncate(*lab.source, offsets=cut)
    lab.write(2000)
    lab.scale(*SPLIT)
    lab.write(2000)
    lab.take(Format.SEGMENTS, on_truncation="Record")
    report = lab.restore.run_inline()
    assert report.error is not None
    assert report.error.reason == "SourceTruncated"
    assert lab.store.describe(lab.target) is None
    lab.restore.on_truncation = "Record"
    report = lab.restore.run_inline()
    assert report.outcome is Outcome.COPIED, report.error
    assert [gap.lost for gap in report.gaps] == [10 * FRAME, 20 * FRAME]
    read = lab.foreign.read(*lab.restore.target)
    assert read.events == lab.events - 30
    assert lab.restore.run_inline().outcome is Outcome.ALREADY_COMPLETE
