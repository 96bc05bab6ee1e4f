"""The connections over which segments are followed, and signs of life of their peers."""

from __future__ import annotations

import selectors
from collections import deque
from dataclasses import dataclass, field
from math import inf
from time import monotonic
from typing import TYPE_CHECKING, Final

from sluice.errors import StoreTimeout
from sluice.stores.pravega.segments.portions import Portion
from sluice.stores.pravega.wire.messages import KeepAlive

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from sluice.stores.pravega.names import Endpoint
    from sluice.stores.pravega.segments.transport import Transport
    from sluice.stores.pravega.wire.connection import Connection
    from sluice.stores.pravega.wire.wire import Message

_KEEP_ALIVE: Final = 10.0
"""Seconds of silence after which a segment store has to send a KeepAlive back."""

_CALM: Final = 10.0
"""Seconds for which a connection has to serve to be made anew when it breaks."""


@dataclass(slots=True, eq=False)
class TailWatch:
    """A segment that is followed.

    Attributes:
        name: the segment's full name.
        offset: the first byte that did not come yet.
        link: the connection to its segment store; None while the store has to be found.
        portion: the bytes that it asks for.
        reading: whether it asks for bytes, and not for the segment's state.
        barren: the time of the last answer without bytes.
        renewed: whether a token was refused, and another one is tried.
        late: whether its state was not told in time. The answer may still come.
        paused: whether it is asked for no more bytes.
        owed: whether it would ask for bytes now, but for the pause.
    """

    name: str
    offset: int
    link: TailLink | None = None
    portion: Portion = field(default_factory=Portion)
    reading: bool = False
    barren: float = -inf
    renewed: bool = False
    late: bool = False
    paused: bool = False
    owed: bool = False


@dataclass(slots=True, eq=False)
class TailLink:
    """A connection to a segment store.

    Attributes:
        connection: the connection.
        peer: the segment store.
        made: when it was made; all times are monotonic and in seconds.
        pinged: when the last KeepAlive was sent.
        watches: the segments that are read over it.
        waiting: the segments, and late ones, by the number of the request that is on its way, or
            is the next to be sent.
        asked: when the state of a segment was asked for, by the request's number, oldest first.
        unasked: segments whose state has to be asked for.
        unsent: requests that are to be sent together.
    """

    connection: Connection
    peer: Endpoint
    made: float
    pinged: float = -inf
    watches: set[TailWatch] = field(default_factory=set)
    waiting: dict[int, TailWatch] = field(default_factory=dict)
    asked: dict[int, float] = field(default_factory=dict)
    unasked: deque[TailWatch] = field(default_factory=deque)
    unsent: list[Message] = field(default_factory=list)

    @property
    def is_calm(self) -> bool:
        """Whether it has served for a while."""
        return monotonic() - self.made >= _CALM

    @property
    def is_unanswered(self) -> bool:
        """Whether the peer has sent nothing since the last KeepAlive."""
        return self.pinged > self.connection.heard


class TailLinks:
    """The connections to segment stores, one for each.

    Args:
        transport: connects to segment stores. Its time-out for stalls bounds their silence.
    """

    def __init__(self, transport: Transport) -> None:
        self._transport = transport
        self._stall = transport.timeouts.stall
        self._every = min(_KEEP_ALIVE, self._stall / 2)
        self._selector = selectors.DefaultSelector()
        self._links: dict[Endpoint, TailLink] = {}

    def __iter__(self) -> Iterator[TailLink]:
        """Iterate over the connections, which may be removed meanwhile."""
        return iter(list(self._links.values()))

    def to(self, peer: Endpoint) -> TailLink:
        """Return the connection to a segment store, and connect to it if there is none."""
        link = self._links.get(peer)
        if link is None:
            connection = self._transport.dial(peer)
            link = self._links[peer] = TailLink(connection, peer, monotonic())
            self._selector.register(connection, selectors.EVENT_READ, link)
        return link

    def ready(self, seconds: float) -> Iterable[TailLink]:
        """Return the connections on which messages are. Wait for one, at most so many seconds."""
        early = {link.peer: link for link in self._links.values() if link.connection.has_early}
        ready = self._selector.select(0 if early else max(0.0, seconds))
        return (early | {key.data.peer: key.data for key, _ in ready}).values()

    def check(self, link: TailLink) -> None:
        """Send a KeepAlive if it is time for one.

        Raises:
            BackendError: the connection broke, or the peer does not answer.
        """
        now = monotonic()
        if now < self._due(link):
            return
        if link.is_unanswered and now - link.pinged >= self._stall - self._every:
            raise StoreTimeout(f"{link.peer} has said nothing for {self._stall:.3g} s")
        link.pinged = now
        link.connection.send(KeepAlive(), self._transport.timeouts.call)

    def due(self) -> float:
        """Return when the first connection is to be checked, or a state was waited for too long."""
        patience = self._transport.timeouts.call
        states = (next(iter(link.asked.values()), inf) + patience for link in self)
        return min(*map(self._due, self), *states, inf, inf)

    def _due(self, link: TailLink) -> float:
        if link.is_unanswered:
            return link.pinged + self._stall - self._every
        return max(link.connection.heard, link.pinged) + self._every

    def remove(self, link: TailLink) -> bool:
        """Hang up; False if that was done before."""
        if self._links.get(link.peer) is not link:
            return False
        del self._links[link.peer]
        self._selector.unregister(link.connection)
        link.connection.close()
        return True

    def close(self) -> None:
        """Hang up everywhere."""
        for link in self:
            self.remove(link)
        self._selector.close()
