"""Probes of Pravega's servers, in the fewest bytes that prove that they serve."""

import socket
import ssl
import struct
from collections.abc import Iterator
from contextlib import contextmanager

_SECONDS = 5.0

# Segment store: frames of int32 type, int32 length, payload.
_WIRE_HEADER = struct.Struct(">ii")
_HELLO = -127
_HELLO_FRAME = struct.pack(">iiii", _HELLO, 8, 16, 5)
_GET_INFO = 11
_WRONG_HOST = 50

# A container owns the segments whose name hashes to it. This number of names misses one of four
# containers once in 40 million times.
_NAMES_PER_PROBE = 64

# Controller: HTTP/2 frames of 24 bit length, type, flags, stream.
_HTTP2_PREFACE = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n"
_DATA, _HEADERS, _SETTINGS, _RST_STREAM, _GOAWAY = 0, 1, 4, 3, 7
_END_STREAM, _END_HEADERS = 1, 4
_LIST_SCOPES = "/io.pravega.controller.stream.api.grpc.v1.ControllerService/listScopes"


def is_listening(host: str, port: int) -> bool:
    """Tell whether the port accepts connections."""
    try:
        socket.create_connection((host, port), timeout=_SECONDS).close()
    except OSError:
        return False
    return True


@contextmanager
def _connected(host: str, port: int, tls: ssl.SSLContext | None) -> Iterator[socket.socket]:
    with socket.create_connection((host, port), timeout=_SECONDS) as plain:
        if tls is None:
            yield plain
        else:
            with tls.wrap_socket(plain, server_hostname=host) as secured:
                yield secured


def segment_store_serves(
    host: str, port: int, *others: tuple[str, int], tls: ssl.SSLContext | None = None
) -> bool:
    """Tell whether a segment store listens, and answers for all containers, beside others.

    The store opens its port before it has recovered its containers. The probe asks for missing
    segments, enough of them to reach every container. For a container that is not up yet, the store
    answers that the segment belongs elsewhere.

    Args:
        host: the store's address.
        port: the store's port.
        others: the other segment stores. They need not run.
        tls: context by which the probe trusts them; None if they speak no TLS.
    """
    own = _answered(host, port, tls)
    if own is None:
        return False
    found = own.union(*(_answered(*other, tls) or () for other in others))
    return len(found) == _NAMES_PER_PROBE


def _answered(host: str, port: int, tls: ssl.SSLContext | None) -> set[int] | None:
    """Return the names for which a segment store answers; None if it does not listen."""
    try:
        with _connected(host, port, tls) as connection:
            connection.sendall(
                _HELLO_FRAME + b"".join(_info_request(number) for number in range(_NAMES_PER_PROBE))
            )
            if _wire_frame(connection)[0] != _HELLO:
                return None
            frames = [_wire_frame(connection) for _ in range(_NAMES_PER_PROBE)]
    except OSError:
        return None
    # Answers come in any order. Each begins with the number of its request.
    return {number for kind, number in frames if kind != _WRONG_HOST}


def controller_serves(
    host: str,
    port: int,
    authorization: str | None = None,
    *,
    tls: ssl.SSLContext | None = None,
) -> bool:
    """Tell whether a controller lists its scopes.

    The controller reads the list from the segment store, so both servers are connected then.

    Args:
        host: the controller's address.
        port: the controller's gRPC port.
        authorization: the header's value, if authentication is on.
        tls: context by which the probe trusts it, with the protocol h2; None if it speaks no TLS.

    Returns:
        Whether an answer came.
    """
    headers = {
        ":method": "POST",
        ":scheme": "http" if tls is None else "https",
        ":path": _LIST_SCOPES,
        ":authority": f"{host}:{port}",
        "content-type": "application/grpc",
        "te": "trailers",
    }
    if authorization:
        headers["authorization"] = authorization
    empty_message = bytes(5)  # not compressed, length 0: the first page
    try:
        with _connected(host, port, tls) as connection:
            connection.sendall(
                _HTTP2_PREFACE
                + _http2_frame(_SETTINGS, 0, 0, b"")
                + _http2_frame(_HEADERS, _END_HEADERS, 1, _literal_headers(headers))
                + _http2_frame(_DATA, _END_STREAM, 1, empty_message)
            )
            while True:
                kind, stream = _read_http2_frame(connection)
                if kind in {_RST_STREAM, _GOAWAY}:
                    return False
                if stream == 1:  # a failed call has trailers only, never data
                    return kind == _DATA or _read_http2_frame(connection)[0] == _DATA
    except OSError:
        return False


def _info_request(number: int) -> bytes:
    name = f"probe/readiness/{number}.#epoch.0".encode()
    payload = struct.pack(f">qH{len(name)}sH", number, len(name), name, 0)
    return _WIRE_HEADER.pack(_GET_INFO, len(payload)) + payload


def _wire_frame(connection: socket.socket) -> tuple[int, int]:
    """Return a frame's type, and the integer of 8 bytes that it begins with."""
    kind, length = _WIRE_HEADER.unpack(_exactly(connection, _WIRE_HEADER.size))
    return int(kind), int.from_bytes(_exactly(connection, length)[:8], "big")


def _http2_frame(kind: int, flags: int, stream: int, payload: bytes) -> bytes:
    return struct.pack(">I", len(payload))[1:] + struct.pack(">BBI", kind, flags, stream) + payload


def _read_http2_frame(connection: socket.socket) -> tuple[int, int]:
    header = _exactly(connection, 9)
    _exactly(connection, int.from_bytes(header[:3], "big"))
    return header[3], int.from_bytes(header[5:], "big")


def _literal_headers(headers: dict[str, str]) -> bytes:
    """Encode headers without tables and Huffman codes, which HPACK allows."""
    return b"".join(
        b"\x00" + bytes([len(name)]) + name.encode() + bytes([len(value)]) + value.encode()
        for name, value in headers.items()
    )


def _exactly(connection: socket.socket, count: int) -> bytes:
    got = b""
    while len(got) < count:
        part = connection.recv(count - len(got))
        if not part:
            raise ConnectionError("closed by the server")
        got += part
    return got
