"""The controller client for blocking callers, with a cache of segments' owners and of tokens.

The gRPC client is asynchronous. It runs in an event loop of its own, in a daemon thread that starts
with the first call. gRPC is imported then too, so a process that makes no call, or forks before its
first one, does without.
"""

from __future__ import annotations

import asyncio
import base64
import binascii
import json
import os
import threading
import weakref
from concurrent.futures import CancelledError, wait
from time import time
from typing import TYPE_CHECKING, Final, NamedTuple, TypeVar

from sluice.errors import StoreTimeout, StoreUnavailable
from sluice.stores import deadline
from sluice.stores.pravega.controller.circuit import Circuit
from sluice.stores.pravega.names import owner_of

if TYPE_CHECKING:
    from collections.abc import Callable, Coroutine, Iterable
    from typing import Any

    from sluice.config import StoreTimeouts
    from sluice.core.values.model import StreamName
    from sluice.stores.base import Told
    from sluice.stores.credentials import Credentials
    from sluice.stores.pravega.controller.controller import ControllerClient
    from sluice.stores.pravega.names import Endpoint, SegmentOwner, TokenAccess
    from sluice.stores.pravega.sockets.tls import TLS

_T = TypeVar("_T")

_MARGIN: Final = 60.0
"""A token is no longer used from so many seconds before its expiry; see `_SHARE`."""

_SHARE: Final = 4
"""These seconds are at most this fraction (one quarter) of the token's remaining life."""

_UNKNOWN_LIFE: Final = 300.0
"""Seconds for which a token without a readable expiry is used; the store's default is 600."""

_WATCH: Final = 1.0
"""Seconds between two checks whether another thread closed the loop in which a call runs."""

_LOOKUPS: Final = 64
"""Owners of segments that are asked for at a time."""


class Token(NamedTuple):
    """A delegation token. From `until`, in seconds since 1970, it is no longer used."""

    text: str
    until: float


class _Client(NamedTuple):
    """A running event loop and the controller client in it."""

    loop: asyncio.AbstractEventLoop
    thread: threading.Thread
    controller: ControllerClient


class Directory:
    """Finds the segment store that owns a segment, gets tokens, and runs other controller calls.

    Args:
        endpoint: the address at which the controller listens.
        credentials: user and password; None for a store without authentication.
        timeouts: `call` bounds each call.
        tls: the TLS to the controller; None for none.
        told: callback `(method, seconds)`, called on the gRPC thread after each call.

    Attributes:
        authenticates: whether there are credentials.
        circuit: the circuit breaker for all calls to this store.
    """

    def __init__(
        self,
        endpoint: Endpoint,
        *,
        credentials: Credentials | None,
        timeouts: StoreTimeouts,
        tls: TLS | None = None,
        told: Told | None = None,
    ) -> None:
        self.authenticates = credentials is not None
        self._endpoint = endpoint
        self._credentials = credentials
        self._timeouts = timeouts
        self._tls = tls
        self._told = told
        self.circuit = Circuit(timeouts.rest, patience=timeouts.connect / 2)
        self._begin()

    def _begin(self) -> None:
        self._process = os.getpid()
        self._lock = threading.Lock()
        self._client: _Client | None = None
        self._stop: weakref.finalize[Any, Any] | None = None
        self._owners: dict[SegmentOwner, Endpoint] = {}
        self._tokens: dict[tuple[StreamName, TokenAccess], Token] = {}

    def run(self, call: Callable[[ControllerClient], Coroutine[Any, Any, _T]]) -> _T:
        """Run a call of the controller and wait for its outcome.

        Raises:
            StoreUnavailable: another thread closed the directory meanwhile.
            StoreTimeout: the caller's deadline is over, and the call is cancelled; or the store is
                silent, and is not asked now.
        """
        with self.circuit.asked():
            return self._run(call)

    def _run(self, call: Callable[[ControllerClient], Coroutine[Any, Any, _T]]) -> _T:
        deadline.left()
        client = self._connect()
        closed = StoreUnavailable(f"the connection to {self._endpoint} was closed")
        coming = call(client.controller)
        try:
            outcome = asyncio.run_coroutine_threadsafe(coming, client.loop)
        except RuntimeError:  # the loop is closed
            coming.close()
            raise closed from None
        try:
            while not wait([outcome], timeout=deadline.left(_WATCH)).done:
                if client.loop.is_closed():  # and will not come to this call any more
                    coming.close()
                    raise closed
        except StoreTimeout:
            outcome.cancel()
            raise
        try:
            return outcome.result()
        except CancelledError:
            raise closed from None

    def owners(self, names: Iterable[str]) -> list[Endpoint]:
        """Return the server of each segment, given by full names.

        Servers that are not in the cache are asked for in one go.
        """
        wanted = [owner_of(name) for name in names]
        # Copy these entries: another thread, or a fork, may empty the cache meanwhile.
        known = {owner: self._owners.get(owner) for owner in wanted}
        unknown = [owner for owner, endpoint in known.items() if endpoint is None]
        if unknown:

            async def ask(controller: ControllerClient) -> list[Endpoint]:
                gate = asyncio.Semaphore(_LOOKUPS)

                async def one(owner: SegmentOwner) -> Endpoint:
                    async with gate:
                        return await controller.owner(owner.stream, owner.segment)

                return await asyncio.gather(*map(one, unknown))

            found = dict(zip(unknown, self.run(ask), strict=True))
            self._owners.update(found)
            known |= found
        return [endpoint for owner in wanted if (endpoint := known[owner]) is not None]

    def forget_owner(self, name: str) -> None:
        """Forget the server of this segment, which no longer owns it."""
        self._owners.pop(owner_of(name), None)

    def forget_server(self, name: str) -> None:
        """Forget the server of this segment as that of every segment: it did not answer.

        Others will own its segments if it has died. To try it for each of them may take the timeout
        of a connection each time.
        """
        server = self._owners.pop(owner_of(name), None)
        for owner, endpoint in self._owners.copy().items():
            if endpoint == server:
                self._owners.pop(owner, None)

    def token(self, name: str, access: TokenAccess) -> Token:
        """Return a token for the segment of this full name; an empty one without credentials.

        Raises:
            PermissionDenied: the user does not have this access.
        """
        if not self.authenticates:
            return Token("", float("inf"))
        key = (owner_of(name).stream, access)
        token = self._tokens.get(key)
        if token is None or time() >= token.until:
            text = self.run(lambda controller: controller.token(*key))
            now = time()
            expiry = expiry_of(text, now)
            margin = min(_MARGIN, (expiry - now) / _SHARE)
            token = self._tokens[key] = Token(text, expiry - margin)
        return token

    def forget_token(self, name: str, access: TokenAccess) -> None:
        """Forget the segment's token: the store did not accept it. The next call gets another."""
        self._tokens.pop((owner_of(name).stream, access), None)

    def close(self) -> None:
        """End the event loop and forget everything; the next call begins anew."""
        if os.getpid() == self._process and self._stop is not None:
            self._stop()
        self._begin()

    def _connect(self) -> _Client:
        if os.getpid() != self._process:
            self._begin()  # fork() does not copy the parent's thread, and may copy a held lock
        with self._lock:
            if self._client is None:
                self._client = self._start()
                # Also called at the interpreter's end, while threads can still be joined.
                self._stop = weakref.finalize(self, _stop, self._client, os.getpid())
            return self._client

    def _start(self) -> _Client:
        # Imported here so that gRPC starts only in processes that call the controller.
        from sluice.stores.pravega.controller.controller import ControllerClient  # noqa: PLC0415

        loop = asyncio.new_event_loop()
        thread = threading.Thread(target=loop.run_forever, name="pravega-controller", daemon=True)
        thread.start()

        async def make() -> ControllerClient:
            return ControllerClient(
                self._endpoint,
                credentials=self._credentials,
                timeout=self._timeouts.call,
                tls=self._tls,
                told=self._told,
            )

        return _Client(loop, thread, asyncio.run_coroutine_threadsafe(make(), loop).result())


def _stop(client: _Client, process: int) -> None:
    if os.getpid() != process:
        return
    asyncio.run_coroutine_threadsafe(_end(client.controller), client.loop).result()
    client.loop.call_soon_threadsafe(client.loop.stop)
    client.thread.join()
    client.loop.close()


async def _end(controller: ControllerClient) -> None:
    """Cancel all calls under way, and close the client."""
    calls = asyncio.all_tasks() - {asyncio.current_task()}
    for call in calls:
        call.cancel()
    await asyncio.gather(*calls, return_exceptions=True)
    await controller.close()


def expiry_of(token: str, now: float) -> float:
    """Return when a token (a JWT) expires, in seconds since 1970; a guess if it does not say."""
    try:
        claims = token.split(".")[1]
        padded = claims + "=" * (-len(claims) % 4)
        return float(json.loads(base64.urlsafe_b64decode(padded))["exp"])
    except (IndexError, KeyError, TypeError, ValueError, binascii.Error):
        return now + _UNKNOWN_LIFE
