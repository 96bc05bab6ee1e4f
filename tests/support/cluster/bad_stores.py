"""Stores that would occupy a client for ever, or fill its memory."""

from __future__ import annotations

import itertools
import socket
import struct
import threading
from contextlib import ExitStack, contextmanager, suppress
from typing import TYPE_CHECKING, Any

from sluice.core.values.model import StreamName
from sluice.engine.journal.record_log import MOST_LOG
from sluice.stores.pravega.proto import controller_pb2 as pb
from sluice.stores.pravega.wire import messages as m
from sluice.stores.pravega.wire.wire import NOT_SET, Frame, FrameType, Message, decode_as, encode
from support.wire.hostile import HostileController, stream_of

if TYPE_CHECKING:
    from collections.abc import Iterator

TEN_GIGABYTES = 10_000_000_000
_HOST = "127.0.0.1"
_SLOW = 14.0
"""Seconds from one byte to the next: less than the limit of any call."""


@contextmanager
def black_holes(count: int) -> Iterator[list[str]]:
    """Yield distinct addresses at which a listener never sends a byte.

    Every other listener does not even accept the connection, since its queue is full.
    """
    with ExitStack() as stack:
        silent = stack.enter_context(socket.create_server(("0.0.0.0", 0), backlog=4096))  # noqa: S104
        full = stack.enter_context(socket.create_server(("0.0.0.0", 0), backlog=0))  # noqa: S104
        ports = [one.getsockname()[1] for one in (silent, full)]
        for _ in range(2):  # these are never accepted, so no other connection finds room
            waiting = stack.enter_context(socket.socket())
            waiting.settimeout(0)
            waiting.connect_ex((_HOST, ports[1]))
        hosts = (f"127.{1 + number // 250}.0.{1 + number % 250}" for number in itertools.count())
        yield [
            f"tcp://{host}:{port}"
            for host, port in itertools.islice(zip(hosts, itertools.cycle(ports)), count)
        ]


def bombs() -> bytes:
    """Return a journal of the greatest length, of records that take eighty times as much memory.

    Each record is short enough to be read, and of a kind that no copy writes.
    """
    record = b'{"record":"made up","a":[' + b"{}," * 300_000 + b"{}]}"
    framed = struct.pack(">ii", 0, len(record)) + record
    return framed * (MOST_LOG // len(framed))


class LyingStore:
    """A store that seems well, whose listings have no end and whose segments are as declared.

    Args:
        length: length of each segment, in bytes.
        trickles: whether reads are answered late, by a byte each.
        holds: contents of each segment, in place of `length` bytes that no client gets.
    """

    def __init__(self, *, length: int = 0, trickles: bool = False, holds: bytes = b"") -> None:
        self._length = length or len(holds)
        self._trickles = trickles
        self._holds = memoryview(holds)
        self._stopped = threading.Event()
        self._listener = socket.create_server((_HOST, 0), backlog=256)
        pages = itertools.count()
        node = pb.NodeUri(endpoint=_HOST, port=self._listener.getsockname()[1])
        self._controller = HostileController(
            checkScopeExists=lambda _: pb.ExistsResponse(exists=True),
            getURI=lambda _: node,
            listStreamsInScope=lambda asked: _page(asked.scope.scope, next(pages)),
        )
        self.uri = self._controller.uri

    @contextmanager
    def running(self) -> Iterator[str]:
        """Run the store during the block, and yield its address."""
        threading.Thread(target=self._accept, daemon=True).start()
        with self._controller.running():
            try:
                yield self.uri
            finally:
                self._stopped.set()
                self._listener.shutdown(socket.SHUT_RDWR)
                self._listener.close()

    def _accept(self) -> None:
        with suppress(OSError):
            while True:
                client, _ = self._listener.accept()
                threading.Thread(target=self._serve, args=(client,), daemon=True).start()

    def _serve(self, client: socket.socket) -> None:
        with client, suppress(OSError, EOFError), client.makefile("rb") as coming:
            while not self._stopped.is_set():
                header = coming.read(8)
                if len(header) < len(b"typesize"):
                    return
                kind, size = struct.unpack(">ii", header)
                frame = Frame(FrameType(kind), memoryview(coming.read(size)))
                client.sendall(b"".join(encode(self._answer(frame))))

    def _answer(self, frame: Frame) -> Message:
        match frame.type:
            case FrameType.HELLO:
                return m.Hello()
            case FrameType.GET_SEGMENT_INFO:
                info = decode_as(m.GetSegmentInfo, frame)
                return m.StreamSegmentInfo(
                    info.request,
                    info.segment,
                    exists=True,
                    sealed=False,
                    deleted=False,
                    modified=0,
                    length=self._length,
                    start=0,
                )
            case FrameType.SETUP_APPEND:
                setup = decode_as(m.SetupAppend, frame)
                return m.AppendSetup(setup.request, setup.segment, setup.writer, NOT_SET)
            case FrameType.GET_ATTRIBUTE:
                return m.Attribute(decode_as(m.GetAttribute, frame).request, NOT_SET)
            case FrameType.READ_SEGMENT if self._trickles or self._holds:
                read = decode_as(m.ReadSegment, frame)
                if self._trickles:
                    self._stopped.wait(_SLOW)
                return m.SegmentRead(
                    read.segment,
                    read.offset,
                    at_tail=False,
                    at_end=False,
                    data=self._holds[read.offset :][: read.length] or memoryview(b"\0"),
                    request=read.request,
                )
            case other:
                raise EOFError(other)


def _page(scope: str, number: int) -> Any:
    names = [StreamName(scope=scope, stream=f"s{number}-{one}") for one in range(100)]
    return pb.StreamsInScopeResponse(
        streams=[stream_of(name) for name in names],
        continuationToken=pb.ContinuationToken(token=str(number)),
        status=pb.StreamsInScopeResponse.SUCCESS,
    )
