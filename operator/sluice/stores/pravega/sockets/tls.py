"""TLS to the servers of one store: whom it trusts, and what its failures mean."""

from __future__ import annotations

import math
import os
import ssl
from time import monotonic
from typing import TYPE_CHECKING, BinaryIO, Final, NamedTuple

from sluice.errors import (
    BackendError,
    CertificateRejected,
    InvalidSpec,
    ProtocolError,
    StoreUnavailable,
)
from sluice.stores.credentials import Grace
from sluice.stores.trust import ClientCertificate, Trust, certificates, system_roots

if TYPE_CHECKING:
    from sluice.stores.pravega.names import Endpoint

ADDRESS: Final = "spec.pravega.controllerURI"
BUNDLE: Final = "spec.pravega.tls.caBundleRef"
NAME: Final = "spec.pravega.tls.serverName"
CLIENT: Final = "spec.pravega.tls.clientCertificateSecretRef"
"""Fields of a StreamStore, for errors."""

NO_TLS: Final = (
    "If the server speaks no TLS, write the StreamStore's controllerURI as tcp://host:port."
)
WITH_TLS: Final = "Write the StreamStore's controllerURI as tls://host:port."

_EVERY: Final = 2.0
"""Seconds between two looks whether the files of certificates have changed."""

# Verification codes of OpenSSL: X509_V_ERR_... in its x509_vfy.h.
_TOO_EARLY, _EXPIRED = 9, 10
_NAMES: Final = frozenset({62, 63, 64})

_REFUSALS: Final = frozenset(
    {
        "TLSV13_ALERT_CERTIFICATE_REQUIRED",
        "TLSV1_ALERT_UNKNOWN_CA",
        "TLSV1_ALERT_ACCESS_DENIED",
        "SSLV3_ALERT_BAD_CERTIFICATE",
        "SSLV3_ALERT_UNSUPPORTED_CERTIFICATE",
        "SSLV3_ALERT_CERTIFICATE_REVOKED",
        "SSLV3_ALERT_CERTIFICATE_EXPIRED",
        "SSLV3_ALERT_CERTIFICATE_UNKNOWN",
    }
)
"""Alerts of a server about the client's certificate, by OpenSSL's names (`sslerr.h`)."""


class _Made(NamedTuple):
    """What was made of the certificates in use."""

    trust: Trust
    roots: str
    context: ssl.SSLContext
    version: int


class TLS:
    """The TLS of all connections to a store; safe to use from several threads, and after forks.

    Args:
        trust: the store's certificates, which are read again when one does not verify.

    Raises:
        InvalidSpec: they are no certificates, or the system has none; or a client's certificate
            and its key do not fit.
    """

    def __init__(self, trust: Trust) -> None:
        self._made = _make(trust, 1)
        self._read = -math.inf
        self._grace = Grace()

    @property
    def roots(self) -> bytes:
        """The certificates in PEM by which servers are trusted."""
        return self._made.roots.encode()

    @property
    def client(self) -> ClientCertificate | None:
        """The certificate to show to servers that ask for one."""
        return self._made.trust.client

    @property
    def context(self) -> ssl.SSLContext:
        """The present certificates for the library."""
        return self._made.context

    @property
    def version(self) -> int:
        """A number that changes with the certificates."""
        return self._made.version

    @property
    def server_name(self) -> str | None:
        """The name that certificates have to have; None for that of each server's host."""
        return self._made.trust.server_name

    def renew(self, used: int) -> bool:
        """Read the certificates again, but not more often than every two seconds.

        Args:
            used: the version of those that failed.

        Returns:
            Whether there are others by now.
        """
        made, now = self._made, monotonic()
        if made.version == used and now - self._read >= _EVERY:
            self._read = now
            trust = made.trust.again()
            if trust != made.trust:
                try:
                    self._made = _make(trust, used + 1)
                except InvalidSpec:  # half-written, or wrong: those before still count
                    return False
        return self._made.version != used

    def accepted(self) -> None:
        """Note that a server was known by its certificate, and took Sluice's."""
        self._grace.accepted()

    def judged(self, error: CertificateRejected) -> BackendError:
        """Return the error to raise for a certificate that is refused, with the present ones.

        If all went well before, and the certificates are those of a file, this may pass.
        """
        if self._made.trust.source is None or not self._grace.may_pass():
            return error
        return StoreUnavailable(
            f"{error.message}, and before it was accepted", field=error.field, remedy=error.remedy
        )

    def explained(self, error: OSError, peer: Endpoint) -> BackendError:
        """Return what a failed handshake with a server means."""
        name = self.server_name or peer.host
        if (unwanted := unwelcome(error, peer)) is not None:
            return unwanted
        if isinstance(error, ssl.SSLCertVerificationError):
            return _distrusted(error, peer, name)
        if isinstance(error, ssl.SSLEOFError | ssl.SSLZeroReturnError) or not isinstance(
            error, ssl.SSLError
        ):
            return StoreUnavailable(
                f"{peer} ended the connection before TLS began", field=ADDRESS, remedy=NO_TLS
            )
        return ProtocolError(
            f"{peer} does not answer with TLS 1.2 or newer ({said(error)})",
            field=ADDRESS,
            remedy=NO_TLS,
        )


def unwelcome(error: OSError, peer: Endpoint) -> CertificateRejected | None:
    """Return the error of a server that refuses the client's certificate, or misses one.

    With TLS 1.3 it says so only once the client takes the connection for made.
    """
    if not isinstance(error, ssl.SSLError) or error.reason not in _REFUSALS:
        return None
    return CertificateRejected(
        f"{peer} does not accept the client's certificate, or asks for one ({said(error)})",
        field=CLIENT,
        remedy="Name a Secret with a certificate that the server in front of the store accepts.",
    )


def said(error: OSError) -> str:
    """Return the reason of an error, without the library's place in its own code."""
    if isinstance(error, ssl.SSLError) and error.reason:
        return error.reason.lower().replace("_", " ")
    return error.strerror or str(error)


def _distrusted(
    error: ssl.SSLCertVerificationError, peer: Endpoint, name: str
) -> CertificateRejected:
    """Return the error of a certificate that does not verify."""
    if error.verify_code in _NAMES:
        return CertificateRejected(
            f"the certificate of {peer} is not for the name {name}",
            field=NAME,
            remedy="Set the StreamStore's tls.serverName to a name that the certificate has, or "
            "give the server a certificate for its address.",
        )
    if error.verify_code in {_TOO_EARLY, _EXPIRED}:
        when = "has expired" if error.verify_code == _EXPIRED else "is not valid yet"
        return CertificateRejected(
            f"the certificate of {peer} {when}",
            field=ADDRESS,
            remedy="Renew the certificate of that server, or of its authority.",
        )
    return CertificateRejected(
        f"the certificate of {peer} is of no trusted authority ({error.verify_message})",
        field=BUNDLE,
    )


def _make(trust: Trust, version: int) -> _Made:
    """Make a context, which checks certificates and their names."""
    roots = system_roots(BUNDLE) if trust.ca is None else certificates(trust.ca)
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    context.minimum_version = ssl.TLSVersion.TLSv1_2
    context.options |= ssl.OP_NO_RENEGOTIATION
    if trust.client is not None:
        _show(context, trust.client)
    try:
        context.load_verify_locations(cadata=roots)
    except (ssl.SSLError, ValueError):
        raise InvalidSpec(
            "the bundle holds no certificates",
            field=BUNDLE,
            remedy="Put certificates in PEM there, which begin with -----BEGIN CERTIFICATE-----.",
        ) from None
    return _Made(trust, roots, context, version)


def _show(context: ssl.SSLContext, client: ClientCertificate) -> None:
    """Have a context show a certificate. The library takes files only, so they are in memory."""
    with _in_memory(client.chain) as chain, _in_memory(client.key) as key:
        first, second = (f"/proc/self/fd/{file.fileno()}" for file in (chain, key))
        try:
            # A password that is asked for would be asked at a terminal.
            context.load_cert_chain(first, second, password="")
        except (OSError, ValueError):
            raise InvalidSpec(
                "the client's certificate and its key are none, or do not fit",
                field=CLIENT,
                remedy="Put a certificate in PEM under tls.crt, and its key without a password "
                "under tls.key.",
            ) from None


def _in_memory(text: str) -> BinaryIO:
    """Return a file that is on no disk."""
    file = os.fdopen(os.memfd_create("tls"), "wb")
    file.write(text.encode())
    file.flush()
    return file
