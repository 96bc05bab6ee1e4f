"""Read segments over Pravega's wire protocol and describe their content.

An independent witness: it imports nothing of Sluice and shares no code with it.

    python segment_hash.py HOST:PORT SCOPE/STREAM 0 1 2 3 [--from N] [--to N] [--as N] [--ca FILE]
    python segment_hash.py HOST:PORT --exists NAME... [--ca FILE]

A segment's id has its number in the low 32 bits and its epoch of creation above. The output is a
line of JSON for each segment.
"""

import argparse
import hashlib
import json
import socket
import ssl
import struct
from dataclasses import dataclass, field
from types import TracebackType
from typing import Any, Self

_SECONDS = 30.0
_READ_BYTES = 2 << 20  # the server returns no more at once
_CHUNK_BYTES = 8 << 20
_EVENT_HEADER = struct.Struct(">ii")  # type, always 0, and length

_HELLO = -127
_READ_SEGMENT, _SEGMENT_READ = 9, 10
_GET_INFO, _INFO = 11, 12
_NO_SUCH_SEGMENT = 53


class WireError(Exception):
    """An unexpected answer of the server."""


class Connection:
    """A blocking connection to a segment store, for one request at a time.

    Args:
        host: the segment store's address.
        port: the segment store's port.
        token: delegation token, if authentication is on.
        ca: file with the certificates in PEM by which the server is trusted, if it speaks TLS.
    """

    def __init__(self, host: str, port: int, token: str = "", *, ca: str | None = None) -> None:
        self._token = _string(token)
        self._socket = socket.create_connection((host, port), timeout=_SECONDS)
        if ca is not None:
            context = ssl.create_default_context(cafile=ca)
            self._socket = context.wrap_socket(self._socket, server_hostname=host)
        kind, _ = self._exchange(_HELLO, struct.pack(">ii", 16, 5))
        if kind != _HELLO:
            raise WireError(f"no greeting but type {kind}")

    def __enter__(self) -> Self:
        """Return the connection."""
        return self

    def __exit__(
        self,
        _kind: type[BaseException] | None,
        _error: BaseException | None,
        _trace: TracebackType | None,
    ) -> None:
        """Close the connection."""
        self._socket.close()

    def info(self, segment: str) -> dict[str, Any] | None:
        """Return start, end and whether it is sealed, or None for a missing segment."""
        kind, body = self._exchange(
            _GET_INFO, struct.pack(">q", 1) + _string(segment) + self._token
        )
        if kind == _NO_SUCH_SEGMENT:
            return None
        if kind != _INFO:
            raise WireError(f"{segment}: type {kind} instead of its properties")
        name_bytes = int.from_bytes(body[8:10], "big")
        exists, sealed, deleted, _, end, start = struct.unpack_from(
            ">???qqq", body, 10 + name_bytes
        )
        return {"start": start, "end": end, "sealed": sealed} if exists and not deleted else None

    def read(self, segment: str, offset: int, count: int) -> bytes:
        """Read at least one byte and at most `count`. The bytes must exist already."""
        kind, body = self._exchange(
            _READ_SEGMENT,
            _string(segment)
            + struct.pack(">qi", offset, min(count, _READ_BYTES))
            + self._token
            + struct.pack(">q", 2),
        )
        if kind != _SEGMENT_READ:
            raise WireError(f"{segment}: type {kind} instead of the bytes at {offset}")
        name_bytes = int.from_bytes(body[:2], "big")
        at, _, _, length = struct.unpack_from(">q??i", body, 2 + name_bytes)
        begin = 2 + name_bytes + struct.calcsize(">q??i")
        data = body[begin : begin + min(length, count)]
        if at != offset or not data:
            raise WireError(f"{segment}: {len(data)} bytes at {at}, wanted some at {offset}")
        return data

    def _exchange(self, kind: int, payload: bytes) -> tuple[int, bytes]:
        self._socket.sendall(struct.pack(">ii", kind, len(payload)) + payload)
        answer, length = struct.unpack(">ii", self._exactly(8))
        return answer, self._exactly(length)

    def _exactly(self, count: int) -> bytes:
        buffer = bytearray(count)
        view = memoryview(buffer)
        while view:
            got = self._socket.recv_into(view)
            if got == 0:
                raise WireError("the server closed the connection")
            view = view[got:]
        return bytes(buffer)


@dataclass
class Chunks:
    """Digests of chunks. Chunk k covers the source's offsets from k * 8 MiB on.

    Attributes:
        position: offset of the next byte.
    """

    position: int
    _digests: bytes = b""
    _current: Any = field(default_factory=hashlib.sha256)
    _pending: int = 0

    def update(self, data: bytes) -> None:
        """Add the next bytes."""
        view = memoryview(data)
        while view:
            room = _CHUNK_BYTES - self.position % _CHUNK_BYTES
            part, view = view[:room], view[room:]
            self._current.update(part)
            self._pending += len(part)
            self.position += len(part)
            if len(part) == room:
                self._finish_chunk()

    def digest(self) -> str:
        """Return the digest of all chunks' digests."""
        if self._pending:
            self._finish_chunk()
        return hashlib.sha256(self._digests).hexdigest()

    def _finish_chunk(self) -> None:
        self._digests += self._current.digest()
        self._current = hashlib.sha256()
        self._pending = 0


@dataclass
class Events:
    """A count of events, by going from header to header.

    Attributes:
        next_header: offset of the next event.
        count: number of whole events.
        broken_at: offset of the first bytes that are no event; None without such bytes.
    """

    next_header: int
    count: int = 0
    broken_at: int | None = None
    _kept: bytes = b""  # the beginning of a header that the next bytes continue
    _started: int = 0  # offset of the last event, which may not be whole yet

    def update(self, offset: int, data: bytes) -> None:
        """Add the bytes at an offset, which follow those added before."""
        data, offset = self._kept + data, offset - len(self._kept)
        self._kept = b""
        end = offset + len(data)
        while self.broken_at is None and self.next_header < end:
            at = self.next_header - offset
            if len(data) - at < _EVENT_HEADER.size:
                self._kept = data[at:]
                return
            kind, length = _EVENT_HEADER.unpack_from(data, at)
            if kind != 0 or length < 0:
                self.broken_at = self.next_header
                return
            self._started = self.next_header
            self.next_header += _EVENT_HEADER.size + length
            self.count += 1

    def finish(self, end: int) -> None:
        """Check that the end of the bytes is the end of an event."""
        if self.broken_at is not None:
            return
        if self._kept:
            self.broken_at = self.next_header
        elif self.next_header > end:
            self.count -= 1
            self.broken_at = self._started


def segment_name(scope: str, stream: str, segment_id: int) -> str:
    """Return a segment's name in the store."""
    return f"{scope}/{stream}/{segment_id & 0xFFFF_FFFF}.#epoch.{segment_id >> 32}"


def segment_exists(
    host: str, port: int, name: str, *, token: str = "", ca: str | None = None
) -> bool:
    """Tell whether a segment of this full name exists, also one of staging or a transaction."""
    with Connection(host, port, token, ca=ca) as connection:
        return connection.info(name) is not None


def segment_report(
    host: str,
    port: int,
    scope: str,
    stream: str,
    segment_id: int,
    *,
    start: int | None = None,
    end: int | None = None,
    origin: int | None = None,
    token: str = "",
    ca: str | None = None,
) -> dict[str, Any]:
    """Read a segment, or a range of it, and describe the bytes.

    Args:
        host: segment store that owns the segment.
        port: the segment store's port.
        scope: the stream's scope.
        stream: the stream's name.
        segment_id: the segment's id.
        start: first offset; the segment's present start if left out.
        end: offset after the last byte; the segment's present end if left out.
        origin: offset of the first byte in the source of a copy, for the source's chunks; `start`
            if left out.
        token: delegation token, if authentication is on.
        ca: file with the certificates by which the server is trusted, if it speaks TLS.

    Returns:
        `name`, `id`, `sealed`, `segment_start`, `segment_end`; for the range: `start`, `end`,
        `length`, `sha256` of the bytes, `chunks_sha256` of the chunks' digests, number of whole
        `events`, and `broken_at`, the offset from which on the bytes are no events, or None. For a
        missing segment only `name`, `id` and `exists` False.
    """
    name = segment_name(scope, stream, segment_id)
    with Connection(host, port, token, ca=ca) as connection:
        info = connection.info(name)
        if info is None:
            return {"name": name, "id": segment_id, "exists": False}
        start = info["start"] if start is None else start
        end = info["end"] if end is None else end
        whole = hashlib.sha256()
        chunks = Chunks(start if origin is None else origin)
        events = Events(start)
        position = start
        while position < end:
            data = connection.read(name, position, end - position)
            whole.update(data)
            chunks.update(data)
            events.update(position, data)
            position += len(data)
        events.finish(end)
    return {
        "name": name,
        "id": segment_id,
        "exists": True,
        "sealed": info["sealed"],
        "segment_start": info["start"],
        "segment_end": info["end"],
        "start": start,
        "end": end,
        "length": end - start,
        "sha256": whole.hexdigest(),
        "chunks_sha256": chunks.digest(),
        "events": events.count,
        "broken_at": events.broken_at,
    }


def main() -> None:
    """Run the command line."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else None)
    parser.add_argument("server", metavar="HOST:PORT", help="segment store")
    parser.add_argument("stream", metavar="SCOPE/STREAM", nargs="?")
    parser.add_argument("segments", metavar="ID", nargs="*", type=int)
    parser.add_argument("--from", dest="start", type=int, help="first offset")
    parser.add_argument("--to", dest="end", type=int, help="offset after the last byte")
    parser.add_argument("--as", dest="origin", type=int, help="the first one's offset in a source")
    parser.add_argument("--ca", help="certificates to trust the server by, if it speaks TLS")
    parser.add_argument("--exists", nargs="+", metavar="NAME", help="full names to look for")
    options = parser.parse_args()
    host, _, port = options.server.rpartition(":")
    if options.exists:
        for name in options.exists:
            exists = segment_exists(host, int(port), name, ca=options.ca)
            print(json.dumps({"name": name, "exists": exists}))
        return
    if not options.stream or not options.segments:
        parser.error("give SCOPE/STREAM and segment ids, or --exists")
    scope, _, stream = options.stream.partition("/")
    for segment in options.segments:
        report = segment_report(
            host,
            int(port),
            scope,
            stream,
            segment,
            start=options.start,
            end=options.end,
            origin=options.origin,
            ca=options.ca,
        )
        print(json.dumps(report), flush=True)


def _string(text: str) -> bytes:
    encoded = text.encode()
    return struct.pack(">H", len(encoded)) + encoded


if __name__ == "__main__":
    main()
