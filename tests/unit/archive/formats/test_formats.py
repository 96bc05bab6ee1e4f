import hashlib
import io
import struct
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from itertools import accumulate, pairwise
from pathlib import Path

import duckdb
import pyarrow.parquet as pq
import pytest
import zstandard
from hypothesis import given
from hypothesis import strategies as st

from sluice.archive.formats import formats
from sluice.archive.formats.content import Checked
from sluice.archive.formats.piece import OBJECT, Piece
from sluice.archive.objects.directory import DirectoryObjects
from sluice.core.archive.manifest import StoredObject
from sluice.core.archive.names import Format, read_data, read_event
from sluice.core.events import grouping
from sluice.core.events.digest import CHUNK
from sluice.core.events.grouping import EventStart
from sluice.core.values.archive_layout import EVENTS
from sluice.errors import (
    ArchiveDamaged,
    EventsDamaged,
    ProtocolError,
    SourceUnsupported,
    TooManyEvents,
)
from support.archiving.archived_events import SEGMENT, framed, many_events, read, write
from support.model.memory_objects import MemoryObjects
from support.search import few

FORMATS = list(Format)
ALIGNED = [Format.PARQUET, Format.EVENT_OBJECTS]

sizes = st.lists(st.integers(0, 60), min_size=1, max_size=25)
cuts = st.lists(st.integers(0, 5000), max_size=8)
boundaries = st.sampled_from([CHUNK, OBJECT, 5 * CHUNK])
forms = st.sampled_from(FORMATS)


@given(forms, sizes, cuts, boundaries, st.integers(0, 700), st.data())
def test_what_is_read_is_what_was_written(
    form: Format, lengths: list[int], at: list[int], boundary: int, before: int, data: st.DataObject
) -> None:
    """Any range of events, in any blocks across any boundary, comes back byte for byte."""
    objects = MemoryObjects()
    raw = framed(many_events(len(lengths), lengths))
    start = boundary - min(before, boundary)
    entries = write(form, objects, raw, start, cuts=at)
    first = data.draw(st.integers(start, start + len(raw)))
    last = data.draw(st.integers(first, start + len(raw)))
    assert read(form, objects, entries) == raw
    assert read(form, objects, entries, first, last) == raw[first - start : last - start]


@given(forms, sizes, cuts, boundaries, st.integers(0, 700))
def test_objects_say_which_events_they_have(
    form: Format, lengths: list[int], at: list[int], boundary: int, before: int
) -> None:
    """Objects follow one another, with the number and places of events that begin in them."""
    objects = MemoryObjects()
    raw = framed(many_events(1, lengths))
    start = boundary - min(before, boundary)
    begins = list(accumulate((8 + length for length in lengths), initial=start))[:-1]
    entries = write(form, objects, raw, start, cuts=at)
    assert [entries[0].start, *(one.end for one in entries)] == [
        *(one.start for one in entries),
        start + len(raw),
    ]
    for entry in entries:
        own = [begin for begin in begins if entry.start <= begin < entry.end]
        expected = (len(own), own[0], own[-1]) if own else (0, None, None)
        assert (entry.events, entry.first, entry.last) == expected
        name = read_data(entry.name)
        assert name is not None
        assert name[:4] == (SEGMENT.epoch, SEGMENT.id, entry.start, entry.end)
        assert (name.sha256, name.format) == (entry.sha256, form)


@given(forms, sizes, cuts, cuts)
def test_the_same_bytes_make_the_same_objects(
    form: Format, lengths: list[int], some: list[int], other: list[int]
) -> None:
    """The cuts of the source's blocks do not change the objects."""
    raw = framed(many_events(2, lengths))
    start = OBJECT - len(raw) // 2
    one, two = MemoryObjects(), MemoryObjects()
    assert write(form, one, raw, start, cuts=some) == write(form, two, raw, start, cuts=other)
    assert one.held == two.held


@pytest.mark.parametrize("form", few(FORMATS, [Format.PARQUET]))
def test_many_chunks_and_objects(form: Format, tmp_path: Path) -> None:
    """90 MB of events of many sizes, some longer than a chunk, come back from a directory."""
    objects = DirectoryObjects(tmp_path)
    lengths = [9_000_000, 0, 1, *[300_000] * 60, 30_000_000, *[70_000] * 40, 20_000_000, 5]
    raw = framed(many_events(3, lengths))
    entries = write(form, objects, raw, 12_345, cuts=range(0, len(raw), 1_000_003))
    assert sum(one.events or 0 for one in entries) == len(lengths)
    assert read(form, objects, entries) == raw
    if form is Format.EVENT_OBJECTS:
        assert len(list(objects.list(EVENTS))) == len(lengths)
    else:
        assert len(entries) == 2


def test_a_range_costs_its_events() -> None:
    """Reading a few bytes of event objects takes the index and the event there, no other."""
    objects = MemoryObjects()
    raw = framed(many_events(4, [100_000] * 400))
    entries = write(Format.EVENT_OBJECTS, objects, raw, 0)
    objects.got.clear()
    at = 33_000_000
    got = read(Format.EVENT_OBJECTS, objects, entries, at, at + 10)
    assert got == raw[at : at + 10]
    assert sum(objects.got) < 200_000


def test_segments_are_plain_zstd() -> None:
    """Any tool for zstd gives the segment's bytes."""
    objects = MemoryObjects()
    raw = framed(many_events(5, [3_000_000] * 7))
    (entry,) = write(Format.SEGMENTS, objects, raw, 100)
    reader = zstandard.ZstdDecompressor().stream_reader(
        io.BytesIO(objects.held[entry.name]), read_across_frames=True
    )
    assert reader.read(len(raw) + 1) == raw


def test_segments_hold_any_bytes() -> None:
    """A segment of plain bytes is archived without a number of events."""
    objects = MemoryObjects()
    raw = b"no events at all" * 100
    (entry,) = write(Format.SEGMENTS, objects, raw, 0)
    assert entry.events is None
    assert read(Format.SEGMENTS, objects, [entry]) == raw


def test_segments_can_begin_in_the_midst() -> None:
    """A task that begins inside an event writes its bytes, and leaves the count to others."""
    objects = MemoryObjects()
    raw = framed(many_events(6, [50] * 10))
    (entry,) = write(Format.SEGMENTS, objects, raw[13:], 13, whole=False)
    assert entry.events is None
    assert read(Format.SEGMENTS, objects, [entry]) == raw[13:]


@pytest.mark.parametrize("form", ALIGNED)
@pytest.mark.parametrize("raw", [b"\0\0\0\0\0\0\0\5abcd", b"\0\0\0\0\0\0\0", b"\xff" * 20])
def test_what_are_no_events_is_refused(form: Format, raw: bytes) -> None:
    """Formats of single events refuse other bytes, and bytes that end inside an event."""
    with pytest.raises(EventsDamaged, match=r"offset (0|7|12)$"):
        write(form, MemoryObjects(), raw, 0)


@pytest.mark.parametrize("form", ALIGNED)
def test_an_event_too_long_is_refused_before_it_is_held(
    form: Format, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Its header is enough to refuse it."""
    monkeypatch.setattr(grouping, "MOST_EVENT", 1000)
    with pytest.raises(SourceUnsupported, match="offset 0 has 1001 bytes") as caught:
        write(form, MemoryObjects(), framed([bytes(1001)]), 0, cuts=[20])
    assert "Segments" in caught.value.remedy


@pytest.mark.parametrize("form", FORMATS)
@pytest.mark.parametrize("length", [-1, 1])
def test_a_source_that_gives_other_bytes_is_refused(form: Format, length: int) -> None:
    """Fewer or more bytes than requested are an error."""
    raw = framed(many_events(7, [20] * 4))
    piece = formats_piece(len(raw) + length)
    with pytest.raises((ProtocolError, EventsDamaged)):
        list(formats.write(form, MemoryObjects(), piece, [memoryview(raw)]))


def formats_piece(end: int) -> Piece:
    """Return a piece of so many bytes."""
    return Piece(epoch=0, segment=0, start=0, end=end, following=EventStart(0))


def test_rows_say_where_events_were(tmp_path: Path) -> None:
    """DuckDB finds each event's bytes, segment, epoch, offset, length and pointer."""
    objects = DirectoryObjects(tmp_path)
    lengths = [0, 1, 2_000_000, *[700_000] * 20]
    found = many_events(8, lengths)
    start = CHUNK - 5
    entries = write(Format.PARQUET, objects, framed(found), start)
    files = [str(tmp_path / entry.name) for entry in entries]
    rows = duckdb.sql(
        f'select event, segment, epoch, "offset", length, pointer from read_parquet({files!r}) '  # noqa: S608
        'order by "offset"'
    ).fetchall()
    begins = list(accumulate((8 + length for length in lengths), initial=start))[:-1]
    assert [row[0] for row in rows] == found
    assert {row[1:3] for row in rows} == {(SEGMENT.id, SEGMENT.epoch)}
    assert [row[3] for row in rows] == begins
    assert [row[4] for row in rows] == lengths
    assert [row[5] for row in rows] == [
        f"a/b/7.#epoch.3:{begin}-{8 + length}"
        for begin, length in zip(begins, lengths, strict=True)
    ]


def test_row_groups_are_bounded() -> None:
    """A row group holds the events that begin in one chunk, and can be found by its offsets."""
    objects = MemoryObjects()
    (entry,) = write(Format.PARQUET, objects, framed(many_events(9, [1_000_000] * 40)), 0)
    file = pq.ParquetFile(io.BytesIO(objects.held[entry.name]))
    groups = [file.metadata.row_group(number) for number in range(file.num_row_groups)]
    assert [group.num_rows for group in groups] == [9, 8, 9, 8, 6]
    mins = [group.column(3).statistics.min for group in groups]
    assert [one // CHUNK for one in mins] == [0, 1, 2, 3, 4]


def test_event_objects_are_named_by_their_place() -> None:
    """A listing of event objects is in the order of the stream, and each is the event's bytes."""
    objects = MemoryObjects()
    found = many_events(10, [5, 0, 77, 2000, 1])
    write(Format.EVENT_OBJECTS, objects, framed(found), 10)
    names = [one.name for one in objects.list(EVENTS)]
    assert [objects.held[name] for name in names] == found
    places = [read_event(name) for name in names]
    assert [place and place.offset for place in places] == [10, 23, 31, 116, 2124]
    assert [place and place.length for place in places] == [5, 0, 77, 2000, 1]


def test_a_part_of_event_objects_is_listed_by_its_offset() -> None:
    """A name made of an offset sorts before the event that begins there, and after the last."""
    objects = MemoryObjects()
    write(Format.EVENT_OBJECTS, objects, framed(many_events(11, [10] * 100)), 0)
    after = f"events/{SEGMENT.epoch:08x}/{SEGMENT.id:016x}/{18 * 60:016x}"
    found = [read_event(one.name) for one in objects.list(EVENTS, after=after)]
    assert [one and one.offset for one in found] == [18 * number for number in range(60, 100)]


def test_more_events_than_allowed_are_refused() -> None:
    """The guard counts before it puts, and names the field."""
    objects = MemoryObjects()
    raw = framed(many_events(12, [1] * 30))
    assert write(Format.EVENT_OBJECTS, objects, raw, 0, most=30)
    objects = MemoryObjects()
    with pytest.raises(TooManyEvents, match="more than 29 events") as caught:
        write(Format.EVENT_OBJECTS, objects, raw, 0, most=29)
    assert caught.value.field == "spec.maxEvents"
    assert not objects.held


def entries_of(form: Format) -> tuple[MemoryObjects, list[StoredObject], bytes]:
    """Archive some events."""
    objects = MemoryObjects()
    raw = framed(many_events(13, [300] * 200))
    return objects, write(form, objects, raw, OBJECT - len(raw) // 2), raw


@pytest.mark.parametrize("form", FORMATS)
def test_an_object_that_was_changed_is_named(form: Format) -> None:
    """A flipped byte, a missing and a longer object are each named, whole reading or not."""
    objects, entries, _ = entries_of(form)
    victim = entries[1]
    good = objects.held[victim.name]
    for number in range(0, len(good), max(1, len(good) // 97)):
        bad = bytearray(good)
        bad[number] ^= 0x10
        objects.held[victim.name] = bytes(bad)
        with pytest.raises(ArchiveDamaged, match=victim.name):
            read(form, objects, entries)
    objects.held[victim.name] = good + b"x"
    with pytest.raises(ArchiveDamaged, match=victim.name):
        read(form, objects, entries)
    del objects.held[victim.name]
    with pytest.raises(ArchiveDamaged, match=f"{victim.name} is missing"):
        read(form, objects, entries)


class Named(Exception):
    """An error that names the damaged object."""


@contextmanager
def named(entry: StoredObject) -> Iterator[None]:
    """Make an error that names the object, or one of its events, a `Named`."""
    try:
        yield
    except ArchiveDamaged as error:
        if entry.name in str(error) or EVENTS in str(error):
            raise Named from error
        raise


def forged(objects: MemoryObjects, entry: StoredObject) -> Checked:
    """Return an object as a manifest lists it whose digest is that of the present bytes."""
    digest = hashlib.sha256(objects.held[entry.name]).hexdigest()
    return Checked(objects, entry.model_copy(update={"sha256": digest}))


@pytest.mark.parametrize("form", FORMATS)
def test_a_forged_object_ends_in_an_error_or_in_other_bytes(form: Format) -> None:
    """If the manifest has the bad bytes' digest, reading gives a named error or as many bytes."""
    objects, entries, _ = entries_of(form)
    victim = entries[1]
    good = objects.held[victim.name]
    for number in range(0, len(good), max(1, len(good) // 199)):
        bad = bytearray(good)
        bad[number] ^= 0x41
        objects.held[victim.name] = bytes(bad)
        with suppress(Named):
            blocks = formats.read(
                form,
                objects,
                SEGMENT,
                forged(objects, victim),
                start=victim.start,
                end=victim.end,
            )
            with named(victim):
                assert sum(map(len, blocks)) == victim.end - victim.start


@pytest.mark.parametrize("by", [-5, -4, -1, 1])
def test_a_frame_that_is_cut_elsewhere_is_damaged(by: int) -> None:
    """An index that moves the border of two frames is found out, even within a checksum."""
    objects = MemoryObjects()
    (entry,) = write(Format.SEGMENTS, objects, framed(many_events(14, [3_000_000] * 5)), 0)
    data = bytearray(objects.held[entry.name])
    sizes = len(data) - 9 - 2 * 8  # each frame compressed and not, before the footer
    first, raw, second, rest = struct.unpack_from("<IIII", data, sizes)
    struct.pack_into("<IIII", data, sizes, first + by, raw, second - by, rest)
    objects.held[entry.name] = bytes(data)
    blocks = formats.read(
        Format.SEGMENTS, objects, SEGMENT, forged(objects, entry), start=0, end=entry.end
    )
    with pytest.raises(ArchiveDamaged, match=f"{entry.name} is damaged at byte 0"):
        list(blocks)


@pytest.mark.parametrize("what", ["missing", "other", "swapped"])
def test_an_event_object_that_was_changed_is_named(what: str) -> None:
    """Of events the index knows length and SHA-256, so each is named by itself."""
    objects, entries, _ = entries_of(Format.EVENT_OBJECTS)
    names = [one.name for one in objects.list(EVENTS)]
    if what == "missing":
        del objects.held[names[20]]
    elif what == "other":
        objects.held[names[20]] = b"x" + objects.held[names[20]][1:]
    else:
        held = objects.held
        held[names[20]], held[names[30]] = held[names[30]], held[names[20]]
    with pytest.raises(ArchiveDamaged, match=names[20]):
        read(Format.EVENT_OBJECTS, objects, entries)


def test_objects_of_segments_end_at_fixed_places() -> None:
    """A frame is a chunk, an object eight of them, wherever a piece begins."""
    objects = MemoryObjects()
    raw = bytes(2 * OBJECT + 5)
    entries = write(Format.SEGMENTS, objects, raw, 7 * CHUNK + 11, whole=False)
    edges = [entries[0].start, *(one.end for one in entries)]
    assert edges == [7 * CHUNK + 11, OBJECT, 2 * OBJECT, 7 * CHUNK + 11 + len(raw)]
    for start, end in pairwise(edges):
        assert end - start <= OBJECT
    footers = [objects.held[one.name][-9:] for one in entries]
    assert [struct.unpack("<IBI", one)[0] for one in footers] == [1, 8, 8]
