"""Trusted and presented certificates: bundles, rotation, and those of clients."""

from __future__ import annotations

import ssl
from typing import TYPE_CHECKING

import pytest

from sluice.errors import (
    CertificateRejected,
    InvalidSpec,
    StoreUnavailable,
)
from sluice.stores.credentials import Grace
from sluice.stores.pravega.sockets import tls as tls_module
from sluice.stores.pravega.sockets.tls import TLS
from sluice.stores.pravega.wire.connection import Connection
from sluice.stores.pravega.wire.pool import ConnectionPool
from sluice.stores.trust import ClientCertificate, Trust
from support.wire.segment_store import Peer, ScriptedStore
from support.wire.tls_names import accept, nothing, refused, server, serving

if TYPE_CHECKING:
    from pathlib import Path

    from localstore.certificates import Certificate
    from support.wire.tls_names import TLSNames

HOST = "127.0.0.1"


@pytest.mark.parametrize(
    "bundle",
    [
        "",
        "no certificate",
        "-----BEGIN CERTIFICATE-----\nAAAA\n-----END CERTIFICATE-----\n",
        "-----BEGIN CERTIFICATE-----\n\u00fc\n-----END CERTIFICATE-----\n",
    ],
)
def test_a_bundle_without_certificates_is_refused_before_anything_is_sent(bundle: str) -> None:
    """InvalidSpec names the bundle's field."""
    with pytest.raises(InvalidSpec) as caught:
        TLS(Trust(ca=bundle))
    assert caught.value.field == "spec.pravega.tls.caBundleRef"


def test_a_bundle_may_have_notes_in_any_language(tls_names: TLSNames) -> None:
    """Bundles of real authorities contain notes between the certificates."""
    noted = f"# Müller's authority\n{tls_names.bundle}\n# end"
    with ScriptedStore([nothing], tls=tls_names.server(HOST)) as store:
        Connection.open(store.endpoint, 5, TLS(Trust(ca=noted))).close()


# Rotation


@pytest.fixture
def mounted(tmp_path: Path, tls_names: TLSNames) -> Path:
    """Return the file with the authority's certificate, as a pod mounts it."""
    file = tmp_path / "_bundle" / "ca.crt"
    file.parent.mkdir()
    file.write_text(tls_names.bundle)
    return file


def trusting(file: Path) -> TLS:
    """Make the TLS of a store that trusts the file's certificates."""
    return TLS(Trust.read("_bundle/ca.crt", file.parents[1]))


def test_a_bundle_that_was_changed_is_read_when_a_certificate_does_not_verify(
    tls_names: TLSNames, mounted: Path
) -> None:
    """The same call then connects with the new bundle."""
    rotated = tls_names.other("rotated")
    tls = trusting(mounted)
    pool = ConnectionPool(5, tls=tls)
    with ScriptedStore([nothing], tls=tls_names.server(HOST)) as store, pool.lease(store.endpoint):
        pass
    with ScriptedStore([nothing], tls=serving(rotated.issue("new", HOST))) as store:
        mounted.write_text(rotated.bundle.read_text())
        with pool.lease(store.endpoint):
            assert tls.version == 2
    pool.close()


def test_a_bundle_is_read_again_every_two_seconds_at_most(
    tls_names: TLSNames, mounted: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Many clients may call a store with a wrong certificate again and again."""
    now = [100.0]
    monkeypatch.setattr(tls_module, "monotonic", lambda: now[0])
    tls = trusting(mounted)
    assert not tls.renew(tls.version)
    mounted.write_text(tls_names.other().bundle.read_text())
    now[0] += 1.9
    assert not tls.renew(tls.version)
    now[0] += 0.2
    assert tls.renew(1)
    assert tls.renew(1)  # for other callers that failed with the old bundle
    assert not tls.renew(2)


def test_a_certificate_that_verified_before_is_waited_for_a_minute(
    tls_names: TLSNames, mounted: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """In that minute the file may still change. Then the refusal is final, with the same field."""
    now = [100.0]
    tls = trusting(mounted)
    tls._grace = Grace(lambda: now[0])
    monkeypatch.setattr(tls_module, "monotonic", lambda: now[0])
    stranger = serving(tls_names.other().issue("later", HOST))
    pool = ConnectionPool(5, tls=tls)
    with ScriptedStore([nothing], tls=tls_names.server(HOST)) as store:
        pool.open(store.endpoint).close()
    with server(lambda peer: accept(stranger, peer)) as endpoint:
        for after, kind in (
            (0, StoreUnavailable),
            (59, StoreUnavailable),
            (2, CertificateRejected),
        ):
            now[0] += after
            with pytest.raises(kind) as caught:
                pool.open(endpoint)
            assert caught.value.field == "spec.pravega.tls.caBundleRef"
        mounted.write_text(tls_names.other().bundle.read_text())
        now[0] += 2
        pool.open(endpoint).close()


@pytest.mark.parametrize("content", ["", "half a certif", None])
def test_a_bundle_that_cannot_be_read_midway_leaves_the_one_before(
    tls_names: TLSNames, mounted: Path, content: str | None
) -> None:
    """A file may be half-written, or missing for a moment."""
    tls = trusting(mounted)
    if content is None:
        mounted.unlink()
    else:
        mounted.write_text(content)
    assert not tls.renew(tls.version)
    with ScriptedStore([nothing], tls=tls_names.server(HOST)) as store:
        Connection.open(store.endpoint, 5, tls).close()


def test_what_is_trusted_shows_nowhere(mounted: Path) -> None:
    """A certificate is no secret, but may reveal much about a company."""
    trust = Trust.read("_bundle/ca.crt", mounted.parents[1], server_name="store.example")
    assert repr(trust) == "Trust(server_name='store.example')"


# Proxies that ask for a client's certificate


def asking(tls_names: TLSNames) -> ssl.SSLContext:
    """Make a server's context that requires a client certificate of the same authority."""
    context = tls_names.server(HOST)
    context.verify_mode = ssl.CERT_REQUIRED
    context.load_verify_locations(tls_names.authority.bundle)
    return context


def shown(certificate: Certificate) -> ClientCertificate:
    """Return a certificate as a client presents it."""
    return ClientCertificate(certificate.chain.read_text(), certificate.key.read_text())


def test_a_server_that_asks_for_a_certificate_gets_it(tls_names: TLSNames) -> None:
    """The server sees the certificate's subject, and no text of the client shows the key."""
    client = shown(tls_names.authority.issue("sluice"))
    tls = TLS(Trust(ca=tls_names.bundle, client=client))
    subjects: list[object] = []

    def serve(peer: Peer) -> None:
        assert isinstance(peer.sock, ssl.SSLSocket)
        subjects.append((peer.sock.getpeercert() or {}).get("subject"))

    with ScriptedStore([serve], tls=asking(tls_names)) as store:
        Connection.open(store.endpoint, 5, tls).close()
    assert subjects == [((("commonName", "sluice"),),)]
    assert "PRIVATE" not in f"{client!r}{tls.client!r}{Trust(client=client)!r}"


@pytest.mark.parametrize(
    ("version", "has"),
    [
        (ssl.TLSVersion.TLSv1_2, True),
        (ssl.TLSVersion.TLSv1_3, True),
        (ssl.TLSVersion.TLSv1_3, False),
    ],
)
def test_a_server_that_wants_another_certificate_is_named(
    tls_names: TLSNames, version: ssl.TLSVersion, *, has: bool
) -> None:
    """The error has the field of the client certificate.

    TLS 1.3 reports the refusal after the handshake, TLS 1.2 in it.
    """
    client = shown(tls_names.other().issue("nobody")) if has else None
    context = asking(tls_names)
    context.minimum_version = context.maximum_version = version
    with server(lambda peer: accept(context, peer)) as endpoint:
        error = refused(endpoint, TLS(Trust(ca=tls_names.bundle, client=client)))
    assert isinstance(error, CertificateRejected)
    assert error.field == "spec.pravega.tls.clientCertificateSecretRef"


def test_a_key_that_is_not_of_its_certificate_is_refused(tls_names: TLSNames) -> None:
    """InvalidSpec is raised before any byte is sent.

    It names the field, and does not show the key.
    """
    one, other = (shown(tls_names.authority.issue(name)) for name in ("one", "another"))
    for wrong in (
        ClientCertificate(one.chain, other.key),
        ClientCertificate("no certificate", one.key),
        ClientCertificate(one.chain, "no key"),
    ):
        with pytest.raises(InvalidSpec) as caught:
            TLS(Trust(ca=tls_names.bundle, client=wrong))
        assert caught.value.field == "spec.pravega.tls.clientCertificateSecretRef"
        assert "PRIVATE" not in str(caught.value)


def test_a_clients_certificate_that_was_changed_is_read_again(
    tls_names: TLSNames, tmp_path: Path
) -> None:
    """The new certificate is read once the server refuses the old one."""
    folder = tmp_path / "mesh"
    folder.mkdir()

    def write(certificate: Certificate) -> None:
        (folder / "tls.crt").write_text(certificate.chain.read_text())
        (folder / "tls.key").write_text(certificate.key.read_text())

    write(tls_names.other().issue("old-client"))
    (folder / "ca.crt").write_text(tls_names.bundle)
    pool = ConnectionPool(5, tls=TLS(Trust.read("mesh/ca.crt", tmp_path, client="mesh")))
    with server(lambda peer: accept(asking(tls_names), peer)) as endpoint:
        with pytest.raises(CertificateRejected):
            pool.open(endpoint)
        write(tls_names.authority.issue("new-client"))
        pool._tls._read = 0.0  # type: ignore[union-attr]
        pool.open(endpoint).close()
