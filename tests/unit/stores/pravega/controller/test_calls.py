"""A channel to a controller whose host vanishes without closing its connections."""

from __future__ import annotations

import ctypes
import os
import socket
import struct
from concurrent import futures
from contextlib import suppress
from pathlib import Path
from typing import Any

import grpc
import pytest

from sluice.config import StoreTimeouts
from sluice.errors import StoreTimeout, StoreUnavailable
from sluice.stores.pravega.controller import channel
from sluice.stores.pravega.controller.directory import Directory
from sluice.stores.pravega.names import Endpoint
from sluice.stores.pravega.proto import controller_pb2 as pb

_ATTACH_FILTER = 26
"""SO_ATTACH_FILTER: a program of the kernel that says which packets a socket gets."""


def _answer(_request: Any, _context: Any) -> Any:
    """Answer that each scope exists."""
    return pb.ExistsResponse(exists=True)


def _vanish(port: int) -> None:
    """Drop all packets to clients of a port of this process."""
    program = ctypes.create_string_buffer(struct.pack("HBBI", 0x06, 0, 0, 0))
    drop = struct.pack("HL", 1, ctypes.addressof(program))
    for path in Path("/proc/self/fd").iterdir():
        with suppress(OSError), socket.socket(fileno=os.dup(int(path.name))) as one:
            if one.family in {socket.AF_INET, socket.AF_INET6}:
                one.getpeername()
                if one.getsockname()[1] == port:
                    one.setsockopt(socket.SOL_SOCKET, _ATTACH_FILTER, drop)


def _answered_at_last(directory: Directory) -> bool:
    while True:
        try:
            return directory.run(lambda controller: controller.scope_exists("any"))
        except StoreUnavailable as error:
            if "Stream removed" not in str(error):
                raise


@pytest.mark.timeout(60)
def test_a_channel_whose_host_is_gone_is_replaced_before_the_deadline(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """The failed call may be repeated, and a repetition soon gets a new connection.

    The library reports the broken connection to a call before it drops the connection. So a
    repetition at once may get the same connection, and fail at once.
    """
    options = dict(channel._OPTIONS) | {"grpc.keepalive_timeout_ms": 1000}
    monkeypatch.setattr(channel, "_OPTIONS", tuple(options.items()))
    server = grpc.server(futures.ThreadPoolExecutor(2))
    answer = grpc.unary_unary_rpc_method_handler(
        _answer, pb.ScopeInfo.FromString, pb.ExistsResponse.SerializeToString
    )
    server.add_registered_method_handlers(
        pb.DESCRIPTOR.services_by_name["ControllerService"].full_name, {"checkScopeExists": answer}
    )
    port = server.add_insecure_port("127.0.0.1:0")
    server.start()
    directory = Directory(
        Endpoint("127.0.0.1", port), credentials=None, timeouts=StoreTimeouts(call=10)
    )
    try:
        assert directory.run(lambda controller: controller.scope_exists("any"))
        _vanish(port)
        with pytest.raises(StoreUnavailable) as caught:
            directory.run(lambda controller: controller.scope_exists("any"))
        assert not isinstance(caught.value, StoreTimeout)
        assert _answered_at_last(directory)
    finally:
        directory.close()
        server.stop(None)
