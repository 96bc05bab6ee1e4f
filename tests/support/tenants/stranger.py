"""A stranger's server, which records the operator's calls."""

from __future__ import annotations

import base64
import binascii
from concurrent.futures import ThreadPoolExecutor
from typing import TYPE_CHECKING, Any, Self

import grpc

if TYPE_CHECKING:
    from types import TracebackType


class Stranger(grpc.GenericRpcHandler):  # type: ignore[misc] # grpc ships no types
    """A gRPC server on a loopback port that knows no method.

    Attributes:
        heard: method and metadata of each call, with logins decoded.
        uri: its address, as StreamStores name it.
    """

    def __init__(self) -> None:
        self.heard: list[tuple[str, str]] = []
        self._threads = ThreadPoolExecutor(4, "stranger")
        self._server = grpc.server(self._threads, handlers=[self])
        port = self._server.add_insecure_port("127.0.0.1:0")
        self.uri = f"tcp://127.0.0.1:{port}"

    def service(self, handler_call_details: Any) -> None:
        """Record a call."""
        came = [f"{key}={value!r}" for key, value in handler_call_details.invocation_metadata]
        for key, value in handler_call_details.invocation_metadata:
            if key == "authorization":
                came.append(_decoded(value.rpartition(" ")[2]))
        self.heard.append((handler_call_details.method, " ".join(came)))

    def __enter__(self) -> Self:
        """Begin to listen."""
        self._server.start()
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        """Stop listening."""
        self._server.stop(grace=None).wait()
        self._threads.shutdown()


def _decoded(login: str) -> str:
    try:
        return base64.b64decode(login).decode(errors="replace")
    except binascii.Error:
        return ""
