"""The channel to a controller, plain or with TLS, and why a controller cannot be reached."""

from __future__ import annotations

import asyncio
import math
from time import monotonic
from typing import TYPE_CHECKING, Any, Final

import grpc
from google.protobuf.message_factory import GetMessageClass

from sluice.errors import BackendError, CertificateRejected, ProtocolError, StoreUnavailable
from sluice.stores.pravega.bounds import MOST_MESSAGE
from sluice.stores.pravega.proto import controller_pb2 as pb
from sluice.stores.pravega.sockets.connecting import connect, refused_later, speaks_tls
from sluice.stores.pravega.sockets.tls import ADDRESS, WITH_TLS

if TYPE_CHECKING:
    from collections.abc import Callable

    from sluice.stores.pravega.names import Endpoint
    from sluice.stores.pravega.sockets.tls import TLS

_OPTIONS: Final = (
    # The segment stores are reached directly, so the controller is too, whatever the environment.
    ("grpc.enable_http_proxy", 0),
    # A controller that comes back is found within seconds and not within two minutes.
    ("grpc.max_reconnect_backoff_ms", 2000),
    # A connection whose host is gone without a word is broken by the kernel after the second of
    # these: gRPC hands it on to it only together with the first. That is longer than any call may
    # take, so no ping is sent: a controller ends connections with more of them. A connection that
    # something on the way still acknowledges is found by a call without an answer (`silent`).
    ("grpc.keepalive_time_ms", 310_000),
    ("grpc.keepalive_timeout_ms", 8_000),
    ("grpc.max_receive_message_length", MOST_MESSAGE),
)

_OWN: Final = ("grpc.use_local_subchannel_pool", 1)
"""Channels with the same options share connections otherwise: dead ones, and old certificates."""

_LOOK: Final = 3.0
"""Seconds that a look at a controller may take that cannot be reached."""

_EVERY: Final = 2.0
"""Seconds for which the finding of such a look holds."""


class Channel:
    """A channel of gRPC. It is made anew if its certificates change, or if no answer comes.

    gRPC does not tell why TLS failed, but in a text of its library. So after a failure a connection
    of our own is tried, whose errors say what to change.

    Args:
        endpoint: where the controller listens.
        timeout: seconds that a call may take, also on a channel that was replaced meanwhile.
        tls: the TLS of the channel; None for none.

    Attributes:
        number: how often it was made anew.
    """

    def __init__(self, endpoint: Endpoint, *, timeout: float, tls: TLS | None) -> None:
        self.number = 0
        self._endpoint = endpoint
        self._timeout = timeout
        self._tls = tls
        self._answered = -math.inf
        self._lock = asyncio.Lock()
        self._looked = -math.inf
        self._finding: BackendError | None = None
        self._ending: set[asyncio.Task[None]] = set()
        self._open()

    def _open(self) -> None:
        target = str(self._endpoint)
        self._version = 0
        if self._tls is None:
            own = (_OWN,) if self.number else ()
            self._channel = grpc.aio.insecure_channel(target, options=(*_OPTIONS, *own))
        else:
            self._version = self._tls.version
            name = self._tls.server_name
            named = () if name is None else (("grpc.ssl_target_name_override", name),)
            self._channel = grpc.aio.secure_channel(
                target,
                grpc.ssl_channel_credentials(self._tls.roots, *_shown(self._tls)),
                options=(*_OPTIONS, *named, _OWN),
            )
        self._methods = _methods(self._channel)

    def method(self, name: str) -> Callable[..., Any]:
        """Return the callable for a method of the service, by its name in the `.proto`."""
        if self._tls is not None and self._tls.version != self._version:
            self._replace()
        method: Callable[..., Any] = self._methods[name]
        return method

    def _replace(self) -> None:
        """Open another channel. Calls under way may end on this one."""
        ending = asyncio.create_task(self._channel.close(self._timeout))
        self._ending.add(ending)  # the event loop itself keeps no task alive
        ending.add_done_callback(self._ending.discard)
        self.number += 1
        self._open()

    def answered(self) -> None:
        """Note that the controller answered a call."""
        self._answered = monotonic()
        self._finding = None
        if self._tls is not None:
            self._tls.accepted()

    def silent(self, number: int) -> None:
        """Note that a call had no answer in its time. Connect anew if no other succeeded lately.

        A connection may be dead though something on the way acknowledges its bytes. If only this
        call is slow, the others keep the connection.

        Args:
            number: the channel's number when the call began.
        """
        if number == self.number and monotonic() - self._answered >= self._timeout / 2:
            self._replace()

    async def finding(self) -> BackendError | None:
        """Look why the controller cannot be reached. None if that is not for its TLS.

        If a certificate does not verify, read the certificates again. With others, the finding is a
        StoreUnavailable: the call may be made again.
        """
        async with self._lock:
            if monotonic() - self._looked >= _EVERY:
                self._finding = await asyncio.to_thread(self._look)
                self._looked = monotonic()
            return self._finding

    def _look(self) -> BackendError | None:
        timeout = min(_LOOK, self._timeout)
        if self._tls is None:
            if self._answered > -math.inf or not speaks_tls(self._endpoint, timeout):
                return None
            return ProtocolError(
                f"the controller at {self._endpoint} speaks TLS, and its address asks for none",
                field=ADDRESS,
                remedy=WITH_TLS,
            )
        used = self._tls.version
        try:
            wire = connect(self._endpoint, timeout, self._tls)
            try:
                refused_later(wire, self._endpoint)
            finally:
                wire.close()
        except CertificateRejected as error:
            if not self._tls.renew(used):
                return self._tls.judged(error)
            return StoreUnavailable(f"{error.message}; the certificates to trust have changed")
        except BackendError as error:
            return error if error.field else None  # else it is not about TLS
        return None

    async def close(self) -> None:
        """Close the channel; calls under way are cancelled."""
        for ending in self._ending:
            ending.cancel()
        await self._channel.close()


def _shown(tls: TLS) -> tuple[bytes, ...]:
    """Return the client's key and its certificate, as the library wants them; nothing if none."""
    client = tls.client
    return () if client is None else (client.key.encode(), client.chain.encode())


def _methods(channel: grpc.aio.Channel) -> dict[str, Any]:
    """Return the callable for each method of the service, as the descriptor has them."""
    service = pb.DESCRIPTOR.services_by_name["ControllerService"]
    return {
        method.name: channel.unary_unary(
            f"/{service.full_name}/{method.name}",
            request_serializer=GetMessageClass(method.input_type).SerializeToString,
            response_deserializer=GetMessageClass(method.output_type).FromString,
        )
        for method in service.methods
    }
