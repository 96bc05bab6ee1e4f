"""The controller for callers that block, and what it said that is worth remembering.

The gRPC client is asynchronous and lives in an event loop of its own, in a daemon thread that
starts with the first call. gRPC is imported then too: a process that only moves bytes, or forks
before it calls, does without.
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

_T = TypeVar("_T")

_MARGIN: Final = 60.0
"""Seconds before its expiry at which a token is no longer used; less if it has a short life."""

_SHARE: Final = 4
"""No more than so much of its life."""

_UNKNOWN_LIFE: Final = 300.0
"""Seconds for which a token without a readable expiry is used; the store's default is 600."""

_WATCH: Final = 1.0
"""Seconds between two looks whether somebody closed the loop that a call waits for."""

_LOOKUPS: Final = 64
"""Owners asked for at a time."""


class Token(NamedTuple):
    """A delegation token and the time, in seconds since 1970, from which it is not used."""

    text: str
    until: float


class _Client(NamedTuple):
    """A running event loop and the controller client in it."""

    loop: asyncio.AbstractEventLoop
    thread: threading.Thread
    controller: ControllerClient


class Directory:
    """Who owns which segment, and tokens to show there; and any other call of the controller.

    Args:
        endpoint: where the controller listens.
        credentials: as whom; None where the store asks nobody.
        timeouts: `call` bounds each call.
        told: of each call.

    Attributes:
        authenticates: whether there are credentials.
        circuit: whether the store is silent.
    """

    def __init__(
        self,
        endpoint: Endpoint,
        *,
        credentials: Credentials | None,
        timeouts: StoreTimeouts,
        told: Told | None = None,
    ) -> None:
        self.authenticates = credentials is not None
        self._endpoint = endpoint
        self._credentials = credentials
        self._timeouts = timeouts
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
            StoreTimeout: the time of whoever asks is over, and the call is called off; or the store
                is silent, and left alone.
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
        """The server of each segment, by full names; what is not known yet is asked in one go."""
        wanted = [owner_of(name) for name in names]
        # A copy of what concerns us: another thread, or a fork, may empty the cache meanwhile.
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
        """Ask again for the server of this segment: it did not answer, or has it no more."""
        self._owners.pop(owner_of(name), None)

    def token(self, name: str, access: TokenAccess) -> Token:
        """A token for the segment of this full name; an empty one where nobody authenticates.

        Raises:
            PermissionDenied: the user may not do that.
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
        """Get a new token for this segment next time: the store did not accept the last."""
        self._tokens.pop((owner_of(name).stream, access), None)

    def close(self) -> None:
        """End the event loop and forget everything; the next call begins anew."""
        if os.getpid() == self._process and self._stop is not None:
            self._stop()
        self._begin()

    def _connect(self) -> _Client:
        if os.getpid() != self._process:
            self._begin()  # the parent's thread and its locks did not come along
        with self._lock:
            if self._client is None:
                self._client = self._start()
                # Also called at the interpreter's end, while threads can still be joined.
                self._stop = weakref.finalize(self, _stop, self._client, os.getpid())
            return self._client

    def _start(self) -> _Client:
        from sluice.stores.pravega.controller.controller import ControllerClient  # noqa: PLC0415 - see above

        loop = asyncio.new_event_loop()
        thread = threading.Thread(target=loop.run_forever, name="pravega-controller", daemon=True)
        thread.start()

        async def make() -> ControllerClient:
            return ControllerClient(
                self._endpoint,
                credentials=self._credentials,
                timeout=self._timeouts.call,
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
    """End all calls under way, and the client."""
    calls = asyncio.all_tasks() - {asyncio.current_task()}
    for call in calls:
        call.cancel()
    await asyncio.gather(*calls, return_exceptions=True)
    await controller.close()


def expiry_of(token: str, now: float) -> float:
    """When a token (a JWT) expires, in seconds since 1970; a guess if it does not say."""
    try:
        claims = token.split(".")[1]
        padded = claims + "=" * (-len(claims) % 4)
        return float(json.loads(base64.urlsafe_b64decode(padded))["exp"])
    except (IndexError, KeyError, TypeError, ValueError, binascii.Error):
        return now + _UNKNOWN_LIFE
