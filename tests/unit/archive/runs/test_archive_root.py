import pytest

from sluice.archive.runs.archive_root import ArchiveRoot
from sluice.archive.runs.source import CREATION_TIME, EVENT_COUNT
from sluice.core.archive.names import Format
from sluice.core.values.model import ArchivedRun, StreamConfig, StreamName
from sluice.engine.access.source_runs import writable
from sluice.errors import (
    ArchiveNotFound,
    InvalidSpec,
    NoSuchSegment,
    ScopeNotFound,
    StreamNotFound,
)
from sluice.stores.groups import ReaderGroups
from sluice.stores.transactions import Transactions
from sluice.stores.writing import Admin, SegmentSink
from support.archiving.archives import START, STREAM, Source, take
from support.model.memory_objects import MemoryObjects


def place(names: list[str]) -> ArchiveRoot:
    """Return a place with objects of these names."""
    objects = MemoryObjects()
    objects.put_many((name, b"") for name in names)
    return ArchiveRoot("s3://bucket", lambda _: objects)


def test_archives_are_found_by_their_heads() -> None:
    """Archives lie in any folder but an archive's own. A folder without a head is none."""
    root = place(
        [
            "b/heads/1",
            "b/data/0/heads/1",
            "a/x/heads/1",
            "a/y/data/1",
            "a.b/heads/1",
            "heads-not/1",
            "loose",
        ]
    )
    assert list(root.paths()) == ["a.b", "a/x", "b"]
    assert list(root.paths("a")) == ["a/x"]
    assert list(root.paths("a/x")) == ["a/x"]
    assert list(root.paths("none")) == []
    assert list(place(["heads/1", "data/2", "x/heads/1"]).paths()) == ["", "x"]


def test_a_path_that_no_archive_can_have_is_refused() -> None:
    """The error names the field of the path."""
    with pytest.raises(InvalidSpec) as caught:
        place([]).archive("a/../b", field="spec.source.archive.path")
    assert caught.value.field == "spec.source.archive.path"


def run_of(source: Source) -> tuple[ArchiveRoot, ArchivedRun]:
    """Return a place with an archive of a stream, and its run."""
    objects = MemoryObjects()
    root = ArchiveRoot("s3://bucket", lambda _: objects)
    head = take(root.archive("a"), Format.SEGMENTS, source, config=StreamConfig(tags=("it=1",)))
    return root, ArchivedRun(path="a", run=1, sha256=head.runs[0].sha256)


def test_a_run_is_read_as_a_store_with_one_stream() -> None:
    """It has the stream's configuration, segments, scale events, offsets and bytes."""
    source = Source()
    source.write([10, 20])
    source.split()
    source.write([30])
    root, pinned = run_of(source)
    store = root.run(pinned)
    stream = store.describe(STREAM)
    assert stream is not None
    first, *made = source.segments
    assert [one.id for one in stream.head] == [first.id]
    assert [one.id for one in stream.tail] == [one.id for one in made]
    assert stream.config == store.configuration(STREAM) == StreamConfig(tags=("it=1",))
    assert [[one.id for one in group] for group in store.generations(STREAM)] == [
        [first.id],
        [one.id for one in made],
    ]
    assert store.had(STREAM, first.id)
    assert not store.had(STREAM, 77)
    assert store.is_original(first.id)
    assert not store.is_original(made[0].id)
    names = [store.segment_name(STREAM, one.id) for one in source.segments]
    infos = store.infos([*names, "other"])
    assert [one and (one.start, one.length, one.sealed) for one in infos] == [
        (0, len(first.data), True),
        *((0, len(one.data), False) for one in made),
        None,
    ]
    assert store.attributes([(names[0], EVENT_COUNT), (names[0], CREATION_TIME)]) == [2, START]
    assert store.attributes([("other", EVENT_COUNT)]) == [None]
    for name, one in zip(names, source.segments, strict=True):
        for start in (0, 5, len(one.data)):
            blocks = list(store.read(name, start, len(one.data)))
            assert b"".join(bytes(block.data) for block in blocks) == one.data[start:]
            assert [block.offset for block in blocks][:1] in ([], [start])
    assert store.list_scopes() == [STREAM.scope]
    assert store.list_streams(STREAM.scope) == [STREAM.stream]
    assert store.list_streams(STREAM.scope, "it=2") == []
    assert store.list_key_value_tables(STREAM.scope) == []


def test_what_a_run_has_not_is_told_apart() -> None:
    """Other streams, scopes and segments do not exist in it."""
    root, pinned = run_of(Source())
    store = root.run(pinned)
    other = StreamName(scope="x", stream="y")
    assert store.describe(other) is None
    assert store.configuration(other) is None
    assert not store.had(other, 0)
    for error, call in (
        (StreamNotFound, lambda: store.generations(other)),
        (ScopeNotFound, lambda: store.list_streams("x")),
        (ScopeNotFound, lambda: store.list_key_value_tables("x")),
        (NoSuchSegment, lambda: list(store.read("other", 0, 1))),
    ):
        with pytest.raises(error):
            call()


def test_a_run_is_only_read() -> None:
    """It has no calls that change a stream, and neither cuts nor another beginning."""
    root, pinned = run_of(Source())
    store = root.run(pinned)
    for protocol in (SegmentSink, Admin, Transactions, ReaderGroups):
        assert not [name for name in vars(protocol) if name[0] != "_" and hasattr(store, name)]
    with pytest.raises(InvalidSpec, match="only read"):
        writable(store)
    for call in (
        lambda: store.read_cut("x"),
        lambda: store.write_cut(STREAM, {}),
        lambda: store.generations(STREAM, store.describe(STREAM).head),
    ):
        with pytest.raises(InvalidSpec):
            call()


def test_a_run_is_that_of_its_sha256_and_no_other() -> None:
    """A plan whose manifest is missing or replaced reads nothing."""
    root, pinned = run_of(Source())
    for wrong in (
        pinned.model_copy(update={"sha256": "0" * 64}),
        pinned.model_copy(update={"run": 2}),
    ):
        with pytest.raises(ArchiveNotFound, match="was let go"):
            root.run(wrong).describe(STREAM)


def test_streams_are_told_by_what_lies_in_a_folder() -> None:
    """A listed folder may be an archive or not, but folders inside an archive do not count."""
    root = place(["in/b/heads/1", "in/a/x", "in/events=/heads/1", "in/work/scope-1/0", "c/heads/1"])
    assert root.names("in") == ["a", "b", "events"]
    assert root.names("") == ["c", "in"]
