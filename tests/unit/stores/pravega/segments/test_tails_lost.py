"""Segment stores that lie, hang up or fall silent while their segments are followed."""

from __future__ import annotations

import select
from contextlib import suppress
from math import inf
from typing import TYPE_CHECKING

import pytest

from sluice.config import StoreTimeouts
from sluice.errors import (
    AuthenticationFailed,
    ProtocolError,
    StoreTimeout,
    StoreUnavailable,
    TokenExpired,
)
from sluice.stores.pravega.names import Endpoint
from sluice.stores.pravega.segments import tail_links
from sluice.stores.pravega.segments import tails as tails_module
from sluice.stores.pravega.wire import messages as m
from sluice.stores.pravega.wire import refusals as r
from sluice.stores.tails import Arrived, Broken
from support.store.scripted_tails import (
    HASTY,
    LOGIN,
    NAME,
    OTHER,
    all_of,
    begun,
    broken,
    following,
    give,
    listen,
    part,
    receive,
    tell,
)
from support.wire.segment_store import Peer, ScriptedStore

if TYPE_CHECKING:
    from collections.abc import Callable

    from sluice.stores.pravega.wire.wire import Message


def _state(asked: m.ReadSegment) -> Message:
    return m.StreamSegmentInfo(asked.request, NAME, True, False, False, 0, 8, 0)  # noqa: FBT003


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


def test_a_store_that_gives_up_every_read_is_not_asked_for_ever() -> None:
    """An answer without bytes within a second of the last one breaks the segment."""

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


@pytest.mark.parametrize("lie", LIES)
def test_a_store_that_lies_is_read_no_more(lie: str) -> None:
    """No byte of the wrong answer is handed on, and the store's segments end with ProtocolError."""

    def serve(peer: Peer) -> None:
        tell(peer)
        peer.say(LIES[lie](peer.expect(m.ReadSegment)))
        listen(peer)

    with ScriptedStore([serve]) as peer, following(peer.endpoint) as tails:
        tails.watch(NAME, 3)
        assert isinstance(broken(tails), ProtocolError)
        assert not list(tails._links)


def test_bytes_that_are_no_message_are_an_error() -> None:
    """The answer of an HTTP server raises ProtocolError."""

    def serve(peer: Peer) -> None:
        tell(peer)
        peer.sock.sendall(b"HTTP/1.1 400 Bad Request\r\n\r\n")
        listen(peer)

    with ScriptedStore([serve]) as peer, following(peer.endpoint) as tails:
        tails.watch(NAME, 3)
        assert isinstance(broken(tails), ProtocolError)


def test_a_silent_store_is_noticed() -> None:
    """A store that returns no KeepAlives breaks its segments.

    A read that waits at the tail does not.
    """

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


def test_what_came_before_a_connection_broke_is_taken_before_it_is_asked_for_again(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Over the next connection each segment is asked for once, behind what came."""
    monkeypatch.setattr(tail_links, "_CALM", 0.0)
    monkeypatch.setattr(tails_module, "_TOGETHER", 60.0)
    asked: list[tuple[str, int]] = []

    def first(peer: Peer) -> None:
        tell(peer), tell(peer)
        for request in [peer.expect(m.ReadSegment), peer.expect(m.ReadSegment)]:
            peer.say(part(request, b"a"))
        peer.say(part(peer.expect(m.ReadSegment), b"b"))
        peer.expect(m.ReadSegment)  # and hangs up without an answer

    def second(peer: Peer) -> None:
        tell(peer), tell(peer)
        with suppress(EOFError, ConnectionError):
            while True:
                request = peer.expect(m.ReadSegment)
                asked.append((request.segment, request.offset))

    with ScriptedStore([first, second]) as peer, following(peer.endpoint) as tails:
        tails.watch(NAME, 0), tails.watch(OTHER, 0)
        receive(tails, 2)
        assert len(tails.take(0)) == 2
        (event,) = tails.take(60)
        assert isinstance(event, Arrived)
        assert tails.take(0.5) == []
    (other,) = {NAME, OTHER} - {event.segment}
    assert sorted(asked) == sorted([(event.segment, 2), (other, 1)])


def test_a_store_that_sends_keep_alives_back_is_waited_for() -> None:
    """The wait may be several times as long as the time-out for silence."""

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
    """Messages that have arrived are read before the silence is judged."""

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
    """KeepAlives that come faster than they are read do not extend the deadline."""

    def serve(peer: Peer) -> None:
        tell(peer)
        with suppress(ConnectionError):
            while True:
                peer.say(*[m.KeepAlive()] * 10_000)

    with ScriptedStore([serve]) as peer, following(peer.endpoint, HASTY) as tails:
        tails.watch(NAME, 8)
        assert isinstance(broken(tails), StoreTimeout)


def test_a_state_that_is_never_told_is_the_end_of_its_segment_alone() -> None:
    """Others on the connection go on, and a late answer is ignored."""

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


def test_no_segment_waits_for_the_state_of_others_without_end() -> None:
    """Each segment breaks in its time, even if the store never sends a state."""
    names = [f"scope/stream/{number}.#epoch.0" for number in range(tails_module._STATES + 1)]

    timeouts = StoreTimeouts(connect=5, call=0.5, stall=60)
    with ScriptedStore([listen]) as peer, following(peer.endpoint, timeouts) as tails:
        for name in names:
            tails.watch(name, 8)
        came = all_of(tails, len(names))
        assert {type(event.error) for event in came if isinstance(event, Broken)} == {StoreTimeout}
        assert [event.segment for event in came] == names


def test_a_connection_that_served_for_a_while_is_made_anew(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Each segment continues at its position, and the caller sees no break."""
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
    """The segments can be watched again."""

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
    """One failed connection breaks all of the store's segments at once."""
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
    """A second refusal is final. Without credentials the error asks for them."""

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
    """The store does not name the refused read: it sends the read's offset as its number."""
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
