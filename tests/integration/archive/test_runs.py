"""Streams of a real Pravega archived by the engine; the Java client wrote them."""

from __future__ import annotations

import threading
import time
from typing import TYPE_CHECKING

import pytest

from sluice.archive import piece, segments
from sluice.archive.directory import DirectoryObjects
from sluice.core.archive.names import Format
from sluice.core.archive.request import ArchiveRequest
from sluice.core.digest import CHUNK
from sluice.core.model import ScaleType, Scaling, StoreAddress, StreamConfig, StreamName
from sluice.engine.archiving import parts
from sluice.engine.executor import InlineExecutor
from sluice.engine.limits import Limits
from sluice.engine.report import Outcome
from sluice.errors import SourceReplaced, SourceTruncated, TooManyEvents
from sluice.pipelines.program import Stores
from support.archive_runs import archive_once, held_by, last_run, shelf_of
from support.inline import SETTINGS

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence
    from pathlib import Path

    from localstore import ForeignClient, Standalone
    from s3gateway import Gateway
    from sluice.archive.objects import Objects
    from sluice.core.archive.manifest import Manifest
    from sluice.engine.archiving.report import ArchiveReport
    from sluice.engine.slices import Slice, SliceResult
    from sluice.stores.base import Store

# The first one to need the gateway compiles it.
pytestmark = pytest.mark.timeout(1200)

ONE_FORM = [
    Format.SEGMENTS,
    *(pytest.param(one, marks=pytest.mark.exhaustive) for one in Format if one != Format.SEGMENTS),
]
DIRECTORY = pytest.mark.parametrize("lab", ["directory"], indirect=True)
BUCKET = pytest.mark.parametrize("lab", ["bucket"], indirect=True)
KEYS = 64
EPOCH = 1 << 32
SPLIT = ([0], [(0.0, 0.2), (0.2, 0.5)])
MERGED = ([EPOCH | 3, 1], [(0.2, 1.0)])


class Lab:
    """A stream, and an archive of it.

    Args:
        foreign: the official client.
        store: where the stream is.
        objects: where the archive is.
        scope: of the stream.
    """

    def __init__(self, foreign: ForeignClient, store: Store, objects: Objects, scope: str) -> None:
        self.foreign = foreign
        self.store = store
        self.objects = objects
        self.source = (scope, "source")
        self.name = StreamName(scope=scope, stream="source")
        self.events = 0

    def make(self, segments: int = 2) -> None:
        """Make the stream, with tags."""
        self.foreign.create(*self.source, segments=segments)
        policy = Scaling(type=ScaleType.BY_EVENTS, target_rate=10**9, scale_factor=2)
        self.store.update_stream(self.name, StreamConfig(scaling=policy, tags=("team=a",)))

    def write(self, events: int = 3000, size: int = 100) -> None:
        """Write events."""
        self.foreign.write(*self.source, events=events, size=size, keys=KEYS, first=self.events)
        self.events += events

    def scale(self, ended: list[int], ranges: list[tuple[float, float]]) -> None:
        """Scale the stream."""
        assert self.foreign.scale(*self.source, segments=ended, ranges=ranges)

    def request(self, form: Format, **changes: object) -> ArchiveRequest:
        """What asks for one more run."""
        request = ArchiveRequest(
            archive_id="ab" * 16, source=self.name, store="tcp://it:1", path="orders", format=form
        )
        return request.model_copy(update=changes)

    def archive(self, form: Format = Format.SEGMENTS, **changes: object) -> ArchiveReport:
        """Make one more run."""
        return archive_once(self.store, self.objects, self.request(form, **changes))

    def bytes_of(self) -> dict[int, bytes]:
        """The bytes of each segment that is readable, by id."""
        found = {}
        for segment in (one for made in self.store.generations(self.name) for one in made):
            name = self.store.segment_name(self.name, segment.id)
            (info,) = self.store.infos([name])
            assert info is not None
            blocks = self.store.read(name, info.start, info.length)
            found[segment.id] = b"".join(bytes(block.data) for block in blocks)
        return found

    def assert_archived(self) -> Manifest:
        """The last run holds just what the stream has, and the archive is as it was recorded."""
        manifest = last_run(self.objects)
        assert held_by(self.objects, manifest) == self.bytes_of()
        assert manifest.events == self.events
        return manifest


@pytest.fixture(params=["directory", "bucket"])
def lab(
    request: pytest.FixtureRequest,
    tmp_path: Path,
    standalone: Standalone,
    foreign: ForeignClient,
    scope: str,
) -> Iterator[Lab]:
    """Gives a lab whose archive lies in a directory, and in a bucket."""
    if request.param == "bucket":
        objects = request.getfixturevalue("in_bucket")()
    else:
        objects = DirectoryObjects(tmp_path / "archive")
    with Stores(SETTINGS) as stores:
        store = stores[StoreAddress(uri=standalone.controller_uri)]
        yield Lab(foreign, store, objects, scope)


@pytest.mark.parametrize("form", list(Format))
def test_a_stream_is_archived_run_after_run(lab: Lab, form: Format) -> None:
    """Split between the first two runs and merged before the third; each adds what is new."""
    lab.make()
    lab.write()
    first = lab.archive(form)
    assert first.outcome is Outcome.ARCHIVED, first.error
    assert (first.run, first.added) == (1, first.bytes)
    lab.assert_archived()
    lab.scale(*SPLIT)
    lab.write()
    second = lab.archive(form)
    assert second.outcome is Outcome.ARCHIVED, second.error
    lab.assert_archived()
    lab.scale(*MERGED)
    lab.write()
    lab.foreign.seal(*lab.source)
    third = lab.archive(form)
    assert third.outcome is Outcome.ARCHIVED, third.error
    manifest = lab.assert_archived()
    assert manifest.sealed
    assert all(segment.sealed for segment in manifest.segments)
    assert [one.epoch for one in manifest.segments] == [0, 0, 1, 1, 2]
    assert manifest.config.tags == ("team=a",)
    text = manifest.end.text
    assert text is not None
    stream, cut = lab.store.read_cut(text)
    assert stream == lab.name
    assert cut == {one.segment: one.offset for one in manifest.end.offsets}
    again = lab.archive(form)  # nothing is new, and a run says so
    assert (again.run, again.added) == (4, 0)


@DIRECTORY
def test_a_long_segment_is_archived_in_parts(lab: Lab, monkeypatch: pytest.MonkeyPatch) -> None:
    """Each begins inside an event, and all of these are counted."""
    for module in (piece, segments, parts):
        monkeypatch.setattr(module, "OBJECT", CHUNK)
    lab.make(segments=1)
    lab.write(2500, size=8000)
    limits = Limits(slice_bytes=CHUNK)
    report = archive_once(
        lab.store, lab.objects, lab.request(Format.SEGMENTS), limits=lambda: limits
    )
    assert report.error is None
    assert len(list(lab.assert_archived().objects)) == 3


@DIRECTORY
@pytest.mark.parametrize("form", ONE_FORM)
def test_what_the_source_has_lost_is_refused_or_recorded(lab: Lab, form: Format) -> None:
    """Between two runs, within a segment and past whole ones; a stream that is new is no such."""
    lab.make()
    lab.write()
    assert lab.archive(form).error is None
    lab.write()
    ends = {one.segment: one.offset for one in last_run(lab.objects).end.offsets}
    lab.foreign.truncate(*lab.source, offsets={0: ends[0] + 1080, 1: ends[1]})
    with pytest.raises(SourceTruncated, match="of segment 0 are gone"):
        lab.archive(form)
    report = lab.archive(form, on_truncation="Record")
    assert (report.outcome, report.lost) == (Outcome.ARCHIVED, 1080)
    lab.write()
    lab.scale(*SPLIT)
    lab.write()
    lab.scale(*MERGED)
    lab.write()
    lab.foreign.truncate(*lab.source, offsets={EPOCH | 2: 0, 2 * EPOCH | 4: 0})
    with pytest.raises(SourceTruncated, match="segment 0 is gone"):
        lab.archive(form)
    report = lab.archive(form, on_truncation="Record")
    assert report.outcome is Outcome.ARCHIVED, report.error
    manifest = last_run(lab.objects)
    lost = {one.id: one.lost is not None for one in manifest.segments}
    assert lost == {
        0: True,
        1: True,
        EPOCH | 2: False,
        EPOCH | 3: True,
        2 * EPOCH | 4: False,
    }
    held = held_by(lab.objects, manifest)
    assert {one: held[one] for one in (EPOCH | 2, 2 * EPOCH | 4)} == lab.bytes_of()
    lab.foreign.delete(*lab.source)
    lab.make()
    with pytest.raises(SourceReplaced):
        lab.archive(form, on_truncation="Record")


@DIRECTORY
def test_more_events_than_are_allowed_are_refused(lab: Lab) -> None:
    """Before a byte moves, as the store counts them."""
    lab.make()
    lab.write(200)
    with pytest.raises(TooManyEvents, match="200 events"):
        lab.archive(Format.EVENT_OBJECTS, max_events=199)
    assert lab.archive(Format.EVENT_OBJECTS, max_events=200).events == 200


@DIRECTORY
def test_an_empty_stream_is_archived(lab: Lab) -> None:
    """Its segments are in the manifest, without an object; what comes later is added."""
    lab.make(segments=3)
    assert lab.archive().bytes == 0
    assert [one.end for one in lab.assert_archived().segments] == [0, 0, 0]
    lab.write(1)
    assert lab.archive().events == 1
    lab.assert_archived()


@DIRECTORY
def test_long_segments_make_many_objects(lab: Lab) -> None:
    """Objects end every 64 MiB, in slices that end there; events are counted over all of them."""
    lab.make(segments=1)
    lab.foreign.write(*lab.source, events=150_000, size=1000, keys=1)
    lab.events = 150_000
    report = lab.archive()
    assert report.outcome is Outcome.ARCHIVED, report.error
    (segment,) = lab.assert_archived().segments
    ends = [one.end for one in segment.stretches[0].objects]
    assert [end % (64 << 20) for end in ends[:-1]] == [0] * (len(ends) - 1)
    assert len(ends) == 3


class Killing:
    """An executor before whose first rounds of each kind the gateway is killed, for two seconds.

    Args:
        lab: the archive's.
        gateway: what is killed.

    Attributes:
        kinds: of the slices before which it was.
    """

    slots = 1

    def __init__(self, lab: Lab, gateway: Gateway) -> None:
        self._inner = InlineExecutor([lab.store], shelf_of(lab.objects))
        self._gateway = gateway
        self.kinds: list[str] = []

    def run(self, tasks: Sequence[Sequence[Slice]]) -> list[SliceResult]:
        """See Executor."""
        kind = type(tasks[0][0]).__name__
        if kind in self.kinds:
            return self._inner.run(tasks)
        self.kinds.append(kind)
        self._gateway.kill()
        back = threading.Timer(2, self._gateway.start)
        back.start()
        try:
            return self._inner.run(tasks)
        finally:
            back.join()


@BUCKET
@pytest.mark.parametrize("form", ONE_FORM)
def test_a_gateway_that_is_killed_is_waited_for(lab: Lab, gateway: Gateway, form: Format) -> None:
    """While objects are put, and while they are read back; then the run goes on."""
    lab.make()
    lab.write(300)
    executor = Killing(lab, gateway)
    report = archive_once(
        lab.store, lab.objects, lab.request(form), executor=executor, patience=60, clock=time
    )
    assert report.outcome is Outcome.ARCHIVED, report.error
    assert executor.kinds == ["ArchiveSlice", "CheckSlice"]
    lab.assert_archived()
