"""The conditions of every finished copy, checked by programs that are not Sluice's.

The stand-alone hash script reads the segments itself. The official Java client reads the events.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import segment_hash
from support.crash.proxy import STAGING

if TYPE_CHECKING:
    from collections.abc import Iterable

    from localstore import ForeignClient
    from support.crash.proxy import FrameProxy

Stream = tuple[str, str]
Address = tuple[str, int]


def hashes(server: Address, foreign: ForeignClient, stream: Stream) -> list[dict[str, Any]]:
    """Return the stand-alone script's report on each segment, in the order of ids."""
    info = foreign.info(*stream)
    return [
        segment_hash.segment_report(*server, *stream, segment.id)
        for segment in sorted(info.segments, key=lambda segment: segment.id)
    ]


def assert_equal(
    server: Address,
    foreign: ForeignClient,
    source: Stream,
    target: Stream,
) -> list[dict[str, Any]]:
    """Check two streams with assert_alike, as they are. Return the reports on the target."""
    actual = hashes(server, foreign, target)
    assert_alike(hashes(server, foreign, source), actual)
    return actual


def assert_alike(
    expected: list[dict[str, Any]], actual: list[dict[str, Any]], *, same_ids: bool = True
) -> None:
    """Check that two streams have the same bytes in each segment, and that these are whole events.

    The segments' ids are the same too. The exceptions are a target whose name was used before, and
    a target whose source was truncated.

    Args:
        expected: reports on the segments of the first stream.
        actual: reports on the segments of the second one.
        same_ids: whether ids are compared.
    """
    kept = ("length", "sha256", "chunks_sha256", "events", "broken_at", *["id"] * same_ids)
    assert [{k: r[k] for k in kept} for r in expected] == [{k: r[k] for k in kept} for r in actual]
    assert all(report["broken_at"] is None for report in actual)


def assert_readable(foreign: ForeignClient, stream: Stream, *, events: int, digest: str) -> None:
    """Check that the official reader gets each event once, in order per key."""
    read = foreign.read(*stream)
    assert read.clean, read
    assert (read.events, read.digest) == (events, digest)


def left_of(server: Address, names: Iterable[str]) -> list[str]:
    """Return the segments among these that exist."""
    with segment_hash.Connection(*server) as connection:
        return [name for name in names if connection.info(name) is not None]


def staging_of(proxy: FrameProxy, stream: Stream) -> set[str]:
    """Return the names of a target's staging segments that clients requested through the proxy."""
    beginning = "/".join(stream) + "/"
    return {name for name in proxy.created if name.startswith(beginning) and STAGING in name}


def events_in(foreign: ForeignClient, stream: tuple[str, str]) -> tuple[int, str]:
    """Return the number of events in a stream and their digest, as the Java client reads them."""
    read = foreign.read(*stream)
    assert read.clean, read
    return read.events, read.digest
