"""Names and ids of segments.

A stream's segment is `scope/stream/<number>.#epoch.<epoch>`. Its id has the epoch in the high 32
bits and the number in the low ones. A segment whose name goes on with `#transaction.` and 32
hexadecimal digits lies beside it: on the same server, unseen by readers and listings.
"""

from __future__ import annotations

import re
from enum import StrEnum
from typing import TYPE_CHECKING, Final, NamedTuple
from uuid import UUID

from sluice.core.values.model import StreamName
from sluice.errors import InvalidSpec

if TYPE_CHECKING:
    from collections.abc import Collection

EVENT_COUNT: Final = UUID("80000000-0000-0000-0000-000000000001")
"""The attribute that counts a segment's events. As two longs: the least one, and 1."""

CREATION_TIME: Final = UUID("80000000-0000-0000-0000-000000000000")
"""The attribute with a segment's creation time. As two longs: the least one, and 0."""

_CORE: Final = 1 << 63
"""The upper half of the id of each core attribute, which the store always has in memory."""

INTERNAL: Final = "_"
"""The prefix of the names of internal streams and scopes."""

_MARKS: Final = "_MARK"
"""The prefix, before a stream's name, of the internal stream that holds its watermarks. The store
makes and deletes the two streams together."""

_NAME: Final = re.compile(
    r"(?P<scope>[^/]+)/(?P<stream>[^/]+)/(?P<number>\d+)\.#epoch\.(?P<epoch>\d+)"
    r"(?:#transaction\.[0-9a-f]{32})?"
)
_KEY: Final = re.compile(r"[0-9a-f]{32}")
_URI: Final = re.compile(
    r"(?:tcp|tls)://(?P<host>\[[0-9a-fA-F:.]+\]|[^\s/:\[\]]+):(?P<port>\d{1,5})/?"
)
_HIGH: Final = 32
_LOW: Final = (1 << _HIGH) - 1
_PORTS: Final = range(1, 1 << 16)


class TokenAccess(StrEnum):
    """The access to a stream's segments that a delegation token grants."""

    READ = "READ"
    READ_WRITE = "READ_WRITE"


class Endpoint(NamedTuple):
    """A server's host, which may be an IPv6 address without brackets, and port."""

    host: str
    port: int

    def __str__(self) -> str:
        """Return `host:port`, with brackets around an IPv6 address."""
        return f"[{self.host}]:{self.port}" if ":" in self.host else f"{self.host}:{self.port}"

    @classmethod
    def parse(cls, uri: str) -> Endpoint:
        """Read `tcp://host:port` or `tls://host:port`.

        Raises:
            InvalidSpec: the text has another form.
        """
        match = _URI.fullmatch(uri)
        if match is None or int(match["port"]) not in _PORTS:
            raise InvalidSpec(
                f"{uri!r} is not the address of a Pravega controller",
                field="uri",
                remedy="Write it as tcp://host:port, or with TLS as tls://host:port, with the "
                "controller's port.",
            )
        return cls(match["host"].strip("[]"), int(match["port"]))


def has_tls(uri: str) -> bool:
    """Tell whether an address asks for TLS, to the controller and to the segment stores."""
    return uri.startswith("tls://")


class SegmentOwner(NamedTuple):
    """The stream and the id of the segment that decide which server has a segment."""

    stream: StreamName
    segment: int


def is_core(attribute: UUID) -> bool:
    """Tell whether the store always has an attribute in memory (`Attributes.isCoreAttribute`)."""
    return attribute.int >> 64 == _CORE


def segment_id(epoch: int, number: int) -> int:
    """Return the id of the segment with this number that an epoch made."""
    return epoch << _HIGH | number


def number_of(segment: int) -> int:
    """Return the number in a segment's id, which counts on through a stream's epochs."""
    return segment & _LOW


def epoch_of(segment: int) -> int:
    """Return the epoch that made the segment with this id."""
    return segment >> _HIGH


def visible(streams: Collection[str], *, internal: bool) -> list[str]:
    """Return a scope's streams that a listing shows; with `internal` the internal ones too.

    A stream with the watermarks of another stream in the scope is never shown.
    """
    return [
        name
        for name in streams
        if not name.startswith(INTERNAL)
        or (internal and not (name.startswith(_MARKS) and name.removeprefix(_MARKS) in streams))
    ]


def segment_name(stream: StreamName, segment: int) -> str:
    """Return the full name of a stream's segment."""
    return f"{stream}/{number_of(segment)}.#epoch.{epoch_of(segment)}"


def staging_name(stream: StreamName, segment: int, key: str) -> str:
    """Return the name of a staging segment beside a stream's segment.

    Raises:
        ValueError: `key` is not 32 lower-case hexadecimal digits.
    """
    if not _KEY.fullmatch(key):
        raise ValueError(f"{key!r} is not 32 lower-case hexadecimal digits")
    return f"{segment_name(stream, segment)}#transaction.{key}"


def owner_of(name: str) -> SegmentOwner:
    """Return the stream and segment id that decide which server has the segment of this name.

    Raises:
        ValueError: the text is not a segment's full name.
    """
    match = _NAME.fullmatch(name)
    if match is None:
        raise ValueError(f"{name!r} is not the name of a segment")
    return SegmentOwner(
        StreamName(scope=match["scope"], stream=match["stream"]),
        segment_id(int(match["epoch"]), int(match["number"])),
    )
