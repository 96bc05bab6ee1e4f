"""Follow live segments: one connection a segment store, and one read on its way a segment.

What a segment store (0.13.0) does, seen on a real one and read in its `PravegaRequestProcessor`:

- It answers a read at the tail once bytes come, without any limit of time. A read that is given up
  stays in its memory, so a segment is never asked for twice on one connection.
- After some idle minutes it puts a segment out of its memory, and answers the waiting read without
  bytes. The same read may then be sent again.
- It answers a read that waits while the segment is sealed with SegmentIsSealed, and the same read
  then with the end of the segment.
- It closes the connection, with all other reads on it, if one read begins behind the end of its
  segment, or its segment is being merged into another one. So it is asked for the state of a
  segment first, and a connection that served for a while is made anew before its segments break.
- If it refuses the token of a read, it names the read's offset instead of its number. It then is
  unknown which segment is meant. For the state of a segment it names the number.
- It sends each KeepAlive back.
"""

from __future__ import annotations

from collections import defaultdict
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
from sluice.stores.pravega.names import TokenAccess, owner_of
from sluice.stores.pravega.segments.portions import LEAST, Portions
from sluice.stores.pravega.segments.tail_links import TailLink, TailLinks, TailWatch
from sluice.stores.pravega.wire.messages import (
    GetSegmentInfo,
    ReadSegment,
    SegmentRead,
    StreamSegmentInfo,
)
from sluice.stores.pravega.wire.refusals import Refusal, SegmentIsSealed, TokenRefused, error_of
from sluice.stores.tails import Arrived, Broken, Ended

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

    from sluice.stores.pravega.names import Endpoint
    from sluice.stores.pravega.segments.transport import Transport
    from sluice.stores.pravega.wire.wire import Message

_PACE: Final = 1.0
"""Seconds in which a segment store may answer one read of a segment without bytes."""

_TOGETHER: Final = 0.001
"""Seconds in which segments that are asked together may answer before any is taken. Selectors wait
for whole milliseconds, so it may be one more."""

_TURN: Final = 256
"""Messages that are taken in from one segment store before the next one has its turn."""

_STATES: Final = 256
"""Questions for the state of a segment that are on their way at a time to one segment store."""


class SegmentTails:
    """`sluice.stores.tails.Tails` for Pravega.

    Args:
        transport: finds the segment stores, and connects to them. A silent segment store is noticed
            after its time-out for stalls.
        most: bytes that are asked for, or came and were not taken, at most; or 4 KiB a segment.
    """

    def __init__(self, transport: Transport, *, most: int) -> None:
        self._transport = transport
        self._portions = Portions(most)
        self._links = TailLinks(transport)
        self._watches: dict[str, TailWatch] = {}
        self._queued: list[TailWatch] = []
        self._came: list[Arrived | Ended | Broken] = []
        self._taken: list[TailWatch] = []

    def watch(self, name: str, offset: int) -> None:
        """Read a segment from `offset` on; see `Tails.watch`. The next `take` asks for it."""
        if name in self._watches:
            raise ValueError(f"{name} is watched already")
        if offset < 0:
            raise ValueError(f"a segment has no byte {offset}")
        owner_of(name)  # ValueError: it is no name of a segment
        self._watches[name] = watch = TailWatch(name, offset)
        self._queued.append(watch)

    def pause(self, name: str) -> None:
        """Ask for no more of a segment; see `Tails.pause`."""
        if watch := self._watches.get(name):
            watch.paused = True

    def resume(self, name: str) -> None:
        """Read a segment on that was paused; see `Tails.resume`."""
        if watch := self._watches.get(name):
            watch.paused = False
            if watch.owed:
                self._read(watch)
                self._send()

    def take(self, seconds: float) -> list[Arrived | Ended | Broken]:
        """Return all that came. Wait at most `seconds` if nothing is here; see `Tails.take`."""
        now = monotonic()
        until, together = now + seconds, now + min(seconds, _TOGETHER)
        asked = self._ask_taken()
        while True:
            self._settle()
            self._send()
            end = -inf if self._have(asked) else together if self._came else until
            self._receive(min(end, self._links.due()) - monotonic())
            self._check()
            if self._came:
                # What came is handed on before a lost connection is made anew, which asks again.
                if self._queued or self._have(asked) or monotonic() >= together:
                    break
            elif monotonic() >= until and not self._queued:
                break
        came, self._came = self._came, []
        for event in came:
            if isinstance(event, Arrived) and (watch := self._watches.get(event.segment)):
                if watch.portion.behind:
                    self._read(watch)
                else:  # what comes until the next call comes together then
                    self._taken.append(watch)
        self._send()
        return came

    def close(self) -> None:
        """Hang up. Closing twice is fine."""
        self._links.close()
        self._watches.clear()
        self._queued.clear()

    # Asking

    def _have(self, asked: set[str]) -> bool:
        """Tell whether something came, and that of all these segments."""
        return bool(self._came) and asked.issubset(event.segment for event in self._came)

    def _ask_taken(self) -> set[str]:
        """Ask for more of the segments whose bytes were taken. Return their names."""
        taken, self._taken = self._taken, []
        watches = [watch for watch in taken if self._watches.get(watch.name) is watch]
        for watch in watches:
            self._read(watch)
        return {watch.name for watch in watches if not watch.paused}

    def _settle(self) -> None:
        """Find the segment stores of new segments, connect, and ask for the segments' state."""
        queued, self._queued = self._queued, []
        if not queued:
            return
        with deadline.within(self._transport.timeouts.call):
            for peer, watches in self._placed(queued):
                try:
                    link = self._links.to(peer)
                except BackendError as error:
                    for watch in watches:
                        self._break(watch, self._explained(watch, error))
                    continue
                for watch in watches:
                    watch.link = link
                link.watches.update(watches)
                link.unasked.extend(watches)
                self._ask_states(link)
                self._send_to(link)

    def _placed(self, watches: list[TailWatch]) -> Iterable[tuple[Endpoint, list[TailWatch]]]:
        """Group segments by their segment stores. Break those whose store cannot be found."""
        try:
            owners = self._transport.owners([watch.name for watch in watches])
        except BackendError as error:
            if len(watches) == 1 or isinstance(error, StoreUnavailable):
                for watch in watches:
                    self._break(watch, error)
                return ()
            half = len(watches) // 2  # one segment may be refused, and the others not
            return (*self._placed(watches[:half]), *self._placed(watches[half:]))
        placed: defaultdict[Endpoint, list[TailWatch]] = defaultdict(list)
        for watch, owner in zip(watches, owners, strict=True):
            placed[owner].append(watch)
        return placed.items()

    def _ask_states(self, link: TailLink) -> None:
        while link.unasked and len(link.asked) < _STATES:
            self._ask_state(link.unasked.popleft())

    def _ask_state(self, watch: TailWatch) -> None:
        watch.reading = False
        self._ask(watch, lambda request, token: GetSegmentInfo(request, watch.name, token))

    def _read(self, watch: TailWatch) -> None:
        """Ask for the next bytes of a segment, unless it is paused."""
        watch.owed = watch.paused
        if watch.paused:
            return
        watch.reading = True
        size = self._portions.take(watch.portion, len(self._watches))
        self._ask(
            watch,
            lambda request, token: ReadSegment(watch.name, watch.offset, size, token, request),
        )

    def _ask(self, watch: TailWatch, message: Callable[[int, str], Message]) -> None:
        """Prepare a request about a segment, to be sent with others."""
        link = watch.link
        if link is None:
            return
        try:
            token, _ = self._transport.token(watch.name, TokenAccess.READ)
        except BackendError as error:
            self._break(watch, error)
            return
        request = link.connection.next_request()
        link.waiting[request] = watch
        if not watch.reading:
            link.asked[request] = monotonic()
        link.unsent.append(message(request, token))

    def _send(self) -> None:
        """Send the requests that were prepared."""
        for link in self._links:
            self._send_to(link)

    def _send_to(self, link: TailLink) -> None:
        unsent, link.unsent = link.unsent, []
        if not unsent:
            return
        try:
            link.connection.send_all(unsent, self._transport.timeouts.call)
        except BackendError as error:
            self._lose(link, error)

    # Taking in answers

    def _receive(self, seconds: float) -> None:
        """Take in what segment stores sent. Wait at most so many seconds for the first message."""
        for link in self._links.ready(seconds):
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

    def _answer(self, link: TailLink, message: Message) -> None:
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
        if watch.late:
            return
        if isinstance(message, Refusal):
            self._refused(watch, message)
        elif was_state and isinstance(message, StreamSegmentInfo):
            self._begin(watch, message)
        elif not was_state and isinstance(message, SegmentRead):
            self._take_in(watch, message)
        else:
            raise ProtocolError(f"{link.peer} sent {message.TYPE.name}, which nothing asked for")
        self._ask_states(link)

    def _begin(self, watch: TailWatch, state: StreamSegmentInfo) -> None:
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
            self._portions.set_behind(watch.portion, behind=state.length - at > LEAST)
            self._read(watch)

    def _take_in(self, watch: TailWatch, reply: SegmentRead) -> None:
        """Hand on the bytes of a segment.

        Raises:
            ProtocolError: they are not those that were asked for.
        """
        if reply.segment != watch.name or reply.offset != watch.offset:
            raise ProtocolError(f"the store answered another read of {watch.name} than was asked")
        if len(reply.data) > watch.portion.size:
            raise ProtocolError(f"the store sent more bytes of {watch.name} than were asked for")
        if reply.data:
            self._came.append(Arrived(watch.name, watch.offset, bytes(reply.data)))
            watch.offset += len(reply.data)
        self._portions.set_behind(watch.portion, behind=not (reply.at_tail or reply.at_end))
        if reply.at_end:
            self._end(watch)
        elif not reply.data:
            self._ask_again(watch)

    def _refused(self, watch: TailWatch, refusal: Refusal) -> None:
        if isinstance(refusal, SegmentIsSealed):  # while the read waited
            self._ask_again(watch)
            return
        error = self._explained(watch, error_of(refusal, watch.name))
        if isinstance(refusal, TokenRefused) and error.retryable:
            watch.renewed = True
            self._ask_state(watch)
        else:
            self._break(watch, error)

    def _ask_again(self, watch: TailWatch) -> None:
        """Repeat a read that was answered without bytes, unless that happens all the time."""
        before, watch.barren = watch.barren, monotonic()
        if watch.barren - before < _PACE:
            error = StoreUnavailable(f"the store answers reads of {watch.name} without bytes")
            self._break(watch, error)
        else:
            self._read(watch)

    # Silence, and ends

    def _check(self) -> None:
        """Send KeepAlives, and lose segment stores that do not answer."""
        patience = self._transport.timeouts.call
        for link in self._links:
            try:
                self._links.check(link)
            except BackendError as error:
                self._lose(link, error)
            while monotonic() - next(iter(link.asked.values()), inf) > patience:
                request = next(iter(link.asked))
                del link.asked[request]
                watch = link.waiting[request]
                self._break(watch, StoreTimeout(f"{link.peer} took longer than {patience:.3g} s"))
                watch.late = True
            self._ask_states(link)

    def _lose(self, link: TailLink, error: BackendError) -> None:
        """Give a connection up. Connect anew if it served for a while, else break its segments."""
        if not self._links.remove(link):
            return
        again = link.is_calm and error.retryable and not isinstance(error, StoreTimeout)
        for watch in link.watches:
            watch.link = None
            watch.owed = False
            why = error
            if not (again and isinstance(error, StoreUnavailable)):
                why = self._explained(watch, error)  # a lost connection says nothing of owners
            if again and why.retryable:
                self._portions.give_back(watch.portion)
                self._queued.append(watch)
            else:
                self._break(watch, why)
        for each in (link.watches, link.waiting, link.asked, link.unasked, link.unsent):
            each.clear()

    def _explained(self, watch: TailWatch, error: BackendError) -> BackendError:
        return self._transport.recover(watch.name, TokenAccess.READ, error, first=not watch.renewed)

    def _end(self, watch: TailWatch) -> None:
        self._came.append(Ended(watch.name, watch.offset))
        self._forget(watch)

    def _break(self, watch: TailWatch, error: BackendError) -> None:
        self._came.append(Broken(watch.name, error))
        self._forget(watch)

    def _forget(self, watch: TailWatch) -> None:
        """Watch a segment no more."""
        self._portions.give_back(watch.portion)
        if watch.link is not None:
            watch.link.watches.discard(watch)
            watch.link = None
        del self._watches[watch.name]
