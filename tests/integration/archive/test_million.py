"""A million events of the Java client, in a stream that is split and merged.

The archives lie behind a real S3 gateway. Witnesses other than Sluice check the archives and the
restored streams: the Java client, the stand-alone hash script, DuckDB, and an S3 client that knows
only HTTP.
"""

from __future__ import annotations

from itertools import pairwise
from typing import TYPE_CHECKING

import duckdb
import pytest

from segment_hash import segment_report
from sluice.core.archive.names import Format
from support.command.restores import (
    MERGED,
    SPLIT,
    Env,
    Restore,
    assert_like_the_source,
    bucket_store,
)
from support.witness.plain_s3 import PlainS3

if TYPE_CHECKING:
    from collections.abc import Iterator

    from localstore import ForeignClient, Standalone
    from s3gateway import Gateway

# The first test that needs the gateway compiles it.
pytestmark = pytest.mark.timeout(3600)

PARTS = (400_000, 400_000, 200_000)
"""Events before the stream is split, before it is merged, and afterwards: a million."""

FRAME = 108
"""Bytes of an event of 100 bytes in its segment."""

BUCKET = "million"


@pytest.fixture(scope="module")
def env(
    tmp_path_factory: pytest.TempPathFactory,
    standalone: Standalone,
    foreign: ForeignClient,
    gateway: Gateway,
) -> Iterator[Env]:
    """Yield a million events, whose archives lie in a bucket."""
    folder = tmp_path_factory.mktemp("sluice-test-million")
    backend = bucket_store(folder, gateway, gateway.make_bucket(BUCKET))
    foreign.create_scope(BUCKET)
    made = Env(
        Restore(folder, standalone.controller_uri, (BUCKET, "restored"), backend),
        foreign,
    )
    fill(made)
    with made.stores:
        yield made


def fill(env: Env, share: int = 1) -> None:
    """Write a fraction of a million events into a stream that is split and merged."""
    env.make()
    for events, move in zip(PARTS, (SPLIT, MERGED, None), strict=True):
        env.write(events // share)
        if move is not None:
            env.scale(*move)


@pytest.mark.exhaustive
@pytest.mark.parametrize("form", [Format.SEGMENTS, Format.PARQUET])
def test_a_million_events_are_archived_and_restored(
    env: Env, standalone: Standalone, gateway: Gateway, form: Format
) -> None:
    """A restore brings back the segments' bytes, the configuration, and every event."""
    env.restore.path = form.lower()
    env.restore.target = (env.source[0], f"restored-{form.lower()}")
    env.take(form)
    assert env.manifest.events == env.events == sum(PARTS)
    if form is Format.PARQUET:
        assert_rows(env, standalone, gateway)
    report = env.restore.run_inline()
    assert_like_the_source(env, standalone, report)
    assert report.events == env.events


@pytest.mark.exhaustive
def test_a_hundred_thousand_events_are_objects_and_are_restored(
    bucket_env: Env, standalone: Standalone, gateway: Gateway, bucket: str
) -> None:
    """A hundred thousand objects exceed a listing's page.

    A million would take half an hour to put.
    """
    fill(bucket_env, share=10)
    bucket_env.take(Format.EVENT_OBJECTS)
    assert bucket_env.manifest.events == bucket_env.events == sum(PARTS) // 10
    assert_listed(bucket_env, standalone, PlainS3(gateway, bucket), 1000)
    report = bucket_env.restore.run_inline()
    assert_like_the_source(bucket_env, standalone, report)
    assert report.events == bucket_env.events


@pytest.mark.exhaustive
def test_a_part_of_event_objects_is_listed_by_any_client(
    bucket_env: Env, standalone: Standalone, gateway: Gateway, bucket: str
) -> None:
    """A listing from an offset on has the stream's order, and each object is the event's bytes."""
    bucket_env.make()
    bucket_env.write(1000)
    bucket_env.take(Format.EVENT_OBJECTS)
    assert_listed(bucket_env, standalone, PlainS3(gateway, bucket), 100)


def assert_rows(env: Env, server: Standalone, gateway: Gateway) -> None:
    """Check that DuckDB counts each segment's events and bytes as the hash script does."""
    folder = gateway.data / BUCKET / "streams" / env.restore.path
    files = [
        str(folder / stored.name)
        for segment in env.manifest.segments
        for stretch in segment.stretches
        for stored in stretch.objects
    ]
    rows = duckdb.sql(
        "select segment, count(*), sum(length + 8), count(distinct pointer), "  # noqa: S608
        f"sum(octet_length(event)) from read_parquet({files!r}) group by segment order by segment"
    ).fetchall()
    assert sum(row[1] for row in rows) == env.events
    for segment, events, size, pointers, own in rows:
        told = segment_report(*server.segment_store, *env.source, segment)
        assert (events, size) == (told["events"], told["length"])
        assert (pointers, own) == (events, size - 8 * events)


def assert_listed(env: Env, server: Standalone, client: PlainS3, most: int) -> None:
    """Check that a request lists events in the middle of a segment, and that they can be read."""
    segment = env.manifest.segments[0]
    told = segment_report(*server.segment_store, *env.source, segment.id)
    number = told["events"] // 2
    folder = f"streams/{env.restore.path}/events/{segment.epoch:08x}/{segment.id:016x}/"
    found = list(client.list(folder, after=f"{folder}{number * FRAME:016x}", most=most))
    assert found == [
        (f"{folder}{begin:016x}-{end - begin - 8:08x}", FRAME - 8)
        for begin, end in pairwise(range(number * FRAME, (number + most + 1) * FRAME, FRAME))
    ]
    source = env.store.segment_name(env.name, segment.id)
    begin, end = number * FRAME, (number + 10) * FRAME
    data = b"".join(bytes(block.data) for block in env.store.read(source, begin, end))
    read = [client.read(name) for name, _ in found[:10]]
    assert read == [data[at + 8 : at + FRAME] for at in range(0, len(data), FRAME)]
