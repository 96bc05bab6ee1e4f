"""Segments that are followed: their bytes, the requests for more, and their ends."""

from __future__ import annotations

from threading import Event
from typing import TYPE_CHECKING

import pytest

from sluice.errors import (
    BackendError,
    NoSuchSegment,
    SegmentTruncated,
    StoreMoving,
    StoreRejected,
)
from sluice.stores.pravega.names import Endpoint
from sluice.stores.pravega.segments import tails as tails_module
from sluice.stores.pravega.wire import messages as m
from sluice.stores.pravega.wire import refusals as r
from sluice.stores.tails import Arrived, Broken, Ended
from support.store.scripted_tails import (
    MOST,
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
    from support.wire.tls_names import TLSNames


def test_blocks_come_in_order_and_then_the_end() -> None:
    """Each block is requested behind the last one.

    A segment that has ended gets no more requests.
    """

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


@pytest.mark.parametrize("behind", [True, False])
def test_a_segment_is_asked_for_more_once_its_block_was_taken(*, behind: bool) -> None:
    """The request goes at once if the segment is behind, otherwise with the next call."""

    def serve(peer: Peer) -> None:
        tell(peer)
        give(peer, b"a", at=0, behind=behind)
        peer.say(m.KeepAlive())
        assert peer.expect(m.ReadSegment).offset == 1
        listen(peer)

    with ScriptedStore([serve]) as peer, following(peer.endpoint) as tails:
        tails.watch(NAME, 0)
        receive(tails, 1)
        (link,) = tails._links
        assert not link.waiting
        assert tails.take(0) == [Arrived(NAME, 0, b"a")]
        assert len(link.waiting) == behind
        assert tails.take(0) == []
        assert len(link.waiting) == 1


@pytest.mark.parametrize("patient", [True, False])
def test_segments_that_were_asked_together_are_taken_together(
    monkeypatch: pytest.MonkeyPatch, *, patient: bool
) -> None:
    """Once they are asked, all have a moment to answer. What comes too late is taken later."""
    monkeypatch.setattr(tails_module, "_TOGETHER", 60.0 if patient else 0.001)
    taken = Event()

    def serve(peer: Peer) -> None:
        tell(peer), tell(peer)
        for at, data in enumerate([b"a", b"b"]):
            first, second = peer.expect(m.ReadSegment), peer.expect(m.ReadSegment)
            assert first.offset == second.offset == at
            peer.say(part(first, data))
            if at and not patient:
                taken.wait(60)
            peer.say(part(second, data))
        listen(peer)

    with ScriptedStore([serve]) as peer, following(peer.endpoint) as tails:
        tails.watch(NAME, 0), tails.watch(OTHER, 0)
        receive(tails, 2)
        assert len(tails.take(0)) == 2
        came = tails.take(60)
        taken.set()
        assert len(came) == 1 + patient
        came += all_of(tails, 2 - len(came))
        assert {event.segment for event in came} == {NAME, OTHER}


@pytest.mark.parametrize("behind", [True, False])
def test_a_paused_segment_is_asked_for_no_more_until_it_is_resumed(*, behind: bool) -> None:
    """One block may still arrive, if its request was sent before the pause."""

    def serve(peer: Peer) -> None:
        tell(peer)
        for at, data in enumerate([b"a", b"b", b"c"]):
            give(peer, data, at=at, behind=behind)
        listen(peer)

    with ScriptedStore([serve]) as peer, following(peer.endpoint) as tails:
        tails.watch(NAME, 0)
        assert tails.take(5) == [Arrived(NAME, 0, b"a")]
        tails.pause(NAME)
        if behind:
            assert tails.take(5) == [Arrived(NAME, 1, b"b")]
        (link,) = tails._links
        assert tails.take(0.05) == []
        assert not link.waiting
        tails.resume(NAME)
        assert all_of(tails, 2 - behind)[-1] == Arrived(NAME, 2, b"c")


def test_a_segment_that_is_sealed_while_a_read_waits_ends() -> None:
    """The store answers the read with the seal, and the repeated read with the end."""

    def serve(peer: Peer) -> None:
        tell(peer)
        peer.say(r.SegmentIsSealed(peer.expect(m.ReadSegment).request, NAME))
        give(peer, b"", at=8, at_end=True)
        listen(peer)

    with ScriptedStore([serve]) as peer, following(peer.endpoint) as tails:
        tails.watch(NAME, 8)
        assert tails.take(5) == [Ended(NAME, 8)]


def test_a_sealed_segment_that_has_no_more_bytes_ends_at_once() -> None:
    """The segment's state tells its end, so no read is sent."""

    def serve(peer: Peer) -> None:
        tell(peer, sealed=True)
        listen(peer)

    with ScriptedStore([serve]) as peer, following(peer.endpoint) as tails:
        tails.watch(NAME, 8)
        assert tails.take(5) == [Ended(NAME, 8)]


def test_a_read_that_the_store_gives_up_is_asked_for_again() -> None:
    """The store answers without bytes when it drops a segment from memory."""

    def serve(peer: Peer) -> None:
        tell(peer)
        give(peer, b"", at=8)
        give(peer, b"a", at=8)
        listen(peer)

    with ScriptedStore([serve]) as peer, following(peer.endpoint) as tails:
        tails.watch(NAME, 8)
        assert tails.take(5) == [Arrived(NAME, 8, b"a")]


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
    """The client sends no read for such an offset.

    It could cost all other segments their connection.
    """

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


REFUSED: dict[str, tuple[Callable[[m.ReadSegment], Message], type[BackendError]]] = {
    "truncated": (lambda a: r.SegmentIsTruncated(a.request, NAME, 6), SegmentTruncated),
    "missing": (lambda a: r.SegmentIsMissing(a.request, NAME), NoSuchSegment),
    "moved": (lambda a: r.SegmentHasMoved(a.request, NAME, ""), StoreMoving),
    "failed": (lambda a: r.ErrorMessage(a.request, NAME, "no"), StoreRejected),
}


@pytest.mark.parametrize("what", REFUSED)
def test_a_refusal_is_the_end_of_its_segment_alone(what: str) -> None:
    """Other segments on the connection go on, and this one may be watched again."""
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


def test_thousands_of_segments_are_asked_for_some_at_a_time() -> None:
    """States are requested one window at a time. Then each segment has one pending read."""
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
    """Watching a segment twice, or from a negative offset, raises ValueError."""
    with following(Endpoint("127.0.0.1", 1)) as tails:
        tails.watch(NAME, 0)
        with pytest.raises(ValueError, match="watched already"):
            tails.watch(NAME, 5)
        with pytest.raises(ValueError, match="no byte"):
            tails.watch(OTHER, -1)
        tails.close()
        tails.close()


def test_answers_that_share_a_record_of_tls_all_come(
    tls_names: TLSNames, monkeypatch: pytest.MonkeyPatch
) -> None:
    """After the first answer the socket is silent, while TLS still holds the others."""
    monkeypatch.setattr(tails_module, "_TURN", 1)
    segments = [f"scope/stream/{number}.#epoch.0" for number in range(20)]

    def serve(peer: Peer) -> None:
        asked = {each.segment: each for each in (peer.expect(m.GetSegmentInfo) for _ in segments)}
        states = [
            m.StreamSegmentInfo(
                each.request,
                name,
                exists=True,
                sealed=False,
                deleted=False,
                modified=0,
                length=1,
                start=0,
            )
            for name, each in asked.items()
        ]
        peer.say(*states)
        reads = [peer.expect(m.ReadSegment) for _ in segments]
        peer.say(*(part(read, b"a") for read in reads))
        listen(peer)

    server = tls_names.server("127.0.0.1")
    with (
        ScriptedStore([serve], tls=server) as peer,
        following(peer.endpoint, trust=tls_names.trust) as tails,
    ):
        for name in segments:
            tails.watch(name, 0)
        came = all_of(tails, len(segments))
    assert sorted(map(str, came)) == sorted(str(Arrived(name, 0, b"a")) for name in segments)
