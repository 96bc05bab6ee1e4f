"""Send requests to the segment stores that own the segments.

The transport finds the owners, adds tokens, pipelines the requests, and repeats those that failed
where that is safe.
"""

from __future__ import annotations

import time
from collections import defaultdict
from contextlib import contextmanager
from typing import TYPE_CHECKING, Final, NamedTuple

from sluice.errors import (
    AuthenticationFailed,
    BackendError,
    PermissionDenied,
    ProtocolError,
    StoreMoving,
    StoreTimeout,
    StoreUnavailable,
    TokenExpired,
)
from sluice.stores.pravega.wire.refusals import Refusal, closes, error_of

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

    from sluice.config import StoreTimeouts
    from sluice.stores.pravega.controller.directory import Directory
    from sluice.stores.pravega.names import Endpoint, TokenAccess
    from sluice.stores.pravega.wire.connection import Connection
    from sluice.stores.pravega.wire.pool import ConnectionPool
    from sluice.stores.pravega.wire.wire import Message

_OUTSTANDING: Final = 256
"""Requests on their way at a time on one connection."""

PAUSES: Final = (0.1, 0.5)
"""Seconds before each further try. The engine above decides whether to try for longer."""


class Ask(NamedTuple):
    """A request about a segment.

    Attributes:
        segment: the segment's full name.
        access: the access that its token must grant.
        message: makes the message to send from the request's number and the token.
    """

    segment: str
    access: TokenAccess
    message: Callable[[int, str], Message]


class Response(NamedTuple):
    """The answer to a request.

    Attributes:
        reply: the store's message, or the error that it means.
        repeated: whether an earlier try broke off, which the store may have carried out.
    """

    reply: Message | BackendError
    repeated: bool


class Transport:
    """Sends requests and opens connections to the segment stores.

    Args:
        directory: finds owners of segments and gets tokens.
        pool: lends connections.
        timeouts: `call` bounds the wait for each answer.
    """

    def __init__(self, directory: Directory, pool: ConnectionPool, timeouts: StoreTimeouts) -> None:
        self.timeouts = timeouts
        self._directory = directory
        self._pool = pool

    def ask(self, asks: Sequence[Ask]) -> list[Response]:
        """Send all requests and wait for all answers. Refusals are answers too.

        A request is repeated if its connection broke, its segment has moved or its token was
        refused. So the store must be able to carry it out twice. It is not repeated after a
        timeout, since the caller does not want to wait for longer.

        Returns:
            An answer for each request, in the same order.

        Raises:
            ProtocolError: a server does not speak the protocol.
            StoreUnavailable, AuthenticationFailed, PermissionDenied: a call to the controller
                failed so.
        """
        answers: list[Response | None] = [None] * len(asks)
        pending, repeated, renewed = list(range(len(asks))), set[int](), set[int]()
        for pause in (*PAUSES, None):
            failed = []
            for place, reply in self._round(asks, pending):
                answers[place] = Response(reply, place in repeated)
                if not isinstance(reply, StoreUnavailable | StoreMoving | TokenExpired):
                    continue
                segment, access, _ = asks[place]
                again = self.recover(segment, access, reply, first=place not in renewed)
                if isinstance(reply, TokenExpired):
                    renewed.add(place)
                elif isinstance(reply, StoreUnavailable):
                    repeated.add(place)
                answers[place] = Response(again, place in repeated)
                if not isinstance(again, StoreTimeout) and again.retryable:
                    failed.append(place)
            pending = failed
            if not pending or pause is None:
                break
            time.sleep(pause)
        return [answer for answer in answers if answer is not None]

    def ask_one(self, ask: Ask) -> Response:
        """Send one request and wait for its answer; see `ask`."""
        return self.ask([ask])[0]

    @contextmanager
    def session(self, segment: str) -> Iterator[Connection]:
        """Lend the block a kept connection to a segment's owner, which no other caller uses."""
        (owner,) = self._directory.owners([segment])
        with self._pool.lease(owner) as connection:
            yield connection

    def token(self, segment: str, access: TokenAccess) -> tuple[str, float]:
        """Return a token, and for how many seconds from now it may be used."""
        token = self._directory.token(segment, access)
        return token.text, token.until - time.time()

    def owners(self, segments: Sequence[str]) -> list[Endpoint]:
        """Return the segments' owners, in the same order."""
        return self._directory.owners(segments)

    def connect(self, segment: str) -> Connection:
        """Open a new connection to a segment's owner. The caller closes it."""
        (owner,) = self._directory.owners([segment])
        return self.dial(owner)

    def dial(self, owner: Endpoint) -> Connection:
        """Open a new connection to a segment store. The caller closes it."""
        with self._directory.circuit.asked():
            return self._pool.open(owner)

    def recover(
        self, segment: str, access: TokenAccess, error: BackendError, *, first: bool
    ) -> BackendError:
        """Forget the cached owner or token that an error shows to be stale, for the next try.

        Args:
            segment: the full name of the segment that the request was about.
            access: the access that the request needed.
            error: the error of the request.
            first: whether no token of this request was refused before.

        Returns:
            The error to raise if there is no other try. A second refused token, or one without
            credentials, is a final refusal: PermissionDenied or AuthenticationFailed.
        """
        if isinstance(error, TokenExpired):
            if not self._directory.authenticates:
                return AuthenticationFailed(
                    f"the store asks for credentials to access {segment}",
                    remedy="Name a Secret with username and password in the StreamStore.",
                )
            if not first:
                return PermissionDenied(
                    f"the store accepts no {access} token of this user for {segment}"
                )
            self._directory.forget_token(segment, access)
        elif isinstance(error, StoreMoving):
            self._directory.forget_owner(segment)
        elif isinstance(error, StoreUnavailable):
            self._directory.forget_server(segment)
            # When a token has expired by the store's clock, the store may only hang up.
            self._directory.forget_token(segment, access)
        return error

    def _round(
        self, asks: Sequence[Ask], places: Sequence[int]
    ) -> Iterator[tuple[int, Message | BackendError]]:
        """Send the requests at these places once, grouped by the segments' owners."""
        owned: defaultdict[Endpoint, list[int]] = defaultdict(list)
        owners = self._directory.owners(asks[place].segment for place in places)
        for place, owner in zip(places, owners, strict=True):
            owned[owner].append(place)
        for owner, own in owned.items():
            replies: dict[int, Message | BackendError] = {}
            try:
                with self._directory.circuit.asked(), self._pool.lease(owner) as connection:
                    self._exchange(connection, asks, own, replies)
            except StoreUnavailable as error:
                replies = dict.fromkeys(own, error) | replies
            yield from replies.items()

    def _exchange(
        self,
        connection: Connection,
        asks: Sequence[Ask],
        places: Sequence[int],
        replies: dict[int, Message | BackendError],
    ) -> None:
        """Send requests over one connection, and put the replies into `replies` by place."""
        waiting: dict[int, int] = {}
        unsent = iter(places)
        timeout = self.timeouts.call
        while len(replies) < len(places):
            while len(waiting) < _OUTSTANDING and (place := next(unsent, None)) is not None:
                request = connection.next_request()
                ask = asks[place]
                token = self._directory.token(ask.segment, ask.access).text
                connection.send(ask.message(request, token), timeout)
                waiting[request] = place
            reply = connection.receive(timeout)
            place = waiting.pop(getattr(reply, "request", 0), None)
            if place is None:
                raise ProtocolError(f"{connection.peer} sent an answer without a request")
            if isinstance(reply, Refusal):
                replies[place] = error_of(reply, asks[place].segment)
                if closes(reply):
                    connection.close()
                    if len(replies) < len(places):
                        raise StoreUnavailable(f"{connection.peer} ended the connection")
            else:
                replies[place] = reply
