"""Segments that are followed, against stores that lie, hang up and fall silent."""

from __future__ import annotations

import select
from contextlib import contextmanager, suppress
from math import inf
from typing import TYPE_CHECKING

import pytest

from sluice.config import StoreTimeouts
from sluice.errors import (
    AuthenticationFailed,
    BackendError,
    NoSuchSegment,
    ProtocolError,
    SegmentTruncated,
    StoreRejected,
    StoreTimeout,
    StoreUnavailable,
    TokenExpired,
    WrongHost,
)
from sluice.stores.credentials import Credentials
from sluice.stores.pravega.controller.directory import Token
from sluice.stores.pravega.names import Endpoint
from sluice.stores.pravega.segments import tail_links
from sluice.stores.pravega.segments import tails as tails_module
from sluice.stores.pravega.store import PravegaStore
from sluice.stores.pravega.wire import messages as m
from sluice.stores.pravega.wire import refusals as r
from sluice.stores.tails import Arrived, Broken, Ended
from support.store.segment_store import Peer, ScriptedStore

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator

    from sluice.stores.pravega.segments.tail_links import Link
    from sluice.stores.pravega.segments.tails import SegmentTails
    from sluice.stores.pravega.wire.wire import Message

NAME, OTHER = (f"scope/stream/{number}.#epoch.0" for number in range(2))
MOST = 1 << 20
PATIENT = StoreTimeouts(connect=5, call=5, stall=5)
HASTY = StoreTimeouts(connect=5, call=5, stall=0.4)
LOGIN = Credentials("user", "password")


@contextmanager
def following(
    endpoint: Endpoint, timeouts: StoreTimeouts = PATIENT, *, login: Credentials | None = None
) -> Iterator[SegmentTails]:
    """Follow segments that all live on one server, without a controller."""
    store = PravegaStore("tcp://127.0.0.1:1", credentials=login, timeouts=timeouts)

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


def part(asked: m.ReadSegment, data: bytes, *, at_end: bool = False) -> m.SegmentRead:
    """Return the answer to a read."""
    view = memoryview(data)
    return m.SegmentRead(asked.segment, asked.offset, not at_end, at_end, view, asked.request)


def give(peer: Peer, data: bytes, *, at: int, at_end: bool = False) -> None:
    """Answer one read, which must be at this offset."""
    asked = peer.expect(m.ReadSegment)
    assert asked.offset == at
    peer.say(part(asked, data, at_end=at_end))


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


def begun(tails: SegmentTails) -> Link:
    """Ask for all segments, and return the only connection once all reads are on their way."""
    tails._settle()
    (link,) = tails._links
    while link.asked or link.unasked:
        assert len(link.asked) <= tails_module._STATES
        tails._receive(5)
    return link


def broken(tails: SegmentTails, name: str = NAME) -> BackendError:
    """Take one event, which must be the end of a segment by an error. Return the error."""
    (event,) = tails.take(5)
    assert isinstance(event, Broken)
    assert event.segment == name
    return event.error


def test_blocks_come_in_order_and_then_the_end() -> None:
    """The next block is asked for behind the last one; a segment that ended is asked no more."""

    def serve(peer: Peer) -> None:
        tell(peer, length=3)
        give(peer, b"abc", at=0)
        give(peer, b"d", at=3)
        give(peer, b"ef", at=4, at_end=True)
        listen(peer)

    with ScriptedStore([serve]) as peer, following(peer.endpoint) as tails:
        tails.watch(NAME, 0)
        assert all_of(tails, 4) == [
            Arrived(NAME, 0, b"abc"),
            Arrived(NAME, 3, b"d"),
            Arrived(NAME, 4, b"ef"),
            Ended(NAME, 6),
        ]
        assert tails.take(0) == []
        assert tails._portions._free == MOST


def test_a_segment_is_asked_for_more_once_its_block_was_taken() -> None:
    """Not while it waits: what comes and nobody takes has a bound."""

    def serve(peer: Peer) -> None:
        tell(peer)
        give(peer, b"a", at=0)
        peer.say(m.KeepAlive())
        assert peer.expect(m.ReadSegment).offset == 1
        listen(peer)

    with ScriptedStore([serve]) as peer, following(peer.endpoint) as tails:
        tails.watch(NAME, 0)
        while not tails._came:
            tails._settle()
            tails._receive(5)
        (link,) = tails._links
        assert not link.waiting
        assert tails.take(0) == [Arrived(NAME, 0, b"a")]
        assert len(link.waiting) == 1


def test_a_segment_that_is_sealed_while_a_read_waits_ends() -> None:
    """The store says first that it is sealed, and then that this is its end."""

    def serve(peer: Peer) -> None:
        tell(peer)
        peer.say(r.SegmentIsSealed(peer.expect(m.ReadSegment).request, NAME))
        give(peer, b"", at=8, at_end=True)
        listen(peer)

    with ScriptedStore([serve]) as peer, following(peer.endpoint) as tails:
        tails.watch(NAME, 8)
        assert tails.take(5) == [Ended(NAME, 8)]


def test_a_sealed_segment_that_has_no_more_bytes_ends_at_once() -> None:
    """It is not read at all."""

    def serve(peer: Peer) -> None:
        tell(peer, sealed=True)
        listen(peer)

    with ScriptedStore([serve]) as peer, following(peer.endpoint) as tails:
        tails.watch(NAME, 8)
        assert tails.take(5) == [Ended(NAME, 8)]


def test_a_read_that_the_store_gives_up_is_asked_for_again() -> None:
    """As it gives up reads of segments that it puts out of its memory."""

    def serve(peer: Peer) -> None:
        tell(peer)
        give(peer, b"", at=8)
        give(peer, b"a", at=8)
        listen(peer)

    with ScriptedStore([serve]) as peer, following(peer.endpoint) as tails:
        tails.watch(NAME, 8)
        assert tails.take(5) == [Arrived(NAME, 8, b"a")]


def test_a_store_that_gives_up_every_read_is_not_asked_for_ever() -> None:
    """Each answer would be another question."""

    def serve(peer: Peer) -> None:
        tell(peer)
        give(peer, b"", at=8)
        give(peer, b"", at=8)
        listen(peer)

    with ScriptedStore([serve]) as peer, following(peer.endpoint) as tails:
        tails.watch(NAME, 8)
        error = broken(tails)
        assert isinstance(error, StoreUnavailable)
        assert "without bytes" in error.message


@pytest.mark.parametrize(
    ("state", "kind"),
    [
        ({"start": 4}, SegmentTruncated),
        ({"length": 2}, StoreRejected),
        ({"length": -1}, StoreRejected),
    ],
)
def test_an_offset_that_the_segment_does_not_have_is_an_error_of_its_own(
    state: dict[str, int], kind: type[BackendError]
) -> None:
    """A read of it could cost all others their connection."""

    def serve(peer: Peer) -> None:
        tell(peer, **state)
        tell(peer)
        listen(peer)

    with ScriptedStore([serve]) as peer, following(peer.endpoint) as tails:
        tails.watch(NAME, 3)
        tails.watch(OTHER, 3)
        error = broken(tails)
        assert type(error) is kind
        assert getattr(error, "start_offset", 4) == 4
        assert list(tails._watches) == [OTHER]


def _state(asked: m.ReadSegment) -> Message:
    return m.StreamSegmentInfo(asked.request, NAME, True, False, False, 0, 8, 0)  # noqa: FBT003


REFUSED: dict[str, tuple[Callable[[m.ReadSegment], Message], type[BackendError]]] = {
    "truncated": (lambda a: r.SegmentIsTruncated(a.request, NAME, 6), SegmentTruncated),
    "missing": (lambda a: r.SegmentIsMissing(a.request, NAME), NoSuchSegment),
    "moved": (lambda a: r.SegmentHasMoved(a.request, NAME, ""), WrongHost),
    "failed": (lambda a: r.ErrorMessage(a.request, NAME, "no"), StoreRejected),
}


@pytest.mark.parametrize("what", REFUSED)
def test_a_refusal_is_the_end_of_its_segment_alone(what: str) -> None:
    """Others on the same connection go on, and the segment may be watched again."""
    refusal, kind = REFUSED[what]

    def serve(peer: Peer) -> None:
        tell(peer)
        tell(peer)
        peer.say(refusal(peer.expect(m.ReadSegment)))
        give(peer, b"x", at=7)
        assert peer.expect(m.ReadSegment).offset == 8
        tell(peer)
        give(peer, b"y", at=6)
        listen(peer)

    with ScriptedStore([serve]) as peer, following(peer.endpoint) as tails:
        tails.watch(NAME, 3)
        tails.watch(OTHER, 7)
        came = all_of(tails, 2)
        assert came[1] == Arrived(OTHER, 7, b"x")
        assert isinstance(came[0], Broken)
        assert type(came[0].error) is kind
        assert getattr(came[0].error, "start_offset", 6) == 6
        tails.watch(NAME, 6)
        assert tails.take(5) == [Arrived(NAME, 6, b"y")]


LIES: dict[str, Callable[[m.ReadSegment], Message]] = {
    "more than was asked for": lambda a: part(a, bytes(a.length + 1)),
    "another offset": lambda a: m.SegmentRead(NAME, 4, True, False, memoryview(b"x"), a.request),  # noqa: FBT003
    "another segment": lambda a: m.SegmentRead(OTHER, 3, True, False, memoryview(b"x"), a.request),  # noqa: FBT003
    "another request": lambda _: m.SegmentRead(NAME, 3, True, False, memoryview(b"x"), 99),  # noqa: FBT003
    "no number": lambda a: m.SegmentRead(a.segment, 3, True, False, memoryview(b"x")),  # noqa: FBT003
    "a state": _state,
    "an acknowledgement": lambda a: m.AttributeUpdated(a.request, success=True),
    "a refusal of nothing": lambda a: r.SegmentIsMissing(a.request + 1, NAME),
    "another greeting": lambda _: m.Hello(),
}


@pytest.mark.parametrize("lie", LIES)
def test_a_store_that_lies_is_read_no_more(lie: str) -> None:
    """None of its bytes is handed on, and all of its segments end with an error."""

    def serve(peer: Peer) -> None:
        tell(peer)
        peer.say(LIES[lie](peer.expect(m.ReadSegment)))
        listen(peer)

    with ScriptedStore([serve]) as peer, following(peer.endpoint) as tails:
        tails.watch(NAME, 3)
        assert isinstance(broken(tails), ProtocolError)
        assert not list(tails._links)


def test_bytes_that_are_no_message_are_an_error() -> None:
    """Whatever they are."""

    def serve(peer: Peer) -> None:
        tell(peer)
        peer.sock.sendall(b"HTTP/1.1 400 Bad Request\r\n\r\n")
        listen(peer)

    with ScriptedStore([serve]) as peer, following(peer.endpoint) as tails:
        tails.watch(NAME, 3)
        assert isinstance(broken(tails), ProtocolError)


def test_a_silent_store_is_noticed() -> None:
    """It does not send KeepAlives back; a read at the tail alone may take for ever."""

    def serve(peer: Peer) -> None:
        tell(peer)
        tell(peer)
        listen(peer)

    with ScriptedStore([serve]) as peer, following(peer.endpoint, HASTY) as tails:
        tails.watch(NAME, 8)
        tails.watch(OTHER, 8)
        came = all_of(tails, 2)
        assert sorted(event.segment for event in came) == [NAME, OTHER]
        assert {type(event.error) for event in came if isinstance(event, Broken)} == {StoreTimeout}


def test_a_store_that_sends_keep_alives_back_is_waited_for() -> None:
    """For several times the time after which a silent one is given up."""

    def serve(peer: Peer) -> None:
        tell(peer)
        asked = peer.expect(m.ReadSegment)
        for _ in range(6):
            peer.expect(m.KeepAlive)
            peer.say(m.KeepAlive())
        peer.say(part(asked, b"at last"))
        listen(peer)

    with ScriptedStore([serve]) as peer, following(peer.endpoint, HASTY) as tails:
        tails.watch(NAME, 8)
        assert tails.take(10) == [Arrived(NAME, 8, b"at last")]


def test_a_caller_that_is_late_does_not_take_a_store_for_silent() -> None:
    """What the store sent meanwhile is read before its silence is judged."""

    def serve(peer: Peer) -> None:
        tell(peer)
        asked = peer.expect(m.ReadSegment)
        peer.expect(m.KeepAlive)
        peer.say(m.KeepAlive())
        peer.say(part(asked, b"a"))
        listen(peer)

    with ScriptedStore([serve]) as peer, following(peer.endpoint, HASTY) as tails:
        tails.watch(NAME, 8)
        link = begun(tails)
        link.connection.heard -= 60
        tails._check()
        link.pinged -= 50
        while not select.select([link.connection], [], [], 5)[0]:
            pass
        assert tails.take(5) == [Arrived(NAME, 8, b"a")]


def test_a_store_that_sends_keep_alives_without_end_holds_nobody() -> None:
    """They count for nothing, and come faster than they are read."""

    def serve(peer: Peer) -> None:
        tell(peer)
        with suppress(ConnectionError):
            while True:
                peer.say(*[m.KeepAlive()] * 10_000)

    with ScriptedStore([serve]) as peer, following(peer.endpoint, HASTY) as tails:
        tails.watch(NAME, 8)
        assert isinstance(broken(tails), StoreTimeout)


def test_a_state_that_is_never_told_is_the_end_of_its_segment_alone() -> None:
    """Others on the connection go on, and an answer that comes too late counts for nothing."""

    def serve(peer: Peer) -> None:
        late = peer.expect(m.GetSegmentInfo)
        tell(peer)
        asked = peer.expect(m.ReadSegment)
        peer.expect(m.GetSegmentInfo)
        peer.say(m.StreamSegmentInfo(late.request, NAME, True, False, False, 0, 8, 0))  # noqa: FBT003
        peer.say(part(asked, b"x"))
        listen(peer)

    timeouts = StoreTimeouts(connect=5, call=0.5, stall=5)
    with ScriptedStore([serve]) as peer, following(peer.endpoint, timeouts) as tails:
        tails.watch(NAME, 8)
        tails.watch(OTHER, 8)
        assert isinstance(broken(tails), StoreTimeout)
        tails.watch(NAME, 8)
        came = {event.segment: event for event in all_of(tails, 2)}
        assert came[OTHER] == Arrived(OTHER, 8, b"x")
        assert isinstance(came[NAME], Broken)


def test_a_connection_that_served_for_a_while_is_made_anew(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Each segment goes on where it was, and nobody notices."""
    monkeypatch.setattr(tail_links, "_CALM", 0.0)

    def serve(peer: Peer) -> None:
        tell(peer)
        give(peer, b"ab", at=8)
        peer.expect(m.ReadSegment)

    def go_on(peer: Peer) -> None:
        tell(peer, length=12)
        give(peer, b"cd", at=10)
        listen(peer)

    with ScriptedStore([serve, go_on]) as peer, following(peer.endpoint) as tails:
        tails.watch(NAME, 8)
        assert all_of(tails, 2) == [Arrived(NAME, 8, b"ab"), Arrived(NAME, 10, b"cd")]


def test_a_store_that_hangs_up_at_once_breaks_its_segments() -> None:
    """They can be watched again."""

    def serve(peer: Peer) -> None:
        peer.expect(m.GetSegmentInfo)

    def go_on(peer: Peer) -> None:
        tell(peer)
        give(peer, b"a", at=8)
        listen(peer)

    with ScriptedStore([serve, go_on]) as peer, following(peer.endpoint) as tails:
        tails.watch(NAME, 8)
        assert isinstance(broken(tails), StoreUnavailable)
        tails.watch(NAME, 8)
        assert tails.take(5) == [Arrived(NAME, 8, b"a")]


def test_a_store_that_nobody_reaches_breaks_its_segments() -> None:
    """All of them at once, by one try to connect."""
    with following(Endpoint("127.0.0.1", 1)) as tails:
        for name in (NAME, OTHER):
            tails.watch(name, 0)
        came = tails.take(5)
        assert [event.segment for event in came] == [NAME, OTHER]
        assert all(
            isinstance(event, Broken) and isinstance(event.error, StoreUnavailable)
            for event in came
        )


def test_a_token_refused_for_a_state_is_renewed_once() -> None:
    """A second refusal is final; without credentials it is asked for them."""

    def serve(peer: Peer) -> None:
        peer.say(r.TokenRefused(peer.expect(m.GetSegmentInfo).request))
        tell(peer)
        give(peer, b"a", at=8)
        listen(peer)

    with ScriptedStore([serve]) as peer, following(peer.endpoint, login=LOGIN) as tails:
        tails.watch(NAME, 8)
        assert tails.take(5) == [Arrived(NAME, 8, b"a")]

    def refuse(peer: Peer) -> None:
        peer.say(r.TokenRefused(peer.expect(m.GetSegmentInfo).request))
        listen(peer)

    with ScriptedStore([refuse]) as peer, following(peer.endpoint) as tails:
        tails.watch(NAME, 8)
        assert isinstance(broken(tails), AuthenticationFailed)


@pytest.mark.parametrize("calm", [True, False])
def test_a_token_refused_for_a_read_costs_the_connection(
    monkeypatch: pytest.MonkeyPatch, *, calm: bool
) -> None:
    """The store does not say which read it means: it gives the read's offset as its number."""
    monkeypatch.setattr(tail_links, "_CALM", 0.0 if calm else inf)

    def serve(peer: Peer) -> None:
        tell(peer)
        peer.say(r.TokenRefused(peer.expect(m.ReadSegment).offset))

    def go_on(peer: Peer) -> None:
        tell(peer)
        give(peer, b"a", at=8)
        listen(peer)

    scripts = [serve, go_on] if calm else [serve]
    with ScriptedStore(scripts) as peer, following(peer.endpoint, login=LOGIN) as tails:
        tails.watch(NAME, 8)
        if calm:
            assert tails.take(5) == [Arrived(NAME, 8, b"a")]
        else:
            assert isinstance(broken(tails), TokenExpired)


def test_a_read_that_waits_is_taken_up_again() -> None:
    """The store cannot end it, so a segment that was dropped and is wanted again asks nothing."""

    def serve(peer: Peer) -> None:
        tell(peer)
        asked = peer.expect(m.ReadSegment)
        tell(peer)
        peer.say(part(asked, b"a"))
        give(peer, b"b", at=5)
        listen(peer)

    with ScriptedStore([serve]) as peer, following(peer.endpoint) as tails:
        tails.watch(NAME, 8)
        begun(tails)
        tails.drop(NAME)
        tails.watch(NAME, 8)
        tails.watch(OTHER, 5)
        assert all_of(tails, 2) == [Arrived(NAME, 8, b"a"), Arrived(OTHER, 5, b"b")]


def test_nothing_comes_of_a_segment_that_was_dropped() -> None:
    """Its read may still be answered; dropping what is not watched is fine."""

    def serve(peer: Peer) -> None:
        tell(peer)
        asked = peer.expect(m.ReadSegment)
        tell(peer)
        peer.say(part(asked, b"a"))
        give(peer, b"b", at=8)
        listen(peer)

    with ScriptedStore([serve]) as peer, following(peer.endpoint) as tails:
        tails.watch(NAME, 8)
        link = begun(tails)
        tails.drop(NAME)
        tails.drop(NAME)
        tails.watch(OTHER, 8)
        assert tails.take(5) == [Arrived(OTHER, 8, b"b")]
        assert not tails._given_up
        assert len(link.watches) == 1


def test_thousands_of_segments_are_asked_for_some_at_a_time() -> None:
    """Their states one window at a time; then each has one read on its way."""
    count = 3 * tails_module._STATES
    names = [f"scope/stream/{number}.#epoch.0" for number in range(count)]

    def serve(peer: Peer) -> None:
        states = reads = 0
        while reads < count:
            number, payload = peer.frame()
            if number == m.GetSegmentInfo.TYPE:
                states += 1
                request = int.from_bytes(payload[:8], "big")
                name = names[states - 1]
                peer.say(m.StreamSegmentInfo(request, name, True, False, False, 0, 8, 0))  # noqa: FBT003
            else:
                reads += 1
        listen(peer)

    with ScriptedStore([serve]) as peer, following(peer.endpoint) as tails:
        for name in names:
            tails.watch(name, 8)
        link = begun(tails)
        assert len(link.waiting) == count


def test_mistakes_of_the_caller_are_errors() -> None:
    """A segment is watched once, from a byte that a segment can have."""
    with following(Endpoint("127.0.0.1", 1)) as tails:
        tails.watch(NAME, 0)
        with pytest.raises(ValueError, match="watched already"):
            tails.watch(NAME, 5)
        with pytest.raises(ValueError, match="no byte"):
            tails.watch(OTHER, -1)
        tails.close()
        tails.close()
