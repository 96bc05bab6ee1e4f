"""Follow live segments: one connection for each segment store, one read on its way for each segment.

What a segment store (0.13.0) does, seen on a real one and read in its `PravegaRequestProcessor`:

- It answers a read at the tail once bytes come, without any limit of time. A read that is given up
  stays in its memory, so a segment is never asked for twice on one connection.
- After some idle minutes it puts a segment out of its memory, and answers the waiting read without
  bytes. The same read may then be sent again.
- It answers a read that waits while the segment is sealed with SegmentIsSealed, and the same read
  then with the end of the segment.
- It closes the connection, with all other reads on it, if one read begins behind the end of its
  segment, and if a segment is deleted that is being read. So it is asked for the state of a segment
  first, and a connection that served for a while is made anew before anything counts as broken.
- If it refuses the token of a read, it names the read's offset instead of its number. It then is
  unknown which segment is meant. For the state of a segment it names the number.
- It sends each KeepAlive back.
"""

from __future__ import annotations

import selectors
from collections import defaultdict, deque
from dataclasses import dataclass, field
from math import inf
from time import monotonic
from typing import TYPE_CHECKING, Final

from sluice.errors import (
    BackendError,
    NoSuchSegment,
    ProtocolError,
    SegmentTruncated,
    StoreRejected,
    StoreTimeout,
    StoreUnavailable,
)
from sluice.stores import deadline
from sluice.stores.pravega.names import TokenAccess
from sluice.stores.pravega.segments.reader import BLOCK
from sluice.stores.pravega.wire.messages import (
    GetSegmentInfo,
    KeepAlive,
    ReadSegment,
    SegmentRead,
    StreamSegmentInfo,
)
from sluice.stores.pravega.wire.refusals import Refusal, SegmentIsSealed, TokenRefused, error_of
from sluice.stores.tails import Arrived, Broken, Ended

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator

    from sluice.stores.pravega.names import Endpoint
    from sluice.stores.pravega.segments.transport import Transport
    from sluice.stores.pravega.wire.connection import Connection
    from sluice.stores.pravega.wire.wire import Message

_LEAST: Final = 4 << 10
"""Bytes that each segment may ask for, however many segments there are."""

_IDLE: Final = 64 << 10
"""Bytes that a segment asks for at most while it is read up to its tail."""

_MOST: Final = 32 << 20
"""Bytes that all segments ask for at most: a connection keeps no more than twice as much early."""

_KEEP_ALIVE: Final = 10.0
"""Seconds of silence after which a segment store has to send a KeepAlive back."""

_CALM: Final = 10.0
"""Seconds after which a connection that breaks is made anew."""

_PACE: Final = 1.0
"""Seconds in which a segment store may answer one read of a segment without bytes."""

_TURN: Final = 256
"""Messages that are taken in from one segment store before the next one has its turn."""

_STATES: Final = 256
"""Questions for the state of a segment that are on their way at a time to one segment store."""


@dataclass(slots=True, eq=False)
class _Watch:
    """A segment that is followed.

    Attributes:
        name: the segment's full name.
        offset: the first byte that did not come yet.
        link: the connection to its segment store; None while it has to be found.
        size: bytes that are asked for, or came and were not taken.
        begun: whether the state was told, so that a read is on its way.
        behind: whether there were more bytes than were asked for.
        barren: the time of the last answer without bytes.
        renewed: whether a token was refused, and another one is tried.
        dropped: whether nobody wants its bytes any more.
    """

    name: str
    offset: int
    link: _Link | None = None
    size: int = 0
    begun: bool = False
    behind: bool = False
    barren: float = -inf
    renewed: bool = False
    dropped: bool = False


@dataclass(slots=True, eq=False)
class _Link:
    """A connection to a segment store.

    Attributes:
        connection: the connection.
        peer: the segment store.
        made: when it was made.
        pinged: when the last KeepAlive was sent.
        watches: the segments that are read over it, which includes dropped ones with a read on its
            way.
        waiting: these segments by the number of the request that is on its way.
        asked: when the state of a segment was asked for, by the request's number, oldest first.
        unasked: segments whose state has to be asked for.
    """

    connection: Connection
    peer: Endpoint
    made: float
    pinged: float = -inf
    watches: set[_Watch] = field(default_factory=set)
    waiting: dict[int, _Watch] = field(default_factory=dict)
    asked: dict[int, float] = field(default_factory=dict)
    unasked: deque[_Watch] = field(default_factory=deque)


class SegmentTails:
    """`sluice.stores.tails.Tails` for Pravega.

    A segment that is read up to its tail asks for little, and one that is behind for more, within
    `most` for all together. A silent segment store is noticed after the time-out for stalls.

    Args:
        transport: finds the segment stores, and connects to them.
        most: bytes that are asked for, or came and were not taken, at most; or 4 KiB a segment.
        clock: monotonic time in seconds.
    """

    def __init__(
        self, transport: Transport, *, most: int, clock: Callable[[], float] = monotonic
    ) -> None:
        if most < 1:
            raise ValueError(f"at least one byte has to be let in, not {most}")
        self._transport = transport
        self._most = min(most, _MOST)
        self._clock = clock
        self._every = min(_KEEP_ALIVE, transport.timeouts.stall / 2)
        self._selector = selectors.DefaultSelector()
        self._links: dict[Endpoint, _Link] = {}
        self._watches: dict[str, _Watch] = {}
        self._given_up: dict[str, _Watch] = {}
        self._queued: list[_Watch] = []
        self._came: list[Arrived | Ended | Broken] = []
        self._size = 0
        self._behind = 0

    def watch(self, name: str, offset: int) -> None:
        """Read a segment from `offset` on; see `Tails.watch`. The next `take` asks for it."""
        if name in self._watches:
            raise ValueError(f"{name} is watched already")
        if offset < 0:
            raise ValueError(f"no segment has a byte {offset}")
        waiting = self._given_up.pop(name, None)
        if waiting is not None and waiting.offset == offset:
            waiting.dropped = False
            self._watches[name] = waiting
            return
        self._watches[name] = watch = _Watch(name, offset)
        self._queued.append(watch)

    def drop(self, name: str) -> None:
        """Stop to read a segment. A read that waits is left to the store, which cannot end it."""
        watch = self._watches.pop(name, None)
        if watch is None:
            return
        self._came = [event for event in self._came if event.segment != name]
        watch.dropped = True
        if watch.link is not None and watch.begun:
            self._given_up[name] = watch

    def take(self, seconds: float) -> list[Arrived | Ended | Broken]:
        """Return all that came. Wait at most `seconds` if nothing is here; see `Tails.take`."""
        until = self._clock() + seconds
        while True:
            self._settle()
            now = self._clock()
            self._receive(0 if self._came else min(until, self._next_check()) - now)
            self._check()
            if self._came or (self._clock() >= until and not self._queued):
                break
        came, self._came = self._came, []
        for event in came:
            if isinstance(event, Arrived) and (watch := self._watches.get(event.segment)):
                self._read(watch)
        return came

    def close(self) -> None:
        """Hang up. Closing twice is fine."""
        for link in self._links.values():
            self._hang_up(link)
        self._links.clear()
        self._watches.clear()
        self._given_up.clear()
        self._queued.clear()
        self._selector.close()

    # Beginning to read

    def _settle(self) -> None:
        """Find the segment stores of new segments, connect, and ask for the segments' state."""
        queued = [watch for watch in self._queued if not watch.dropped]
        self._queued.clear()
        if not queued:
            return
        with deadline.within(self._transport.timeouts.call):
            for peer, watches in self._placed(queued):
                try:
                    link = self._links.get(peer) or self._connect(peer)
                except BackendError as error:
                    for watch in watches:
                        self._break(watch, error)
                    continue
                for watch in watches:
                    watch.link = link
                link.watches.update(watches)
                link.unasked.extend(watches)
                self._ask_states(link)

    def _placed(self, watches: list[_Watch]) -> Iterable[tuple[Endpoint, list[_Watch]]]:
        """Group segments by their segment stores. Break those whose store cannot be found."""
        try:
            owners = self._transport.owners([watch.name for watch in watches])
        except BackendError as error:
            if len(watches) == 1 or isinstance(error, StoreUnavailable):
                for watch in watches:
                    self._break(watch, error)
                return ()
            # One segment may be refused, and the others not.
            half = len(watches) // 2
            return (*self._placed(watches[:half]), *self._placed(watches[half:]))
        placed: defaultdict[Endpoint, list[_Watch]] = defaultdict(list)
        for watch, owner in zip(watches, owners, strict=True):
            placed[owner].append(watch)
        return placed.items()

    def _connect(self, peer: Endpoint) -> _Link:
        connection = self._transport.dial(peer)
        link = self._links[peer] = _Link(connection, peer, self._clock())
        self._selector.register(connection, selectors.EVENT_READ, link)
        return link

    def _ask_states(self, link: _Link) -> None:
        while link.unasked and len(link.asked) < _STATES:
            watch = link.unasked.popleft()
            if watch.link is link and not watch.dropped:
                self._ask_state(watch)

    def _ask_state(self, watch: _Watch) -> None:
        watch.begun = False
        request = self._ask(watch, lambda request, token: GetSegmentInfo(request, watch.name, token))
        if request is not None and watch.link is not None:
            watch.link.asked[request] = self._clock()

    def _read(self, watch: _Watch) -> None:
        """Ask for the next bytes of a segment."""
        self._size -= watch.size
        size = watch.size = self._portion(watch)
        self._size += size
        watch.begun = True
        self._ask(
            watch,
            lambda request, token: ReadSegment(watch.name, watch.offset, size, token, request),
        )

    def _portion(self, watch: _Watch) -> int:
        """Return how many bytes a segment may ask for: half of all is for those that are behind."""
        share = self._most // 2
        size = max(_LEAST, min(_IDLE, share // max(1, len(self._watches))))
        if watch.behind:
            size = max(size, min(BLOCK, share // max(1, self._behind)))
        return min(size, max(_LEAST, self._most - self._size))

    def _ask(self, watch: _Watch, message: Callable[[int, str], Message]) -> int | None:
        """Send a request about a segment. Return its number; None if it was not sent."""
        link = watch.link
        if link is None:
            return None
        try:
            token, _ = self._transport.token(watch.name, TokenAccess.READ)
        except BackendError as error:
            self._break(watch, error)
            return None
        request = link.connection.next_request()
        link.waiting[request] = watch
        try:
            link.connection.send(message(request, token), self._transport.timeouts.call)
        except BackendError as error:
            self._lose(link, error)
            return None
        return request

    # Taking in answers

    def _receive(self, seconds: float) -> None:
        """Take in what segment stores sent. Wait at most so many seconds for the first message."""
        early = {link.peer: link for link in self._links.values() if link.connection.has_early}
        ready = self._selector.select(0 if early else max(0.0, seconds))
        for link in (early | {key.data.peer: key.data for key, _ in ready}).values():
            try:
                # A peer may send what counts for nothing, such as KeepAlives, for ever.
                with deadline.within(self._transport.timeouts.stall):
                    for _ in range(_TURN):
                        message = link.connection.poll()
                        if message is None:
                            break
                        self._answer(link, message)
            except BackendError as error:
                self._lose(link, error)

    def _answer(self, link: _Link, message: Message) -> None:
        """Take in an answer.

        Raises:
            BackendError: the connection cannot be used any more.
        """
        request: int = getattr(message, "request", 0)
        was_state = link.asked.pop(request, None) is not None
        if isinstance(message, TokenRefused) and not was_state:
            raise error_of(message, "a segment")
        watch = link.waiting.pop(request, None)
        if watch is None:
            raise ProtocolError(f"{link.peer} sent an answer without a request")
        self._ask_states(link)
        if watch.dropped:
            self._forget(watch)
        elif isinstance(message, Refusal):
            self._refused(watch, message)
        elif was_state and isinstance(message, StreamSegmentInfo):
            self._begin(watch, message)
        elif not was_state and isinstance(message, SegmentRead):
            self._take_in(watch, message)
        else:
            raise ProtocolError(f"{link.peer} sent {message.TYPE.name} for what it was not asked")

    def _begin(self, watch: _Watch, state: StreamSegmentInfo) -> None:
        """Read a segment whose state was told."""
        name, at = watch.name, watch.offset
        watch.renewed = False
        if not state.exists or state.deleted:
            self._break(watch, NoSuchSegment(f"there is no segment {name}", segment=name))
        elif at < state.start:
            error = SegmentTruncated(
                f"{name} begins at byte {state.start} now, the bytes before are gone",
                segment=name,
                start_offset=state.start,
            )
            self._break(watch, error)
        elif at > state.length:
            self._break(watch, StoreRejected(f"{name} ends at byte {state.length}, before {at}"))
        elif state.sealed and at == state.length:
            self._end(watch)
        else:
            self._set_behind(watch, behind=state.length - at > _LEAST)
            self._read(watch)

    def _take_in(self, watch: _Watch, reply: SegmentRead) -> None:
        """Hand on the bytes of a segment.

        Raises:
            ProtocolError: they are not those that were asked for.
        """
        if reply.segment != watch.name or reply.offset != watch.offset:
            raise ProtocolError(f"the answer to another read of {watch.name} than was asked")
        if len(reply.data) > watch.size:
            raise ProtocolError(f"{len(reply.data)} bytes of {watch.name}, not {watch.size}")
        if reply.data:
            self._came.append(Arrived(watch.name, watch.offset, bytes(reply.data)))
            watch.offset += len(reply.data)
        self._set_behind(watch, behind=not (reply.at_tail or reply.at_end))
        if reply.at_end:
            self._end(watch)
        elif not reply.data:
            self._ask_again(watch)

    def _refused(self, watch: _Watch, refusal: Refusal) -> None:
        if isinstance(refusal, SegmentIsSealed):  # it has come to its end while the read waited
            self._ask_again(watch)
            return
        error = self._explained(watch, error_of(refusal, watch.name), first=not watch.renewed)
        if isinstance(refusal, TokenRefused) and error.retryable:
            watch.renewed = True
            self._ask_state(watch)
        else:
            self._break(watch, error, explained=True)

    def _ask_again(self, watch: _Watch) -> None:
        """Repeat a read that was answered without bytes, unless that happens all the time."""
        before, watch.barren = watch.barren, self._clock()
        if watch.barren - before < _PACE:
            error = StoreUnavailable(f"the store answers reads of {watch.name} without bytes")
            self._break(watch, error)
        else:
            self._read(watch)

    # Silence, and ends

    def _check(self) -> None:
        """Send KeepAlives, and lose the segment stores that do not answer."""
        timeouts, now = self._transport.timeouts, self._clock()
        for link in list(self._links.values()):
            connection, asked = link.connection, next(iter(link.asked.values()), now)
            if link.pinged > connection.heard and now - link.pinged >= timeouts.stall - self._every:
                self._lose(link, StoreTimeout(f"{link.peer} is silent for {timeouts.stall:.3g} s"))
            elif now - asked > timeouts.call:
                self._lose(
                    link, StoreTimeout(f"{link.peer} took longer than {timeouts.call:.3g} s")
                )
            elif now - max(connection.heard, link.pinged) >= self._every:
                link.pinged = now
                try:
                    connection.send(KeepAlive(), timeouts.call)
                except BackendError as error:
                    self._lose(link, error)

    def _next_check(self) -> float:
        """Return when a connection has to be checked next."""
        if self._queued:
            return -inf
        return min((self._due(link) for link in self._links.values()), default=inf)

    def _due(self, link: _Link) -> float:
        asked = next(iter(link.asked.values()), inf) + self._transport.timeouts.call
        if link.pinged > link.connection.heard:
            return min(asked, link.pinged + self._transport.timeouts.stall - self._every)
        return min(asked, link.connection.heard + self._every)

    def _lose(self, link: _Link, error: BackendError) -> None:
        """Give a connection up. Connect anew if it served for a while, else break its segments."""
        if self._links.get(link.peer) is not link:
            return
        del self._links[link.peer]
        self._hang_up(link)
        again = not isinstance(error, StoreTimeout) and self._clock() - link.made >= _CALM
        for watch in link.watches:
            watch.link = None
            if watch.dropped:
                self._forget(watch)
            elif again and self._is_worth_it(watch, error):
                self._release(watch)
                self._queued.append(watch)
            else:
                self._break(watch, error)
        link.watches.clear()
        link.waiting.clear()

    def _is_worth_it(self, watch: _Watch, error: BackendError) -> bool:
        """Tell whether a new connection may help. A lost connection says nothing of owners."""
        if not error.retryable:
            return False
        return isinstance(error, StoreUnavailable) or self._explained(watch, error).retryable

    def _hang_up(self, link: _Link) -> None:
        self._selector.unregister(link.connection)
        link.connection.close()

    def _end(self, watch: _Watch) -> None:
        self._came.append(Ended(watch.name, watch.offset))
        self._forget(watch)

    def _break(self, watch: _Watch, error: BackendError, *, explained: bool = False) -> None:
        if not watch.dropped:
            why = error if explained else self._explained(watch, error)
            self._came.append(Broken(watch.name, why))
        self._forget(watch)

    def _explained(
        self, watch: _Watch, error: BackendError, *, first: bool = True
    ) -> BackendError:
        return self._transport.recover(watch.name, TokenAccess.READ, error, first=first)

    def _forget(self, watch: _Watch) -> None:
        """Watch a segment no more."""
        self._release(watch)
        if watch.link is not None:
            watch.link.watches.discard(watch)
            watch.link = None
        for watches in (self._watches, self._given_up):
            if watches.get(watch.name) is watch:
                del watches[watch.name]

    def _release(self, watch: _Watch) -> None:
        self._size -= watch.size
        watch.size = 0
        self._set_behind(watch, behind=False)

    def _set_behind(self, watch: _Watch, *, behind: bool) -> None:
        self._behind += behind - watch.behind
        watch.behind = behind
