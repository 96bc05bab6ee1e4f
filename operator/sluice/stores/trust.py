"""The certificates of both ends of a connection with TLS, read from files and never shown."""

from __future__ import annotations

import re
import ssl
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Final, NamedTuple

from sluice.errors import AuthenticationFailed, InvalidSpec
from sluice.stores.credentials import read_file

CLIENT_KEYS: Final = ("tls.crt", "tls.key")
"""The keys of a Secret of type kubernetes.io/tls."""

_CERTIFICATE: Final = re.compile(
    r"-----BEGIN CERTIFICATE-----[A-Za-z0-9+/=\s]+-----END CERTIFICATE-----"
)


class ClientCertificate(NamedTuple):
    """A certificate by which a server knows Sluice, with its chain, and its key; both in PEM."""

    chain: str
    key: str

    def __repr__(self) -> str:
        """Return the class alone: the key is a secret."""
        return f"{type(self).__name__}()"

    @classmethod
    def read(cls, secret: str, folder: Path | None) -> ClientCertificate:
        """Read `<folder>/<secret>/tls.crt` and `.../tls.key`. AuthenticationFailed."""
        return cls(*(read_file(secret, key, folder, keys=CLIENT_KEYS) for key in CLIENT_KEYS))


class _Files(NamedTuple):
    """Where the parts of a Trust are read from: `NAME/KEY`, a Secret's name, and the folder."""

    ca: str | None
    client: str | None
    folder: Path | None


@dataclass(frozen=True, slots=True, kw_only=True)
class Trust:
    """How a store proves that it is the store, and Sluice that it is Sluice.

    Attributes:
        ca: certificates in PEM, by which alone the store is trusted; None for the system's.
        server_name: the name that its certificates have to have; None for the host of each server.
        client: the certificate to show to servers that ask for one; None for none.
    """

    ca: str | None = field(default=None, repr=False)
    server_name: str | None = None
    client: ClientCertificate | None = field(default=None, repr=False)
    source: _Files | None = field(default=None, repr=False, compare=False)
    """The files that the certificates were read from; None if they were given."""

    @classmethod
    def read(
        cls,
        ca: str | None,
        folder: Path | None,
        *,
        client: str | None = None,
        server_name: str | None = None,
    ) -> Trust:
        """Read certificates as Kubernetes mounts them.

        Args:
            ca: the file of the bundle in the folder, `NAME/KEY`; None for the system's.
            folder: the folder of Secrets and ConfigMaps; None if the process has none.
            client: the Secret with the client's certificate; None for none.
            server_name: see the class.

        Raises:
            AuthenticationFailed: there is no such folder or file, or a file is empty.
        """
        named = _Files(ca, client, folder) if ca or client else None
        return _filled(cls(server_name=server_name, source=named))

    def again(self) -> Trust:
        """Read the files again. Return the same certificates if there are none, or they fail."""
        try:
            return _filled(self)
        except AuthenticationFailed:
            return self


def _filled(trust: Trust) -> Trust:
    """Read the files of a Trust."""
    if trust.source is None:
        return trust
    ca, client, folder = trust.source
    return replace(
        trust,
        ca=None if ca is None else read_bundle(ca, folder),
        client=None if client is None else ClientCertificate.read(client, folder),
    )


def read_bundle(file: str, folder: Path | None) -> str:
    """Read a bundle of certificates in a folder. `file` is `NAME/KEY`. AuthenticationFailed."""
    name, _, key = file.rpartition("/")
    return read_file(name, key, folder, keys=(key,))


def certificates(text: str) -> str:
    """Return the certificates in a text, each once, in PEM, without all that is between them."""
    return "\n".join([*dict.fromkeys(_CERTIFICATE.findall(text)), ""])


def system_roots(field: str | None = None) -> str:
    """Return the certificates in PEM that this system trusts.

    The environment may name them, as for OpenSSL: SSL_CERT_FILE, or, where there is no such file,
    the folder SSL_CERT_DIR.

    Args:
        field: the field of the StreamStore that names other certificates, for the error.

    Raises:
        InvalidSpec: the system has none.
    """
    place = ssl.get_default_verify_paths()
    files = [Path(place.cafile)] if place.cafile else []
    if not files and place.capath:  # as on Debian, with links to each certificate
        files = sorted(path for path in Path(place.capath).iterdir() if path.is_file())
    found = certificates("\n".join(path.read_text("utf-8", "replace") for path in files))
    if not found.strip():
        raise InvalidSpec(
            "this system has no certificates of authorities to trust a store by",
            field=field,
            remedy="Name a bundle of certificates in the StreamStore.",
        )
    return found
