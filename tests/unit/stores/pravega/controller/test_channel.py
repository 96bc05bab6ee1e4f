"""A controller with and without TLS, and the errors if the address expects the opposite."""

from __future__ import annotations

import asyncio
import os
import ssl
from contextlib import contextmanager
from typing import TYPE_CHECKING

import pytest

from sluice.config import StoreTimeouts
from sluice.errors import (
    AuthenticationFailed,
    BackendError,
    CertificateRejected,
    ProtocolError,
    StoreTimeout,
    StoreUnavailable,
)
from sluice.stores.credentials import Credentials
from sluice.stores.pravega.controller import channel as channel_module
from sluice.stores.pravega.controller.channel import Channel
from sluice.stores.pravega.names import Endpoint
from sluice.stores.pravega.store import PravegaStore
from sluice.stores.trust import ClientCertificate, Trust
from support.engine.sources import ManualClock
from support.store.controllers import controller
from support.wire.faulty_wire import Client, FaultyWire
from support.wire.tls_front import TLSFront
from support.wire.tls_names import accept, server

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from support.wire.tls_names import TLSNames

HOST = "127.0.0.1"
ADDRESS = "spec.pravega.controllerURI"


@contextmanager
def client(
    port: int, trust: Trust | None, *, login: Credentials | None = None, call: float = 10
) -> Iterator[PravegaStore]:
    """Yield a store whose controller listens on this port; with `trust`, by TLS."""
    uri = f"{'tls' if trust else 'tcp'}://{HOST}:{port}"
    timeouts = StoreTimeouts(connect=5, call=call, stall=5)
    store = PravegaStore(uri, credentials=login, timeouts=timeouts, trust=trust)
    try:
        yield store
    finally:
        store.close()


def refused(store: PravegaStore) -> BackendError:
    """Return the error of a call, which has to fail."""
    with pytest.raises(BackendError) as caught:
        store.scope_exists("any")
    return caught.value


def failure(store: PravegaStore) -> BackendError | None:
    """Return the error of a call; None if it succeeds."""
    try:
        store.scope_exists("any")
    except BackendError as error:
        return error
    return None


@pytest.mark.parametrize(("host", "name"), [(HOST, None), ("store.example", "store.example")])
def test_a_controller_is_known_by_its_certificate(
    tls_names: TLSNames, host: str, name: str | None
) -> None:
    """The certificate must be for the controller's address, or for the name in the store's spec."""
    trust = Trust(ca=tls_names.bundle, server_name=name)
    with controller(tls_names.certificate(host)) as port, client(port, trust) as store:
        assert store.scope_exists("any")


def test_a_controller_of_another_authority_or_name_is_refused(tls_names: TLSNames) -> None:
    """Each call's error names the field to change."""
    stranger = tls_names.other().issue("controller", HOST)
    with controller(stranger) as port, client(port, tls_names.trust) as store:
        for error in (refused(store), refused(store)):
            assert isinstance(error, CertificateRejected)
            assert error.field == "spec.pravega.tls.caBundleRef"
            assert f"{HOST}:{port}" in error.message
    other = tls_names.certificate("store.example")
    with controller(other) as port, client(port, tls_names.trust) as store:
        error = refused(store)
        assert isinstance(error, CertificateRejected)
        assert error.field == "spec.pravega.tls.serverName"


def test_a_controller_without_tls_is_told_from_one_that_is_away(tls_names: TLSNames) -> None:
    """A controller without TLS needs another address. One that is away is tried again."""
    with controller(None) as port, client(port, tls_names.trust) as store:
        error = refused(store)
        assert isinstance(error, ProtocolError)
        assert error.field == ADDRESS
        assert "tcp://host:port" in error.remedy
    with client(port, tls_names.trust) as store:
        error = refused(store)
        assert type(error) is StoreUnavailable
        assert error.field is None


def test_a_controller_with_tls_is_told_where_the_address_asks_for_none(
    tls_names: TLSNames,
) -> None:
    """ProtocolError has the remedy to write the address as tls://host:port."""
    with controller(tls_names.certificate(HOST)) as port, client(port, None) as store:
        error = refused(store)
        assert isinstance(error, ProtocolError)
        assert error.field == ADDRESS
        assert "tls://host:port" in error.remedy
    with controller(None) as port, client(port, None) as store:
        assert store.scope_exists("any")


def test_a_controller_whose_certificates_are_changed_is_found_again(
    tls_names: TLSNames, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The failed call may be repeated, and then uses the new certificates."""
    monkeypatch.setattr(channel_module, "_EVERY", 0.0)
    rotated = tls_names.other("rotated")
    file = tmp_path / "_bundle" / "ca.crt"
    file.parent.mkdir()
    file.write_text(tls_names.bundle)
    trust = Trust.read("_bundle/ca.crt", tmp_path)
    with controller(tls_names.certificate(HOST)) as port, client(port, trust) as store:
        assert store.scope_exists("any")
    with client(port, trust) as store:
        with controller(tls_names.certificate(HOST), port=port):
            assert store.scope_exists("any")
        with controller(rotated.issue("controller", HOST), port=port):
            errors = [refused(store)]
            assert isinstance(errors[0], CertificateRejected | StoreUnavailable)
            file.write_text(rotated.bundle.read_text())
            monkeypatch.setattr("sluice.stores.pravega.sockets.tls._EVERY", 0.0)
            while (error := failure(store)) is not None:
                errors.append(error)
            assert type(errors[-1]) is StoreUnavailable
            assert "the certificates to trust have changed" in errors[-1].message


def test_a_password_that_was_accepted_before_is_waited_for(tmp_path: Path) -> None:
    """The store has a new password earlier than the mounted file, so the refusal may be retried."""
    valid = ["old"]
    for key, text in (("username", "user"), ("password", "old")):
        (tmp_path / "login").mkdir(exist_ok=True)
        (tmp_path / "login" / key).write_text(text)
    login = Credentials.read("login", tmp_path)
    with controller(None, passwords=valid) as port, client(port, None, login=login) as store:
        assert store.scope_exists("any")
        valid[:] = ["new"]
        assert type(refused(store)) is StoreUnavailable
        (tmp_path / "login" / "password").write_text("new")
        assert store.scope_exists("any")
    wrong = Credentials.read("login", tmp_path)
    with controller(None, passwords=["other"]) as port, client(port, None, login=wrong) as store:
        assert type(refused(store)) is AuthenticationFailed


def test_a_controller_behind_a_proxy_gets_the_clients_certificate(tls_names: TLSNames) -> None:
    """Without a client certificate, the error names the spec's field for it."""
    made = tls_names.authority.issue("caller")
    client_certificate = ClientCertificate(made.chain.read_text(), made.key.read_text())
    trust = Trust(ca=tls_names.bundle, client=client_certificate)
    asking = tls_names.server(HOST)
    asking.verify_mode = ssl.CERT_REQUIRED
    asking.load_verify_locations(tls_names.authority.bundle)
    asking.set_alpn_protocols(["h2"])
    with controller(None) as port, TLSFront(asking) as proxy:
        proxy.backend = (HOST, port)
        with client(proxy.port, trust) as store:
            assert store.scope_exists("any")
    refusing = server(lambda peer: accept(asking, peer))
    with refusing as endpoint, client(endpoint.port, tls_names.trust) as store:
        error = refused(store)
    assert isinstance(error, CertificateRejected)
    assert error.field == "spec.pravega.tls.clientCertificateSecretRef"


def test_a_connection_without_answers_is_replaced_though_its_bytes_are_acknowledged() -> None:
    """A call on it takes its whole time. The next one has another connection, and succeeds."""
    with controller(None) as behind, FaultyWire((HOST, behind)) as wire:
        us = Client(os.getpid())
        wire.watch(us)
        with client(wire.port, None, call=1) as store:
            assert store.scope_exists("any")
            wire.vanish(us, 0)
            assert isinstance(refused(store), StoreTimeout)
            assert store.scope_exists("any")
            assert us.connections == 2


def test_a_call_that_takes_too_long_costs_others_no_connection(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """The channel stays while other calls on it are answered, and is replaced once for many."""
    clock = ManualClock()
    monkeypatch.setattr(channel_module, "monotonic", clock.monotonic)

    async def numbers() -> list[int]:
        channel, found = Channel(Endpoint(HOST, 1), timeout=30, tls=None), []
        channel.answered()
        for seconds in (10, 10, 0, 0):
            clock.now += seconds
            channel.silent(0)
            found.append(channel.number)
        await channel.close()
        return found

    assert asyncio.run(numbers()) == [0, 1, 1, 1]
