"""The beginning of TLS connections: accepted servers, and errors."""

from __future__ import annotations

import socket
import ssl
import threading
from typing import TYPE_CHECKING

import pytest

from sluice.errors import (
    CertificateRejected,
    ProtocolError,
    StoreTimeout,
    StoreUnavailable,
)
from sluice.stores.pravega.names import Endpoint
from sluice.stores.pravega.sockets.tls import TLS
from sluice.stores.pravega.wire.connection import Connection
from sluice.stores.pravega.wire.messages import Hello
from sluice.stores.trust import Trust
from support.wire.segment_store import ScriptedStore
from support.wire.tls_names import accept, nothing, refused, server, serving

if TYPE_CHECKING:
    from support.wire.tls_names import TLSNames

HOST = "127.0.0.1"
ADDRESS = "spec.pravega.controllerURI"


def test_a_server_with_a_certificate_of_the_bundle_is_spoken_to(tls_names: TLSNames) -> None:
    """The certificate must be for the address at which the client connects."""
    with ScriptedStore([nothing], tls=tls_names.server(HOST)) as store:
        connection = Connection.open(store.endpoint, 5, TLS(tls_names.trust))
        assert connection.version == Hello().high
        connection.close()


def test_a_server_may_have_the_name_that_the_store_says(tls_names: TLSNames) -> None:
    """With `server_name`, all servers of a store may share one certificate."""
    trust = Trust(ca=tls_names.bundle, server_name="store.example")
    with ScriptedStore([nothing], tls=tls_names.server("store.example")) as store:
        Connection.open(store.endpoint, 5, TLS(trust)).close()


@pytest.mark.parametrize(
    ("host", "field", "text"),
    [
        ("store.example", "spec.pravega.tls.serverName", f"is not for the name {HOST}"),
        ("127.0.0.2", "spec.pravega.tls.serverName", f"is not for the name {HOST}"),
    ],
)
def test_a_certificate_for_another_name_is_refused(
    tls_names: TLSNames, host: str, field: str, text: str
) -> None:
    """An authority signs many certificates, so the name must fit too."""
    with server(lambda peer: accept(tls_names.server(host), peer)) as endpoint:
        error = refused(endpoint, TLS(tls_names.trust))
    assert isinstance(error, CertificateRejected)
    assert (error.field, error.retryable) == (field, False)
    assert text in error.message


def test_an_expired_certificate_is_refused(tls_names: TLSNames) -> None:
    """The remedy is to renew the server's certificate."""
    with server(lambda peer: accept(tls_names.server(HOST, days=-1), peer)) as endpoint:
        error = refused(endpoint, TLS(tls_names.trust))
    assert isinstance(error, CertificateRejected)
    assert error.field == ADDRESS
    assert "has expired" in error.message
    assert "Renew the certificate" in error.remedy


def test_a_certificate_of_another_authority_is_refused(tls_names: TLSNames) -> None:
    """The error names the bundle's field, with a bundle and with the system's authorities."""
    other = serving(tls_names.other().issue("stranger", HOST))
    with server(lambda peer: accept(other, peer)) as endpoint:
        error = refused(endpoint, TLS(tls_names.trust))
        unnamed = refused(endpoint, TLS(Trust(ca=None)))
    for each in (error, unnamed):
        assert isinstance(each, CertificateRejected)
        assert each.field == "spec.pravega.tls.caBundleRef"
        assert "of no trusted authority" in each.message


def test_the_system_trusts_by_its_own_certificates(
    tls_names: TLSNames, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Without a bundle, the authorities count that OpenSSL finds on the system."""
    monkeypatch.setenv("SSL_CERT_FILE", str(tls_names.authority.bundle))
    with ScriptedStore([nothing], tls=tls_names.server(HOST)) as store:
        Connection.open(store.endpoint, 5, TLS(Trust())).close()


def test_a_server_that_speaks_no_tls_is_named(tls_names: TLSNames) -> None:
    """Whatever it answers, the remedy says how to write the address."""
    with server(lambda peer: peer.sendall(b"HTTP/1.1 400 Bad Request\r\n\r\n")) as endpoint:
        error = refused(endpoint, TLS(tls_names.trust))
    assert isinstance(error, ProtocolError)
    assert error.field == ADDRESS
    assert "tcp://host:port" in error.remedy


def test_a_server_that_hangs_up_at_the_beginning_of_tls_is_tried_again(
    tls_names: TLSNames,
) -> None:
    """The server may be starting, or has no TLS, which the remedy mentions."""
    with server(lambda _: None) as endpoint:
        error = refused(endpoint, TLS(tls_names.trust))
    assert isinstance(error, StoreUnavailable)
    assert not isinstance(error, StoreTimeout)
    assert error.field == ADDRESS
    assert "tcp://host:port" in error.remedy


@pytest.mark.parametrize("trickles", [False, True])
def test_a_handshake_that_hangs_ends_at_the_deadline(
    tls_names: TLSNames, *, trickles: bool
) -> None:
    """The server may be silent, as a store without TLS, or send a byte now and then."""
    ended = threading.Event()

    def serve(peer: socket.socket) -> None:
        peer.sendall(b"\x16\x03\x03\x10\x00" if trickles else b"")
        while not ended.wait(0.01):
            peer.sendall(b"\x02" if trickles else b"")

    with server(serve) as endpoint:
        error = refused(endpoint, TLS(tls_names.trust), timeout=0.3)
        ended.set()
    assert isinstance(error, StoreTimeout)
    assert error.field == ADDRESS
    assert "tcp://host:port" in error.remedy


def test_a_server_that_speaks_only_old_versions_is_refused(tls_names: TLSNames) -> None:
    """TLS 1.2 is the oldest accepted version."""
    old = tls_names.server(HOST)
    with pytest.warns(DeprecationWarning, match="TLSv1_1"):
        old.minimum_version = old.maximum_version = ssl.TLSVersion.TLSv1_1
    old.set_ciphers("DEFAULT@SECLEVEL=0")
    with server(lambda peer: accept(old, peer)) as endpoint:
        error = refused(endpoint, TLS(tls_names.trust))
    assert isinstance(error, ProtocolError)
    assert "TLS 1.2 or newer" in error.message


@pytest.mark.parametrize("alerts", [True, False])
def test_a_server_that_wants_tls_is_told_from_others(tls_names: TLSNames, *, alerts: bool) -> None:
    """Such a server answers a plain greeting with a TLS alert, or hangs up as Pravega does."""
    context = tls_names.server(HOST)

    def serve(peer: socket.socket) -> None:
        if peer.recv(1, socket.MSG_PEEK) == b"\x16":
            accept(context, peer)
        elif alerts:
            peer.sendall(b"\x15\x03\x01\x00\x02\x02\x46")

    with server(serve) as endpoint:
        error = refused(endpoint, None)
    assert isinstance(error, ProtocolError)
    assert error.field == ADDRESS
    assert "speaks TLS" in error.message
    assert "tls://host:port" in error.remedy


def test_a_plain_server_that_hangs_up_is_no_server_with_tls() -> None:
    """The error is StoreUnavailable, without a field."""
    with server(lambda _: None) as endpoint:
        error = refused(endpoint, None)
    assert type(error) is StoreUnavailable
    assert error.field is None


@pytest.mark.parametrize("host", ["", ".example", "a" * 300])
def test_a_host_that_can_have_no_certificate_is_a_protocol_error(
    tls_names: TLSNames, monkeypatch: pytest.MonkeyPatch, host: str
) -> None:
    """The controller names the hosts of segment stores, and may send any text."""
    ours, theirs = socket.socketpair()
    monkeypatch.setattr(socket, "create_connection", lambda *_: ours)
    monkeypatch.setattr("sluice.stores.pravega.sockets.connecting._probe", lambda _: None)
    monkeypatch.setattr(socket.socket, "setsockopt", lambda *_: None)
    with theirs, pytest.raises(ProtocolError, match="is no name of a host"):
        Connection.open(Endpoint(host, 1), 5, TLS(tls_names.trust))
