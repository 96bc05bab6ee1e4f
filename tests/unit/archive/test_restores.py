"""Runs of archives restored into the model store by the engine."""

from __future__ import annotations

import hashlib
import random
from typing import TYPE_CHECKING

import pytest

from sluice.archive.archive import Archive
from sluice.archive.shelf import Shelf
from sluice.archive.sweep import sweep
from sluice.core.archive.lease import GRACE
from sluice.core.archive.names import DATA, EVENTS, LEASES, Format
from sluice.core.model import Retention, RetentionType, StreamConfig
from sluice.core.plan import Plan, StreamPlan, pinned
from sluice.core.planner import ArchiveChoice, CopyRequest, SourceRequest
from sluice.core.steps import Transfer
from sluice.engine.copy import CopyRunner
from sluice.engine.executor import InlineExecutor
from sluice.engine.planning import resolve
from sluice.engine.report import Outcome
from sluice.engine.settle import How, end
from sluice.errors import (
    ArchiveDamaged,
    ArchiveNotFound,
    InvalidSpec,
    PermissionDenied,
    SourceTruncated,
    StoreUnavailable,
)
from support.archives import START, STREAM, Source, take
from support.memory_objects import MemoryObjects
from support.model import Fate, ModelStore, World
from support.plans import ADDRESS, COPY, SOURCE, TARGET
from support.sources import ManualClock, put_source

if TYPE_CHECKING:
    from sluice.archive.objects import Buffer
    from sluice.engine.report import StreamReport

FORMATS = list(Format)
PATH = "team/orders"
SIZES = [200, 0, 3000, 17] * 5
BLOCK = 1 << 20


class Lab:
    """An archive in memory, a stream that it is of, and a world to restore it into.

    Args:
        form: of the archive.
    """

    def __init__(self, form: Format = Format.SEGMENTS) -> None:
        self.form = form
        self.now = START / 1000
        self.objects = MemoryObjects(clock=lambda: self.now)
        self.archive = Archive(self.objects)
        self.source = Source()
        self.world = World()
        self.then: list[list[bytes]] = []

    @property
    def shelf(self) -> Shelf:
        """The place that has the archive at PATH, and nothing else."""
        return Shelf("s3://it", lambda path: self.objects if path == PATH else MemoryObjects())

    def take(self, sizes: list[int] | None = None, *, split: bool = False) -> None:
        """Write to the stream and record a run, after a split if there is to be one."""
        if split:
            self.source.split()
        self.source.write(SIZES if sizes is None else sizes)
        config = StreamConfig(
            tags=("team=a", f"run={len(self.then)}"),
            retention=Retention(type=RetentionType.TIME, minimum=10**9),
        )
        take(self.archive, self.form, self.source, config=config)
        self.then.append([bytes(one.data[one.start :]) for one in self.source.segments])

    def three(self) -> Lab:
        """Three runs, each after a split."""
        self.take()
        self.take(split=True)
        self.take(split=True)
        return self

    def request(self, **changes: object) -> CopyRequest:
        """A restore of the last run; fields of the choice or of the request are changed."""
        choice = {name: changes.pop(name) for name in ("run", "until", "path") if name in changes}
        source = SourceRequest(
            stream=SOURCE, archive=ArchiveChoice.model_validate({"path": PATH, **choice})
        )
        request = CopyRequest(copy_id=COPY, sources=(source,), target=TARGET)
        return request.model_copy(update=changes)

    def plan(self, store: ModelStore, request: CopyRequest) -> StreamPlan:
        """The plan that a driver of this copy works on."""
        found = resolve(request, [self.shelf], store).plan
        assert found is not None
        return found

    def runner(self, store: ModelStore, plan: StreamPlan, *, patience: float = 0) -> CopyRunner:
        """A driver."""
        addresses = pinned(plan, [ADDRESS])
        assert addresses[0].archive is not None
        sources = [self.shelf.run(addresses[0].archive)]
        return CopyRunner(
            Plan(sources=addresses, target=ADDRESS, streams=(plan,)),
            sources=sources,
            target=store,
            executor=InlineExecutor(sources, store),
            clock=ManualClock(),
            patience=patience,
        )

    def restore(self, request: CopyRequest | None = None) -> StreamReport:
        """Restore to the end."""
        store = ModelStore(self.world, block=BLOCK)
        (report,) = self.runner(store, self.plan(store, request or self.request())).run()
        return report

    @property
    def restored(self) -> list[bytes]:
        """The bytes of each segment of the target."""
        return self.world.bytes_of(TARGET)

    def assert_nothing_is_there(self) -> None:
        """Neither a target nor anything of ours is in the world."""
        assert TARGET not in self.world.streams
        assert self.world.segments == {}


@pytest.mark.parametrize("form", FORMATS)
def test_each_run_is_restored_as_the_stream_was(form: Format) -> None:
    """Bytes, key ranges and configuration are those of the end of the run, by its number."""
    for number in range(1, 4):
        lab = Lab(form).three()
        report = lab.restore(lab.request(run=number))
        assert report.outcome is Outcome.COPIED, report.error
        assert lab.restored == lab.then[number - 1]
        stream = lab.world.streams[TARGET]
        assert f"run={number - 1}" in stream.config.tags
        assert stream.config.retention.minimum == 10**9
        assert len(stream.segments) == 2 ** (number - 1)
        assert [one.keys for one in stream.readable] == [
            one.keys for one in lab.source.segments[: len(stream.readable)]
        ]
        assert report.source == str(STREAM)


def test_the_last_run_before_a_time_is_restored() -> None:
    """A time between two runs means the first of them; one before all of them none."""
    lab = Lab().three()
    head = lab.archive.head()
    assert head is not None
    assert lab.restore(lab.request(until=head.runs[2].time - 1)).outcome is Outcome.COPIED
    assert lab.restored == lab.then[1]
    with pytest.raises(ArchiveNotFound) as caught:
        Lab().three().restore(lab.request(until=head.runs[0].time - 1))
    assert caught.value.field == "spec.source.archive.until"


def test_a_run_is_appended_to_a_stream() -> None:
    """What somebody has written stays in front, and the run follows."""
    lab = Lab()
    lab.take()
    before = put_source(lab.world, [5, 9], name=TARGET)
    report = lab.restore(lab.request(append=True))
    assert report.outcome is Outcome.COPIED, report.error
    assert b"".join(lab.restored) == b"".join(before) + lab.then[0][0]


def test_what_was_begun_stays_with_its_run() -> None:
    """A later run that was recorded meanwhile changes nothing, nor does the archive's end."""
    lab = Lab()
    lab.take()
    store = ModelStore(lab.world, block=BLOCK)
    plan = lab.plan(store, lab.request())
    assert plan.sources[0].archive is not None
    assert plan.sources[0].archive.run == 1
    runner = lab.runner(store, plan)
    runner._runs[0].copy.ledger.begin(plan)
    lab.take()
    assert lab.plan(store, lab.request()) == plan
    assert lab.restore().outcome is Outcome.COPIED
    assert lab.restored == lab.then[0]
    lab.objects.held.clear()
    assert resolve(lab.request(), [lab.shelf], store).digest is not None


@pytest.mark.parametrize("form", FORMATS)
def test_20_flipped_bytes_are_each_refused_by_name(form: Format) -> None:
    """A byte changed anywhere in what the run lists: its object is named, nothing is visible."""
    lab = Lab(form).three()
    whole = dict(lab.objects.held)
    chance = random.Random(11)  # noqa: S311 - no secrets
    last = lab.archive.head().runs[-1].name  # type: ignore[union-attr]
    names = sorted(one for one in whole if one.startswith((DATA, EVENTS)) and whole[one])
    for _ in range(20):
        name = chance.choice([*names, last])
        bad = bytearray(whole[name])
        bad[chance.randrange(len(bad))] ^= 1 << chance.randrange(8)
        lab.objects.held = {**whole, name: bytes(bad)}
        assert_refused(lab, name)


@pytest.mark.parametrize("form", FORMATS)
def test_missing_and_swapped_objects_are_refused_by_name(form: Format) -> None:
    """So are an object that is not there, and one that holds another's bytes."""
    lab = Lab(form).three()
    whole = dict(lab.objects.held)
    names = sorted(one for one in whole if one.startswith((DATA, EVENTS)) and whole[one])
    manifest = lab.archive.head().runs[-1].name  # type: ignore[union-attr]
    for name in (names[0], names[-1], manifest):
        lab.objects.held = {one: data for one, data in whole.items() if one != name}
        assert_refused(lab, name)
    data = [one for one in names if one.startswith(DATA)]
    lab.objects.held = {**whole, data[0]: whole[data[1]], data[1]: whole[data[0]]}
    assert_refused(lab, data[0])


def assert_refused(lab: Lab, name: str) -> None:
    """The restore fails for this object, and leaves nothing."""
    store = ModelStore(lab.world, block=BLOCK)
    try:
        plan = lab.plan(store, lab.request())
    except ArchiveDamaged as error:
        named = error.name
    else:
        (report,) = lab.runner(store, plan).run()
        assert report.error is not None
        assert report.error.reason == "ArchiveDamaged"
        assert report.cleaned
        named = next(one for one in report.error.message.split() if one == name)
    assert named == name
    lab.assert_nothing_is_there()
    lab.world = World()  # a store gives the name of a deleted journal back only later


def test_a_manifest_that_was_edited_with_its_head_is_refused() -> None:
    """Who can write all names and digests anew but not the bytes is found out by these."""
    lab = Lab()
    lab.take()
    head = lab.archive.head()
    assert head is not None
    manifest = lab.archive.manifest(head.runs[0])
    (segment,) = manifest.segments
    (stretch,) = segment.stretches
    other = hashlib.sha256(b"other").hexdigest()
    edited = manifest.model_copy(
        update={
            "segments": (
                segment.model_copy(
                    update={"stretches": (stretch.model_copy(update={"digests": other}),)}
                ),
            )
        }
    )
    lab.objects.held = {
        name: data for name, data in lab.objects.held.items() if name.startswith(DATA)
    }
    lab.archive.record(edited, None, verified=True)
    report = lab.restore()
    assert report.error is not None
    assert report.error.reason == "ArchiveDamaged"
    assert other in report.error.message
    lab.assert_nothing_is_there()


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


def test_the_lease_is_held_while_a_run_is_read_and_given_back() -> None:
    """Nobody sweeps what is read; when it is over the lease is gone, whatever came of it."""
    lab = Lab().three()
    seen = []

    class Looking(InlineExecutor):
        def run(self, tasks):  # type: ignore[no-untyped-def]  # noqa: ANN001, ANN202 - as its base
            seen.append([one.name for one in lab.objects.list(LEASES)])
            return super().run(tasks)

    store = ModelStore(lab.world, block=BLOCK)
    runner = lab.runner(store, lab.plan(store, lab.request()))
    runner._executor = Looking(runner._runs[0].copy._sources, store)
    (report,) = runner.run()
    assert report.outcome is Outcome.COPIED
    assert seen
    assert len({*map(tuple, seen)}) == len(seen[0]) == 1
    assert list(lab.objects.list(LEASES)) == []


def begin_reading(lab: Lab, store: ModelStore, plan: StreamPlan) -> None:
    """Do what a driver does that is killed before it reads the first byte."""
    copy = lab.runner(store, plan)._runs[0].copy
    copy.plan = copy.ledger.begin(copy.plan)  # type: ignore[attr-defined]
    while not isinstance(step := copy.look(), Transfer):
        copy.perform(step)


def test_a_run_that_was_let_go_is_restored_while_its_lease_counts() -> None:
    """Whoever goes on with a restore within a day finds all of it; later it is refused."""
    for later, works in ((GRACE - 60, True), (2 * GRACE, False)):
        lab = Lab().three()
        store = ModelStore(lab.world, block=BLOCK)
        plan = lab.plan(store, lab.request(run=1))
        begin_reading(lab, store, plan)
        head = lab.archive.head()
        assert head is not None
        lab.archive.forget([1], head)
        lab.now += later
        sweep(lab.archive)
        assert (head.runs[0].name in lab.objects.held) == works
        (report,) = lab.runner(store, plan).run()
        if works:
            assert report.outcome is Outcome.COPIED, report.error
            assert lab.restored == lab.then[0]
        else:
            assert report.error is not None
            assert report.error.reason == "ArchiveNotFound"
            lab.assert_nothing_is_there()


def test_an_aborted_restore_gives_its_lease_back() -> None:
    """Whoever ends a restore whose driver was killed leaves nothing in the archive."""
    lab = Lab().three()
    store = ModelStore(lab.world, block=BLOCK)
    plan = lab.plan(store, lab.request())
    begin_reading(lab, store, plan)
    assert list(lab.objects.list(LEASES))
    assert end(lab.request(), sources=[lab.shelf], target=store).how is How.DROPPED
    assert list(lab.objects.list(LEASES)) == []
    lab.assert_nothing_is_there()


def test_whoever_may_only_read_restores_all_the_same() -> None:
    """Without the right to write there is no lease; the run is compared as ever."""
    lab = Lab().three()

    class ReadOnly(MemoryObjects):
        def put(self, name: str, data: object) -> None:  # noqa: ARG002 - see Objects
            raise PermissionDenied(name)

    denied = ReadOnly()
    denied.held, denied.modified = lab.objects.held, lab.objects.modified
    lab.objects = denied
    assert lab.restore().outcome is Outcome.COPIED
    assert lab.restored == lab.then[-1]


def test_a_store_of_archives_that_is_away_is_waited_for() -> None:
    """Calls that fail for a while are made again, and nothing is lost or doubled."""
    lab = Lab(Format.EVENT_OBJECTS).three()

    class Flaky(MemoryObjects):
        calls = 0

        def get(self, name: str, start: int = 0, end: int | None = None) -> bytes | None:
            self._called(name)
            return super().get(name, start, end)

        def put(self, name: str, data: Buffer) -> None:
            self._called(name)
            super().put(name, data)

        def _called(self, name: str) -> None:
            self.calls += 1
            if self.calls in {1, 2, *range(20, 25), *range(60, 65)}:
                raise StoreUnavailable(name)

    store = ModelStore(lab.world, block=BLOCK)
    plan = lab.plan(store, lab.request())
    flaky = Flaky()
    flaky.held, flaky.modified = lab.objects.held, lab.objects.modified
    lab.objects, lab.archive = flaky, Archive(flaky)
    (report,) = lab.runner(store, plan, patience=300).run()
    assert report.outcome is Outcome.COPIED, report.error
    assert lab.restored == lab.then[-1]


class Killed(BaseException):
    """Ends a driver for good."""


def test_a_driver_is_killed_at_every_call() -> None:
    """Whoever comes after goes on with the same run, and the target is what the stream was."""
    calls = 0
    while True:
        lab = Lab().three()
        left = calls

        def gate(_call: str) -> Fate:
            nonlocal left
            left -= 1
            if left < 0:
                raise Killed
            return Fate.DONE

        dying = ModelStore(lab.world, gate, block=BLOCK)
        try:
            lab.runner(dying, lab.plan(dying, lab.request())).run()
        except Killed:
            lab.take()
            if resolve(lab.request(), [lab.shelf], ModelStore(lab.world)).digest is None:
                report = lab.restore()
                assert report.outcome is Outcome.COPIED, report.error
            assert lab.restored in lab.then
        else:
            break
        calls += 1
    assert calls > 30


def test_an_archive_is_not_moved_and_no_stream_is_sought_in_one() -> None:
    """Requests that fit no archive name the field."""
    lab = Lab().three()
    with pytest.raises(InvalidSpec) as caught:
        lab.restore(lab.request(move=True))
    assert caught.value.field == "spec.sourceOnComplete"
    live = CopyRequest(copy_id=COPY, sources=(SourceRequest(stream=SOURCE),), target=TARGET)
    with pytest.raises(InvalidSpec, match="holds archives") as caught:
        lab.restore(live)
    assert caught.value.field == "spec.source.storeRef"
    with pytest.raises(ArchiveNotFound, match="no archive at 'team/other'") as missing:
        lab.restore(lab.request(path="team/other"))
    assert missing.value.field == "spec.source.archive.path"
    with pytest.raises(ArchiveNotFound, match="there is no such run") as run:
        lab.restore(lab.request(run=9))
    assert run.value.field == "spec.source.archive.run"
