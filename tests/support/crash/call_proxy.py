"""A proxy in front of the controller that passes calls on unchanged and can hold them up.

It imports nothing of Sluice. It knows of a call only the parts that every gRPC call has.
"""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING, Any, NoReturn, Self

import grpc

if TYPE_CHECKING:
    from support.crash.breakpoint import Breakpoint

_SECONDS = 30.0
_THREADS = 16


@dataclass(frozen=True)
class Call:
    """A call of one of the controller's methods.

    Attributes:
        method: name of the method.
        request: bytes of the request.
    """

    method: str
    request: bytes

    def __str__(self) -> str:
        """Return the method, for readers of the results."""
        return self.method


class CallProxy(grpc.GenericRpcHandler):  # type: ignore[misc] # grpc ships no types
    """The proxy.

    Args:
        controller: host and port of the controller, which need not run yet.

    Attributes:
        uri: the controller's address through the proxy, for Pravega's clients.
        hold: breakpoint that holds up calls; None for none.
    """

    def __init__(self, controller: tuple[str, int]) -> None:
        host, port = controller
        # The channel has to reconnect soon after a killed controller is back.
        patient = [("grpc.max_reconnect_backoff_ms", 500)]
        self._channel = grpc.insecure_channel(f"{host}:{port}", options=patient)
        self._server = grpc.server(ThreadPoolExecutor(_THREADS, "call-proxy"), handlers=[self])
        self.uri = f"tcp://127.0.0.1:{self._server.add_insecure_port('127.0.0.1:0')}"
        self.hold: Breakpoint | None = None

    def __enter__(self) -> Self:
        """Start the proxy."""
        self._server.start()
        return self

    def __exit__(self, *_: object) -> None:
        """Stop the proxy."""
        self._server.stop(grace=None)
        self._channel.close()

    def service(self, handler_call_details: Any) -> Any:
        """Return a handler for any call, which treats it as bytes."""
        handle = partial(self._pass_on, handler_call_details.method)
        return grpc.unary_unary_rpc_method_handler(handle)

    def _pass_on(self, path: str, request: bytes, context: Any) -> bytes:
        """Pass a call on, whether its caller lives or not."""
        hold = self.hold
        if hold and not hold.pass_through(Call(path.rpartition("/")[2], request)):
            _refuse(context, grpc.StatusCode.UNAVAILABLE, "the connection was lost")
        try:
            answer: bytes = self._channel.unary_unary(path)(request, timeout=_SECONDS)
        except grpc.RpcError as error:
            _refuse(context, error.code(), error.details())
        return answer


def _refuse(context: Any, code: Any, details: str) -> NoReturn:
    context.abort(code, details)
    raise AssertionError("abort raises")
