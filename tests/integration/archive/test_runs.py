"""Streams of a real Pravega that the engine archives, and that the Java client wrote."""

from __future__ import annotations

import itertools
import threading
import time
from typing import TYPE_CHECKING

import pytest

from sluice.archive.formats import piece, segments
from sluice.archive.objects.directory import DirectoryObjects
from sluice.core.archive.names import Format
from sluice.core.archive.request import ArchiveRequest
from sluice.core.events.digest import CHUNK
from sluice.core.values.model import ScaleType, Scaling, StoreAddress, StreamConfig, StreamName
from sluice.engine.archive import parts
from sluice.engine.copy.report import Outcome
from sluice.engine.tasks.executor import InlineExecutor
from sluice.engine.tasks.limits import Limits
from sluice.errors import SourceReplaced, SourceTruncated, TooManyEvents
from sluice.pipelines.programs.stores import Stores
from support.archiving.archive_runs import archive_once, held_by, last_run, root_of
from support.archiving.archiving import EVENTS
from support.engine.executors import Relay
from support.search import few
from support.store.inline import SETTINGS

if TYPE_CHECKING:
    from collections.abc import Iterator
    from concurrent.futures import Future
    from pathlib import Path

    from localstore import ForeignClient, Standalone
    from s3gateway import Gateway
    from sluice.archive.objects.objects import Objects
    from sluice.core.archive.manifest import Manifest
    from sluice.engine.archive.report import ArchiveReport
    from sluice.engine.tasks.slices import Slice, SliceResult
    from sluice.stores.base import Store

# The first test that needs the gateway compiles it.
pytestmark = pytest.mark.timeout(1200)

ONE_FORM = few(Format, [Format.SEGMENTS])
DIRECTORY = pytest.mark.parametrize("env", ["directory"], indirect=True)
BUCKET = pytest.mark.parametrize("env", ["bucket"], indirect=True)
KEYS = 64
EPOCH = 1 << 32
SPLIT = ([0], [(0.0, 0.2), (0.2, 0.5)])
MERGED = ([EPOCH | 3, 1], [(0.2, 1.0)])


class Env:
    """A stream, and an archive of it.

    Args:
        foreign: the official client.
        store: the stream's store.
        objects: the archive's store of objects.
        scope: the stream's scope.
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
        """Return the request for one more run."""
        request = ArchiveRequest(
            archive_id="ab" * 16, source=self.name, store="tcp://it:1", path="orders", format=form
        )
        return request.model_copy(update=changes)

    def archive(self, form: Format = Format.SEGMENTS, **changes: object) -> ArchiveReport:
        """Make one more run."""
        return archive_once(self.store, self.objects, self.request(form, **changes))

    def bytes_of(self) -> dict[int, bytes]:
        """Return the bytes of each segment that is readable, by id."""
        found = {}
        for segment in (one for made in self.store.generations(self.name) for one in made):
            name = self.store.segment_name(self.name, segment.id)
            (info,) = self.store.infos([name])
            assert info is not None
            blocks = self.store.read(name, info.start, info.length)
            found[segment.id] = b"".join(bytes(block.data) for block in blocks)
        return found

    def assert_archived(self) -> Manifest:
        """Check that the last run holds exactly the stream's bytes, and the archive is intact."""
        manifest = last_run(self.objects)
        assert held_by(self.objects, manifest) == self.bytes_of()
        assert manifest.events == self.events
        return manifest


@pytest.fixture(params=["directory", "bucket"])
def env(
    request: pytest.FixtureRequest,
    tmp_path: Path,
    standalone: Standalone,
    foreign: ForeignClient,
    scope: str,
) -> Iterator[Env]:
    """Yield an environment with an archive in a directory, or in a bucket."""
    if request.param == "bucket":
        objects = request.getfixturevalue("in_bucket")()
    else:
        objects = DirectoryObjects(tmp_path / "archive")
    with Stores(SETTINGS) as stores:
        store = stores[StoreAddress(uri=standalone.controller_uri)]
        yield Env(foreign, store, objects, scope)


@pytest.mark.parametrize(
    ("env", "form"),
    few(itertools.product(["directory", "bucket"], Format), 0),
    indirect=["env"],
)
def test_a_stream_is_archived_run_after_run(env: Env, form: Format) -> None:
    """Each run adds the new events, also after a split and a merge between runs."""
    env.make()
    events = EVENTS[form]
    env.write(events)
    first = env.archive(form)
    assert first.outcome is Outcome.ARCHIVED, first.error
    assert (first.run, first.added) == (1, first.bytes)
    env.assert_archived()
    env.scale(*SPLIT)
    env.write(events)
    second = env.archive(form)
    assert second.outcome is Outcome.ARCHIVED, second.error
    env.assert_archived()
    env.scale(*MERGED)
    env.write(events)
    env.foreign.seal(*env.source)
    third = env.archive(form)
    assert third.outcome is Outcome.ARCHIVED, third.error
    manifest = env.assert_archived()
    assert manifest.sealed
    assert all(segment.sealed for segment in manifest.segments)
    assert [one.epoch for one in manifest.segments] == [0, 0, 1, 1, 2]
    assert manifest.config.tags == ("team=a",)
    text = manifest.end.text
    assert text is not None
    stream, cut = env.store.read_cut(text)
    assert stream == env.name
    assert cut == {one.segment: one.offset for one in manifest.end.offsets}
    again = env.archive(form)  # without new events, the run says so
    assert (again.run, again.added) == (4, 0)


@DIRECTORY
def test_a_long_segment_is_archived_in_parts(env: Env, monkeypatch: pytest.MonkeyPatch) -> None:
    """Parts may begin inside an event, and all events are counted."""
    for module in (piece, segments, parts):
        monkeypatch.setattr(module, "OBJECT", CHUNK)
    env.make(segments=1)
    env.write(2500, size=8000)
    limits = Limits(slice_bytes=CHUNK)
    report = archive_once(
        env.store, env.objects, env.request(Format.SEGMENTS), limits=lambda: limits
    )
    assert report.error is None
    assert len(list(env.assert_archived().objects)) == 3


@pytest.mark.exhaustive
@DIRECTORY
@pytest.mark.parametrize("form", ONE_FORM)
def test_what_the_source_has_lost_is_refused_or_recorded(env: Env, form: Format) -> None:
    """Losses in a segment or of whole ones are refused or recorded. A new stream is refused."""
    env.make()
    env.write()
    assert env.archive(form).error is None
    env.write()
    ends = {one.segment: one.offset for one in last_run(env.objects).end.offsets}
    env.foreign.truncate(*env.source, offsets={0: ends[0] + 1080, 1: ends[1]})
    with pytest.raises(SourceTruncated, match="of segment 0 are gone"):
        env.archive(form)
    report = env.archive(form, on_truncation="Record")
    assert (report.outcome, report.lost) == (Outcome.ARCHIVED, 1080)
    env.write()
    env.scale(*SPLIT)
    env.write()
    env.scale(*MERGED)
    env.write()
    env.foreign.truncate(*env.source, offsets={EPOCH | 2: 0, 2 * EPOCH | 4: 0})
    with pytest.raises(SourceTruncated, match="segment 0 is gone"):
        env.archive(form)
    report = env.archive(form, on_truncation="Record")
    assert report.outcome is Outcome.ARCHIVED, report.error
    manifest = last_run(env.objects)
    lost = {one.id: one.lost is not None for one in manifest.segments}
    assert lost == {
        0: True,
        1: True,
        EPOCH | 2: False,
        EPOCH | 3: True,
        2 * EPOCH | 4: False,
    }
    held = held_by(env.objects, manifest)
    assert {one: held[one] for one in (EPOCH | 2, 2 * EPOCH | 4)} == env.bytes_of()
    env.foreign.delete(*env.source)
    env.make()
    with pytest.raises(SourceReplaced):
        env.archive(form, on_truncation="Record")


@DIRECTORY
def test_more_events_than_are_allowed_are_refused(env: Env) -> None:
    """A run with too many events, by the store's count, is refused before any byte moves."""
    env.make()
    env.write(200)
    with pytest.raises(TooManyEvents, match="200 events"):
        env.archive(Format.EVENT_OBJECTS, max_events=199)
    assert env.archive(Format.EVENT_OBJECTS, max_events=200).events == 200


@DIRECTORY
def test_an_empty_stream_is_archived(env: Env) -> None:
    """The manifest of an empty stream has its segments without objects. Later runs add events."""
    env.make(segments=3)
    assert env.archive().bytes == 0
    assert [one.end for one in env.assert_archived().segments] == [0, 0, 0]
    env.write(1)
    assert env.archive().events == 1
    env.assert_archived()


@pytest.mark.exhaustive
@DIRECTORY
def test_long_segments_make_many_objects(env: Env) -> None:
    """Objects and slices end every 64 MiB. Events are counted over all objects."""
    env.make(segments=1)
    env.foreign.write(*env.source, events=150_000, size=1000, keys=1)
    env.events = 150_000
    report = env.archive()
    assert report.outcome is Outcome.ARCHIVED, report.error
    (segment,) = env.assert_archived().segments
    ends = [one.end for one in segment.stretches[0].objects]
    assert [end % (64 << 20) for end in ends[:-1]] == [0] * (len(ends) - 1)
    assert len(ends) == 3


class Killing(Relay):
    """An executor that kills the gateway for two seconds before the first round of each kind.

    Args:
        env: the archive's.
        gateway: the gateway to kill.

    Attributes:
        kinds: the kinds of slices before which the gateway was killed.
    """

    def __init__(self, env: Env, gateway: Gateway) -> None:
        super().__init__(InlineExecutor([env.store], root_of(env.objects)))
        self._gateway = gateway
        self.kinds: list[str] = []

    def submit(self, work: Slice) -> Future[SliceResult]:
        """Submit a slice. Before the first one of a kind, kill the gateway for two seconds."""
        kind = type(work).__name__
        if kind in self.kinds:
            return super().submit(work)
        self.kinds.append(kind)
        self._gateway.kill()
        back = threading.Timer(2, self._gateway.start)
        back.start()
        try:
            return super().submit(work)
        finally:
            back.join()


@BUCKET
@pytest.mark.parametrize("form", ONE_FORM)
def test_a_gateway_that_is_killed_is_waited_for(env: Env, gateway: Gateway, form: Format) -> None:
    """A run waits for a killed gateway, while it puts objects and while it reads them back."""
    env.make()
    env.write(300)
    executor = Killing(env, gateway)
    report = archive_once(
        env.store, env.objects, env.request(form), executor=executor, patience=60, clock=time
    )
    assert report.outcome is Outcome.ARCHIVED, report.error
    assert executor.kinds == ["ArchiveSlice", "CheckSlice"]
    env.assert_archived()
