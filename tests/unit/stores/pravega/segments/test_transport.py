"""Repeated requests, new owners and order, with stores that hang up, move or shuffle answers."""

import threading
from collections.abc import Callable, Iterator
from uuid import UUID, uuid4

import pytest

from sluice.config import StoreTimeouts
from sluice.core.values.model import SegmentInfo
from sluice.errors import (
    InvalidEventNumber,
    ProtocolError,
    SegmentSealed,
    StoreRejected,
    StoreTimeout,
    StoreUnavailable,
)
from sluice.stores.pravega.names import Endpoint, SegmentOwner, owner_of
from sluice.stores.pravega.segments import transport as transport_module
from sluice.stores.pravega.store import PravegaStore
from sluice.stores.pravega.wire import messages as m
from sluice.stores.pravega.wire import refusals as r
from sluice.stores.pravega.wire.wire import NOT_SET
from sluice.stores.writing import CompareAndSet
from support.wire.segment_store import Peer, ScriptedStore

NAME = "scope/stream/0.#epoch.0"
ATTRIBUTE = UUID(int=7)
WRITER = uuid4()
FOUND = SegmentInfo(start=0, length=8, sealed=False)

Served = Callable[[Endpoint], PravegaStore]


@pytest.fixture
def served(monkeypatch: pytest.MonkeyPatch) -> Iterator[Served]:
    """Yield a function that returns a store whose segments are all on one server.

    There is no controller.
    """
    monkeypatch.setattr(transport_module, "PAUSES", (0.0, 0.0))
    timeouts = StoreTimeouts(connect=5, call=5, stall=5)
    store = PravegaStore("tcp://127.0.0.1:1", credentials=None, timeouts=timeouts)

    def on(endpoint: Endpoint) -> PravegaStore:
        def owners(names: Iterator[str]) -> list[Endpoint]:
            return [endpoint for _ in names]

        store._directory.owners = owners  # type: ignore[method-assign,assignment]
        return store

    yield on
    store.close()


def tell_info(peer: Peer) -> None:
    """Answer one request for the segment's state."""
    asked = peer.expect(m.GetSegmentInfo)
    peer.say(m.StreamSegmentInfo(asked.request, NAME, True, False, False, 0, 8, 0))  # noqa: FBT003


def hang_up(peer: Peer) -> None:
    """Take a request, and end the connection without an answer."""
    peer.expect(m.GetSegmentInfo)


def test_a_request_is_repeated_when_the_connection_breaks(served: Served) -> None:
    """The request is sent again over a new connection."""
    with ScriptedStore([hang_up, tell_info]) as peer:
        assert served(peer.endpoint).infos([NAME]) == [FOUND]


def test_patience_has_an_end(served: Served) -> None:
    """After three failures in a row, the call raises StoreUnavailable."""
    with ScriptedStore([hang_up] * 3) as peer:
        store = served(peer.endpoint)
        with pytest.raises(StoreUnavailable, match="closed the connection"):
            store.infos([NAME])


def test_a_timeout_is_not_repeated(served: Served) -> None:
    """A call that exceeds its deadline is final, since the caller's time is over."""

    def say_nothing(peer: Peer) -> None:
        peer.expect(m.GetSegmentInfo)
        with pytest.raises(EOFError):
            peer.expect(m.GetSegmentInfo)

    with ScriptedStore([say_nothing]) as peer:
        store = served(peer.endpoint)
        store._transport.timeouts = StoreTimeouts(call=0.1)
        with pytest.raises(StoreTimeout):
            store.infos([NAME])


def test_a_segment_that_moved_is_looked_up_again(served: Served) -> None:
    """The known owner is forgotten when it answers that the segment has moved."""
    store = served(Endpoint("unused", 1))
    places: dict[SegmentOwner, Endpoint] = {}
    store._directory._owners = places

    def moved(peer: Peer) -> None:
        peer.say(r.SegmentHasMoved(peer.expect(m.GetSegmentInfo).request, NAME, ""))

    with ScriptedStore([moved]) as old, ScriptedStore([tell_info]) as new:
        places[owner_of(NAME)] = old.endpoint

        def owners(names: Iterator[str]) -> list[Endpoint]:
            return [places.get(owner_of(name), new.endpoint) for name in names]

        store._directory.owners = owners  # type: ignore[method-assign,assignment]
        assert store.infos([NAME]) == [FOUND]


def test_segments_of_a_server_that_is_away_are_looked_up_again(
    served: Served, monkeypatch: pytest.MonkeyPatch
) -> None:
    """After the first failure, no other segment waits for the dead server."""
    store, beside = served(Endpoint("unused", 1)), "scope/stream/1.#epoch.0"
    directory = store._directory
    monkeypatch.delattr(directory, "owners")
    # A second connection to the old server would get no greeting.
    with ScriptedStore([hang_up]) as old, ScriptedStore([tell_info, tell_info]) as new:
        directory._owners = {owner_of(name): old.endpoint for name in (NAME, beside)}
        monkeypatch.setattr(directory, "run", lambda _call: [new.endpoint])
        for name in (NAME, beside):
            assert store.infos([name]) == [FOUND]


@pytest.mark.parametrize(("value", "done"), [(5, True), (6, False), (NOT_SET, False)])
def test_a_repeated_compare_and_set_looks_at_the_value(
    served: Served, value: int, *, done: bool
) -> None:
    """If the answer to the first try was lost, a refusal with the new value counts as success."""

    def lose(peer: Peer) -> None:
        peer.expect(m.UpdateAttribute)

    def refuse(peer: Peer) -> None:
        peer.say(m.AttributeUpdated(peer.expect(m.UpdateAttribute).request, success=False))
        peer.say(m.Attribute(peer.expect(m.GetAttribute).request, value))

    def tell_index(peer: Peer) -> None:
        asked = peer.expect(m.SetupAppend)
        peer.say(m.AppendSetup(asked.request, NAME, asked.writer, value))

    scripts = [lose, refuse, *([tell_index] if value == NOT_SET else [])]
    with ScriptedStore(scripts) as peer:
        assert served(peer.endpoint).set_attribute(NAME, CompareAndSet(ATTRIBUTE, 4, 5)) is done


def test_a_repeated_merge_looks_at_the_value(served: Served) -> None:
    """A merge whose answer was lost has succeeded if the attribute has the new value."""

    def lose(peer: Peer) -> None:
        peer.expect(m.MergeSegments)

    def refuse(peer: Peer) -> None:
        peer.say(r.SegmentIsMissing(peer.expect(m.MergeSegments).request, NAME))
        peer.say(m.Attribute(peer.expect(m.GetAttribute).request, 5))

    with ScriptedStore([lose, refuse]) as peer:
        served(peer.endpoint).merge(NAME, NAME, CompareAndSet(ATTRIBUTE, 4, 5))


def test_a_merge_that_is_refused_for_a_look_at_its_condition_is_tried_again(
    served: Served,
) -> None:
    """The store refuses the merge while another client's read loads the attribute."""

    def refuse(peer: Peer) -> None:
        peer.say(m.AttributeUpdated(peer.expect(m.MergeSegments).request, success=False))
        peer.say(m.Attribute(peer.expect(m.GetAttribute).request, 4))
        peer.say(m.SegmentsMerged(peer.expect(m.MergeSegments).request, NAME, NAME, 8))

    with ScriptedStore([refuse]) as peer:
        served(peer.endpoint).merge(NAME, NAME, CompareAndSet(ATTRIBUTE, 4, 5))


def test_an_answer_to_no_question_is_a_protocol_error(served: Served) -> None:
    """A reply with another request number does not count as the answer."""

    def lie(peer: Peer) -> None:
        peer.say(m.SegmentCreated(peer.expect(m.CreateSegment).request + 1, NAME))

    with ScriptedStore([lie]) as peer:
        store = served(peer.endpoint)
        with pytest.raises(ProtocolError, match="without a request"):
            store.create(NAME)


def test_an_answer_of_another_kind_is_a_protocol_error(served: Served) -> None:
    """A reply with the right number must have the right type, too."""

    def lie(peer: Peer) -> None:
        peer.say(m.SegmentDeleted(peer.expect(m.CreateSegment).request, NAME))

    with ScriptedStore([lie]) as peer:
        store = served(peer.endpoint)
        with pytest.raises(ProtocolError, match="SEGMENT_DELETED where a SEGMENT_CREATED"):
            store.create(NAME)


def part(asked: m.ReadSegment, data: bytes, length: int | None = None) -> m.SegmentRead:
    """Return the reply to a read of this content, which may be short."""
    size = asked.length if length is None else length
    found = memoryview(data[asked.offset : asked.offset + size])
    return m.SegmentRead(NAME, asked.offset, False, False, found, asked.request)  # noqa: FBT003


def test_replies_that_come_short_and_out_of_order_are_put_in_order(served: Served) -> None:
    """Every byte is handed on once and in its place, for any order of replies."""
    data = bytes(range(40))

    def shuffle(peer: Peer) -> None:
        asked = [peer.expect(m.ReadSegment) for _ in range(4)]
        peer.say(part(asked[2], data), part(asked[1], data, 4), part(asked[3], data))
        rest = peer.expect(m.ReadSegment)
        assert (rest.offset, rest.length) == (asked[1].offset + 4, 6)
        peer.say(part(rest, data), part(asked[0], data))

    with ScriptedStore([shuffle]) as peer:
        store = served(peer.endpoint)
        store._block = 10
        blocks = [(block.offset, bytes(block.data)) for block in store.read(NAME, 0, 40)]
    assert b"".join(found for _, found in blocks) == data
    assert [offset for offset, _ in blocks] == [0, 10, 14, 20, 30]


def test_a_read_that_breaks_off_goes_on_where_it_was(served: Served) -> None:
    """No byte is handed on twice when a connection breaks between two replies."""
    data = bytes(range(20))

    def begin(peer: Peer) -> None:
        peer.say(part(peer.expect(m.ReadSegment), data))

    def finish(peer: Peer) -> None:
        asked = peer.expect(m.ReadSegment)
        assert asked.offset == 10
        peer.say(part(asked, data))

    with ScriptedStore([begin, finish]) as peer:
        store = served(peer.endpoint)
        store._block = 10
        assert b"".join(bytes(block.data) for block in store.read(NAME, 0, 20)) == data


def test_a_segment_that_ends_early_is_rejected(served: Served) -> None:
    """A reply without bytes, at the segment's end, raises StoreRejected."""

    def end(peer: Peer) -> None:
        peer.say(part(peer.expect(m.ReadSegment), b""))

    with ScriptedStore([end]) as peer:
        store = served(peer.endpoint)
        with pytest.raises(StoreRejected, match="ends at byte 0, before byte 5"):
            list(store.read(NAME, 0, 5))


def set_up(peer: Peer, last: int = NOT_SET) -> None:
    """Answer the setup of an append."""
    asked = peer.expect(m.SetupAppend)
    peer.say(m.AppendSetup(asked.request, NAME, asked.writer, last))


def test_an_append_keeps_within_its_window(served: Served) -> None:
    """A block is sent only when it fits into the window."""

    def store_slowly(peer: Peer) -> None:
        set_up(peer)
        for number in range(0, 6, 2):
            for block in (number, number + 1):
                assert peer.expect(m.AppendBlockEnd).event_number == block
            peer.sock.setblocking(False)  # noqa: FBT003 - a third block must not be here
            with pytest.raises(BlockingIOError):
                peer.sock.recv(1)
            peer.sock.settimeout(5)
            peer.say(m.DataAppended(WRITER, number + 1, number - 1))

    with ScriptedStore([store_slowly]) as peer:
        store = served(peer.endpoint)
        with store.appender(NAME, writer=WRITER, window=20) as appender:
            for number in range(6):
                appender.append(bytes(10), event_number=number)
            appender.flush()
            assert appender.acknowledged == 5


def test_confirmations_that_are_not_here_are_not_waited_for(served: Served) -> None:
    """`pump` reads only confirmations that have arrived.

    A confirmation has the segment's length if the store sends it.
    """
    said = threading.Event()

    def confirm(peer: Peer) -> None:
        set_up(peer)
        peer.expect(m.AppendBlockEnd)
        said.wait(5)
        peer.say(m.DataAppended(WRITER, 1, NOT_SET))
        assert peer.expect(m.AppendBlockEnd).events == 7
        peer.say(m.DataAppended(WRITER, 2, 1, 3, 18))
        with pytest.raises(EOFError):
            peer.frame()

    with ScriptedStore([confirm]) as peer:
        store = served(peer.endpoint)
        with store.appender(NAME, writer=WRITER, window=20) as appender:
            appender.append(b"x", event_number=1)
            appender.pump()
            assert appender.acknowledged is None
            said.set()
            while appender.acknowledged is None:
                appender.pump()
            assert appender.offset is None
            appender.append(b"y", event_number=2, events=7)
            appender.flush()
            assert appender.offset == 18


def test_an_append_that_the_store_hangs_up_on_says_why(served: Served) -> None:
    """If the refusal was lost, the segment's state shows that it is sealed."""

    def drop(peer: Peer) -> None:
        set_up(peer)
        peer.expect(m.AppendBlockEnd)

    def explain(peer: Peer) -> None:
        asked = peer.expect(m.GetSegmentInfo)
        peer.say(m.StreamSegmentInfo(asked.request, NAME, True, True, False, 0, 8, 0))  # noqa: FBT003

    with ScriptedStore([drop, explain]) as peer:
        store = served(peer.endpoint)
        with store.appender(NAME, writer=WRITER, window=20) as appender:
            appender.append(b"x", event_number=1)
            with pytest.raises(SegmentSealed, match=NAME):
                appender.flush()


def test_an_append_is_never_repeated(served: Served) -> None:
    """After a lost connection, the caller has to look at the segment."""

    def drop(peer: Peer) -> None:
        set_up(peer)
        peer.expect(m.AppendBlockEnd)

    with ScriptedStore([drop, tell_info]) as peer:
        store = served(peer.endpoint)
        with store.appender(NAME, writer=WRITER, window=20) as appender:
            appender.append(b"x", event_number=1)
            with pytest.raises(StoreUnavailable):
                appender.flush()


def test_an_append_that_is_renewed_notices_another_writer(served: Served) -> None:
    """A new connection continues only if the last event number is unchanged."""

    def other(peer: Peer) -> None:
        set_up(peer, last=99)

    with ScriptedStore([set_up, other]) as peer:
        store = served(peer.endpoint)
        with store.appender(NAME, writer=WRITER, window=20) as appender:
            appender._open = appender._open._replace(until=0)
            with pytest.raises(InvalidEventNumber, match=str(WRITER)):
                appender.append(b"x", event_number=1)
