"""Segments that are followed on a scripted segment store."""

from __future__ import annotations

from contextlib import contextmanager, suppress
from math import inf
from typing import TYPE_CHECKING

from sluice.config import StoreTimeouts
from sluice.stores.credentials import Credentials
from sluice.stores.pravega.controller.directory import Token
from sluice.stores.pravega.segments import tails as tails_module
from sluice.stores.pravega.store import PravegaStore
from sluice.stores.pravega.wire import messages as m
from sluice.stores.tails import Arrived, Broken, Ended

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from sluice.errors import BackendError
    from sluice.stores.pravega.names import Endpoint
    from sluice.stores.pravega.segments.tail_links import TailLink
    from sluice.stores.pravega.segments.tails import SegmentTails
    from sluice.stores.trust import Trust
    from support.wire.segment_store import Peer

NAME, OTHER = (f"scope/stream/{number}.#epoch.0" for number in range(2))
MOST = 1 << 20
PATIENT = StoreTimeouts(connect=5, call=5, stall=5)
HASTY = StoreTimeouts(connect=5, call=5, stall=0.4)
LOGIN = Credentials("user", "password")


@contextmanager
def following(
    endpoint: Endpoint,
    timeouts: StoreTimeouts = PATIENT,
    *,
    login: Credentials | None = None,
    trust: Trust | None = None,
) -> Iterator[SegmentTails]:
    """Follow segments that all live on one server, without a controller; over TLS with `trust`."""
    uri = f"{'tls' if trust else 'tcp'}://127.0.0.1:1"
    store = PravegaStore(uri, credentials=login, timeouts=timeouts, trust=trust)

    def owners(names: Iterable[str]) -> list[Endpoint]:
        return [endpoint for _ in names]

    store._directory.owners = owners  # type: ignore[method-assign]
    store._directory.token = lambda *_: Token("t", inf)  # type: ignore[method-assign]
    try:
        with store.tails(most=MOST) as tails:
            yield tails
    finally:
        store.close()


def tell(peer: Peer, length: int = 8, *, start: int = 0, sealed: bool = False) -> None:
    """Answer one question for a segment's state."""
    asked = peer.expect(m.GetSegmentInfo)
    peer.say(
        m.StreamSegmentInfo(
            asked.request,
            asked.segment,
            exists=True,
            sealed=sealed,
            deleted=False,
            modified=0,
            length=length,
            start=start,
        )
    )


def part(
    asked: m.ReadSegment, data: bytes, *, at_end: bool = False, behind: bool = False
) -> m.SegmentRead:
    """Return the answer to a read."""
    view, at_tail = memoryview(data), not at_end and not behind
    return m.SegmentRead(asked.segment, asked.offset, at_tail, at_end, view, asked.request)


def give(peer: Peer, data: bytes, *, at: int, at_end: bool = False, behind: bool = False) -> None:
    """Answer one read, which must be at this offset."""
    asked = peer.expect(m.ReadSegment)
    assert asked.offset == at
    peer.say(part(asked, data, at_end=at_end, behind=behind))


def listen(peer: Peer) -> None:
    """Take in requests without an answer, until the client hangs up."""
    with suppress(EOFError, ConnectionError):
        while True:
            peer.frame()


def all_of(tails: SegmentTails, count: int) -> list[Arrived | Ended | Broken]:
    """Take until so many events came."""
    came: list[Arrived | Ended | Broken] = []
    while len(came) < count:
        came += tails.take(5)
    return came


def receive(tails: SegmentTails, count: int) -> None:
    """Wait until so many events are there to be taken."""
    while len(tails._came) < count:
        tails._settle()
        tails._send()
        tails._receive(5)


def begun(tails: SegmentTails) -> TailLink:
    """Ask for all segments, and return the only connection once all reads are sent."""
    tails._settle()
    (link,) = tails._links
    while link.asked or link.unasked:
        assert len(link.asked) <= tails_module._STATES
        tails._send()
        tails._receive(5)
    tails._send()
    return link


def broken(tails: SegmentTails, name: str = NAME) -> BackendError:
    """Take one event, which must be the end of a segment by an error. Return the error."""
    (event,) = tails.take(5)
    assert isinstance(event, Broken)
    assert event.segment == name
    return event.error
