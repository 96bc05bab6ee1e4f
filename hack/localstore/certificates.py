"""An authority of the tests, and certificates for servers and clients, made by openssl."""

import subprocess
from dataclasses import dataclass
from ipaddress import ip_address
from pathlib import Path

from localstore.errors import LocalStoreError
from localstore.java import jdk_tool

_SECONDS = 60.0
_DAYS = 2

STORE_PASSWORD = "1111_aaaa"  # noqa: S105 - standalone has it in its code
"""The password of keystores: `InProcPravegaCluster` uses this one to clean its ZooKeeper up."""


@dataclass(frozen=True)
class Certificate:
    """A certificate and its key, as files in PEM.

    Attributes:
        chain: the certificate, and that of its authority behind it.
        key: its private key.
    """

    chain: Path
    key: Path


class Authority:
    """A certificate authority.

    Args:
        folder: directory of its files, which exists.
        name: its name, and part of the files' names.

    Attributes:
        bundle: its own certificate, in PEM.
    """

    def __init__(self, folder: Path, name: str = "ca") -> None:
        self._folder = folder
        self._key = folder / f"{name}.key"
        self.bundle = folder / f"{name}.crt"
        _openssl(
            *_new_key(self._key, name),
            *("-x509", "-out", self.bundle, "-days", _DAYS),
            *("-addext", "basicConstraints=critical,CA:TRUE"),
            *("-addext", "keyUsage=critical,keyCertSign"),
        )

    def issue(self, name: str, *hosts: str, days: int = _DAYS) -> Certificate:
        """Make a certificate.

        Args:
            name: its name, and part of the files' names.
            hosts: names and IP addresses that it is for.
            days: its life; it has expired if that is negative.
        """
        key, request = self._folder / f"{name}.key", self._folder / f"{name}.csr"
        chain, extensions = self._folder / f"{name}.crt", self._folder / f"{name}.ext"
        _openssl(*_new_key(key, name), "-out", request)
        names = ",".join(map(_alternative, hosts))
        extensions.write_text(f"subjectAltName={names}\n" if names else "")
        _openssl(
            *("x509", "-req", "-in", request, "-out", chain, "-days", days, "-sha256"),
            *("-CA", self.bundle, "-CAkey", self._key, "-CAcreateserial", "-extfile", extensions),
        )
        chain.write_text(chain.read_text() + self.bundle.read_text())
        return Certificate(chain, key)


def keystores(certificate: Certificate, authority: Authority, folder: Path) -> tuple[Path, Path]:
    """Make a keystore with a certificate, and a truststore with its authority.

    Returns:
        The two files. Their password is STORE_PASSWORD.
    """
    bundled, keys, trusted = folder / "server.p12", folder / "server.jks", folder / "trust.jks"
    _openssl(
        *("pkcs12", "-export", "-in", certificate.chain, "-inkey", certificate.key),
        *("-out", bundled, "-name", "server", "-passout", f"pass:{STORE_PASSWORD}"),
    )
    for made in (keys, trusted):
        made.unlink(missing_ok=True)
    password = ("-storepass", STORE_PASSWORD, "-noprompt")
    keytool = jdk_tool("keytool")
    _run(
        *(keytool, "-importkeystore", "-srckeystore", bundled, "-srcstoretype", "PKCS12"),
        *("-srcstorepass", STORE_PASSWORD, "-destkeystore", keys, "-deststoretype", "JKS"),
        *("-deststorepass", STORE_PASSWORD, "-noprompt"),
    )
    _run(
        *(keytool, "-importcert", "-alias", "ca", "-file", authority.bundle),
        *("-keystore", trusted, "-storetype", "JKS", *password),
    )
    return keys, trusted


def _new_key(key: Path, name: str) -> tuple[object, ...]:
    """Return the beginning of a call that makes a key, without a password."""
    curve = ("-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:prime256v1")
    return ("req", *curve, "-nodes", "-keyout", key, "-subj", f"/CN={name}")


def _alternative(host: str) -> str:
    try:
        ip_address(host)
    except ValueError:
        return f"DNS:{host}"
    return f"IP:{host}"


def _openssl(*arguments: object) -> None:
    _run("openssl", *arguments)


def _run(*words: object) -> None:
    done = subprocess.run(
        [str(word) for word in words],
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        check=False,
        timeout=_SECONDS,
    )
    if done.returncode != 0:
        raise LocalStoreError(f"{words[0]} failed:\n{done.stderr[-2000:] or done.stdout[-2000:]}")
