"""Connect to a server, with TLS or without, and notice if it is gone without a word."""

from __future__ import annotations

import math
import select
import socket
import ssl
import struct
from time import monotonic
from typing import TYPE_CHECKING, Final

from sluice.errors import ProtocolError, StoreTimeout, StoreUnavailable
from sluice.stores.pravega.sockets.tls import ADDRESS, NO_TLS, unwelcome
from sluice.stores.pravega.sockets.wires import PlainWire, TLSWire

if TYPE_CHECKING:
    from sluice.stores.pravega.names import Endpoint
    from sluice.stores.pravega.sockets.tls import TLS
    from sluice.stores.pravega.sockets.wires import Wire

_SILENCE: Final = 8.0
"""Seconds without an acknowledgement of the peer's kernel after which the peer counts as gone."""

_PROBES: Final = 4
"""Keep-alive probes to an idle peer in this time."""

_TCP_INFO: Final = struct.Struct("8B13I")
_RETRANSMITS, _UNANSWERED, _LAST_ACK = 2, 3, 20
"""Fields of `tcp_info`: retransmissions of data and probes that are unanswered so far, and the
milliseconds since the peer's kernel last acknowledged anything."""

_MOMENT: Final = 0.5
"""Seconds in which a server refuses a client's certificate after the handshake."""


def connect(peer: Endpoint, timeout: float, tls: TLS | None) -> Wire:
    """Connect to a server, with TLS if `tls` is given, within `timeout` seconds.

    Raises:
        StoreUnavailable: no server listens there, or it hung up.
        StoreTimeout: it took too long.
        CertificateRejected: its certificate does not verify.
        ProtocolError: it speaks no TLS, or its host is no name.
    """
    deadline = monotonic() + timeout
    try:
        raw = socket.create_connection(peer, timeout)
    except TimeoutError:
        raise StoreTimeout(f"no connection to {peer} within {timeout:.3g} s") from None
    except OSError as error:
        raise StoreUnavailable(f"no connection to {peer}: {error.strerror or error}") from None
    except UnicodeError:  # the host comes from the controller, and may be any text
        raise ProtocolError(f"{peer.host!r} is no name of a host") from None
    try:
        raw.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        _probe(raw)
        if tls is None:
            return PlainWire(raw)
        wire = TLSWire(raw, tls.context, tls.server_name or peer.host)
    except ValueError:  # the library's, for what can be no name in a certificate
        raw.close()
        raise ProtocolError(f"{peer.host!r} is no name of a host") from None
    except BaseException:
        raw.close()
        raise
    try:
        _shake_hands(wire, peer, deadline, timeout)
    except OSError as error:
        wire.close()
        raise tls.explained(error, peer) from None
    except BaseException:
        wire.close()
        raise
    return wire


def refused_later(wire: Wire, peer: Endpoint) -> None:
    """Wait a moment for a server's refusal of the client's certificate, or for any other word.

    Raises:
        CertificateRejected: it came.
    """
    poll = select.poll()
    poll.register(wire.raw, select.POLLIN)
    until, room = monotonic() + _MOMENT, memoryview(bytearray(1))
    while (left := until - monotonic()) > 0 and poll.poll(math.ceil(left * 1000)):
        try:
            wire.receive_into(room)
        except BlockingIOError:
            continue
        except OSError as error:
            if (unwanted := unwelcome(error, peer)) is not None:
                raise unwanted from None
        return


def speaks_tls(peer: Endpoint, timeout: float) -> bool:
    """Tell whether a server begins with TLS within `timeout` seconds, with any certificate."""
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    context.check_hostname = False
    context.verify_mode = ssl.CERT_NONE  # nothing is said to it, and nothing believed
    try:
        with (
            socket.create_connection(peer, timeout) as raw,
            context.wrap_socket(raw, do_handshake_on_connect=False) as wrapped,
        ):
            wrapped.do_handshake()
    except (OSError, ValueError):
        return False
    return True


def _shake_hands(wire: TLSWire, peer: Endpoint, deadline: float, timeout: float) -> None:
    poll = select.poll()
    while True:
        try:
            wire.shake_hands()
        except BlockingIOError:
            poll.register(wire.raw, wire.to_receive)
            left = deadline - monotonic()
            if left <= 0 or not poll.poll(math.ceil(left * 1000)):
                raise StoreTimeout(
                    f"{peer} did not begin with TLS within {timeout:.3g} s",
                    field=ADDRESS,
                    remedy=NO_TLS,
                ) from None
        else:
            return


def _probe(sock: socket.socket) -> None:
    """Have the kernel break an idle connection if the peer is gone.

    A connection that is kept for the next request may be long dead.
    """
    sock.setsockopt(socket.SOL_SOCKET, socket.SO_KEEPALIVE, 1)
    every = max(1, int(_SILENCE / _PROBES))
    for option in (socket.TCP_KEEPIDLE, socket.TCP_KEEPINTVL):
        sock.setsockopt(socket.IPPROTO_TCP, option, every)
    sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_KEEPCNT, _PROBES - 1)


def is_gone(sock: socket.socket) -> bool:
    """Tell whether data or probes were unacknowledged for so long that the peer must be gone.

    The kernel's own limit (TCP_USER_TIMEOUT) is of no use here: it also breaks connections to peers
    that are alive and slow to read.
    """
    try:
        info = _TCP_INFO.unpack(
            sock.getsockopt(socket.IPPROTO_TCP, socket.TCP_INFO, _TCP_INFO.size)
        )
    except OSError:  # not a TCP socket, or broken by now, which the next call notices
        return False
    unanswered = max(info[_RETRANSMITS], info[_UNANSWERED])
    return bool(unanswered > 1 and info[_LAST_ACK] >= _SILENCE * 1000)
