import json
from typing import Any

import pytest
from pydantic import ValidationError

from sluice.core.archive.documents import decode, encode
from sluice.core.archive.growing import grown, without
from sluice.core.archive.head import Head
from sluice.core.archive.manifest import (
    ArchivedSegment,
    ArchivedSource,
    CutOffset,
    Maker,
    Manifest,
    Parent,
    RecordedCut,
    StoredObject,
)
from sluice.core.archive.names import DataName, Format
from sluice.core.events.digest import CHUNK
from sluice.core.values.model import KeyRange, StreamConfig, StreamName
from sluice.errors import ArchiveDamaged, ArchiveUnsupported

HASH = "ab" * 32


def stored(segment: ArchivedSegment, start: int, end: int) -> StoredObject:
    """Return an object of ten events."""
    name = DataName(segment.epoch, segment.id, start, end, HASH, Format.SEGMENTS)
    return StoredObject(
        name=str(name),
        size=5,
        sha256=HASH,
        start=start,
        end=end,
        events=10,
        first=start,
        last=start,
    )


def empty(epoch: int, number: int, low: float, high: float) -> ArchivedSegment:
    """Return a segment without bytes."""
    return ArchivedSegment(
        epoch=epoch,
        id=number,
        keys=KeyRange(low=low, high=high),
        created=1,
        start=0,
        end=0,
        sealed=False,
    )


def with_bytes(segment: ArchivedSegment, end: int) -> ArchivedSegment:
    """Return the segment with one more object, which ends at this offset."""
    digests = {chunk: bytes(32) for chunk in range(segment.end // CHUNK, -(-end // CHUNK))}
    return grown(
        segment,
        end=end,
        objects=[stored(segment, segment.end, end)],
        digests=digests,
        events=10,
        sealed=False,
    )


def a_manifest(*segments: ArchivedSegment, **changes: Any) -> Manifest:
    """Return a run of these segments. Those of the last epoch take events."""
    tail = [one for one in segments if one.epoch == segments[-1].epoch]
    values: dict[str, Any] = {
        "run": 2,
        "format": Format.SEGMENTS,
        "source": ArchivedSource(stream=StreamName(scope="a", stream="b"), store="tcp://x:1"),
        "parent": Parent(run=1, sha256=HASH),
        "begin": RecordedCut(
            time=1,
            offsets=tuple(
                CutOffset(segment=one.id, offset=one.start) for one in segments if not one.epoch
            ),
        ),
        "end": RecordedCut(
            time=2, offsets=tuple(CutOffset(segment=one.id, offset=one.end) for one in tail)
        ),
        "config": StreamConfig(),
        "segments": segments,
    }
    return Manifest(**{**values, **changes})


WHOLE = with_bytes(empty(0, 0, 0, 1), 100)
SPLIT = (WHOLE, empty(1, 1, 0, 0.5), with_bytes(empty(1, 2, 0.5, 1), 3 * CHUNK))


def test_a_manifest_is_read_as_it_was_written() -> None:
    """A manifest's JSON decodes to an equal manifest, which has the same JSON again."""
    manifest = a_manifest(*SPLIT)
    data = encode(manifest)
    assert decode(Manifest, data, name="it") == manifest
    assert encode(decode(Manifest, data, name="it")) == data
    assert json.loads(data)["version"] == "1.1"


def test_it_counts_what_it_has() -> None:
    """The sums of bytes, events and objects are over all segments.

    Empty segments are in the manifest.
    """
    manifest = a_manifest(*SPLIT)
    assert manifest.bytes == 100 + 3 * CHUNK
    assert manifest.events == 20
    assert len(list(manifest.objects)) == 2
    assert [one.bytes for one in manifest.segments] == [100, 0, 3 * CHUNK]


def test_bytes_that_are_no_events_have_no_number() -> None:
    """If one object has no number of events, the manifest has none either."""
    plain = grown(
        empty(0, 0, 0, 1),
        end=9,
        objects=[stored(WHOLE, 0, 9).model_copy(update={"events": None})],
        digests={0: bytes(32)},
        events=None,
        sealed=True,
    )
    assert a_manifest(plain).events is None


def test_a_manifest_of_an_earlier_minor_version_is_read() -> None:
    """A manifest of version 1.0 has no maker, and reads as one without a maker."""
    made = a_manifest(WHOLE, maker=Maker(id="ab" * 16, name="shop/orders"))
    body = json.loads(encode(made))
    assert body.pop("maker") == {"id": "ab" * 16, "name": "shop/orders"}
    found = decode(Manifest, json.dumps({**body, "version": "1.0"}).encode(), name="it")
    assert found == made.model_copy(update={"maker": None, "version": "1.0"})


@pytest.mark.parametrize("version", ["2.0", "0.9", "10.0"])
def test_another_major_version_is_refused(version: str) -> None:
    """A document of another major version is not interpreted, whatever else it contains."""
    body = {**json.loads(encode(a_manifest(WHOLE))), "version": version, "segments": "other"}
    with pytest.raises(ArchiveUnsupported, match=f"it is of version {version}"):
        decode(Manifest, json.dumps(body).encode(), name="it")


def test_a_later_minor_version_may_say_more() -> None:
    """A later minor version may have unknown fields at any depth.

    In this version they are damage.
    """
    body = json.loads(encode(a_manifest(WHOLE)))
    body["more"] = body["segments"][0]["more"] = 1
    with pytest.raises(ArchiveDamaged, match="more"):
        decode(Manifest, json.dumps(body).encode(), name="it")
    body["version"] = "1.7"
    read = decode(Manifest, json.dumps(body).encode(), name="it")
    assert read.segments == a_manifest(WHOLE).segments


@pytest.mark.parametrize(
    "data", [b"", b"{", b"[]", b"null", b'"x"', b"{}", b"[" * 100_000, b'{"kind":1}', b"\xff"]
)
def test_anything_else_is_damage(data: bytes) -> None:
    """Bytes that are no document raise ArchiveDamaged with the name of their object."""
    for model in (Manifest, Head):
        with pytest.raises(ArchiveDamaged, match=r"^runs/it ") as caught:
            decode(model, data, name="runs/it")
        assert caught.value.name == "runs/it"


def changed(path: str, value: object) -> dict[str, Any]:
    """Return the JSON of a manifest with one value changed."""
    body = json.loads(encode(a_manifest(*SPLIT)))
    *folders, last = path.split(".")
    place = body
    for part in folders:
        place = place[int(part) if part.isdigit() else part]
    place[int(last) if last.isdigit() else last] = value
    return dict(body)


@pytest.mark.parametrize(
    ("path", "value"),
    [
        ("run", 0),
        ("run", 1),
        ("parent.run", 2),
        ("parent.sha256", "x"),
        ("segments", []),
        ("segments.0.epoch", 1),
        ("segments.1.epoch", 2),
        ("segments.1.id", 0),
        ("segments.1.id", 3),
        ("segments.1.keys.high", 0.4),
        ("segments.0.end", 101),
        ("segments.0.stretches", []),
        ("segments.0.stretches.0.start", 1),
        ("segments.0.stretches.0.end", 99),
        ("segments.0.stretches.0.digests", "ab" * 31),
        ("segments.0.stretches.0.digests", "ab" * 64),
        ("segments.0.stretches.0.events", 11),
        ("segments.0.stretches.0.objects", []),
        ("segments.0.stretches.0.objects.0.start", 1),
        ("segments.0.stretches.0.objects.0.sha256", "cd" * 32),
        ("segments.0.stretches.0.objects.0.size", -1),
        ("segments.0.stretches.0.objects.0.name", "data/../secret"),
        ("segments.0.gaps", [{"start": 100, "end": 100, "reason": "X", "run": 1}]),
        ("segments.0.gaps", [{"start": 50, "end": 60, "reason": "SourceTruncated", "run": 1}]),
        ("begin.time", 3),
        ("begin.offsets.0.offset", 1),
        ("begin.offsets.0.segment", 9),
        ("end.offsets", [{"segment": 1, "offset": 0}]),
        ("end.offsets.0.offset", 7),
        ("format", "Csv"),
        ("format", "Parquet"),
    ],
)
def test_a_manifest_that_cannot_be_is_refused(path: str, value: object) -> None:
    """Decoding finds values that contradict the rest of the manifest, or its format."""
    with pytest.raises(ArchiveDamaged, match=r"^it contradicts itself: "):
        decode(Manifest, json.dumps(changed(path, value)).encode(), name="it")


def test_a_head_lists_runs_in_order() -> None:
    """A head's runs are in order, with names that fit their SHA-256, and no later than the head."""
    entry = {
        "run": 1,
        "name": f"runs/{1:016x}-{HASH}.json.zst",
        "size": 1,
        "sha256": HASH,
        "time": 1,
        "bytes": 1,
    }
    assert Head.model_validate({"number": 1, "runs": [entry]}).runs[0].events is None
    for body in (
        {"number": 1, "runs": []},
        {"number": 1, "runs": [entry, entry]},
        {"number": 1, "runs": [{**entry, "sha256": "cd" * 32}]},
        {"number": 1, "runs": [{**entry, "run": 2}]},
        {"number": 0, "runs": [entry]},
    ):
        with pytest.raises(ValidationError):
            Head.model_validate(body)


def test_what_follows_makes_one_stretch() -> None:
    """New bytes that follow directly extend the last stretch.

    The digest of its last chunk is replaced.
    """
    one = with_bytes(empty(0, 0, 0, 1), CHUNK + 5)
    two = grown(
        one,
        end=2 * CHUNK + 1,
        objects=[stored(one, CHUNK + 5, 2 * CHUNK + 1)],
        digests={1: b"1" * 32, 2: b"2" * 32},
        events=4,
        sealed=True,
    )
    (stretch,) = two.stretches
    assert stretch.chunk_digests == {0: bytes(32), 1: b"1" * 32, 2: b"2" * 32}
    assert (two.end, two.events, two.sealed) == (2 * CHUNK + 1, 14, True)
    assert grown(two, end=two.end, objects=[], digests={}, events=0, sealed=True) == two


def test_what_is_lost_is_a_gap() -> None:
    """After a gap a new stretch begins, with digests of its own chunks."""
    one = without(WHOLE, to=150, reason="SourceTruncated", run=2)
    two = grown(
        one,
        end=200,
        objects=[stored(one, 150, 200)],
        digests={0: b"1" * 32},
        events=10,
        sealed=False,
    )
    assert [(stretch.start, stretch.end) for stretch in two.stretches] == [(0, 100), (150, 200)]
    assert two.bytes == 150
    assert a_manifest(two).events == 20
