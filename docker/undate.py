# noqa: INP001 - a script of the Dockerfile's
"""Give all certificates in Java's key store one date, so that two builds make the same file.

    undate.py KEYSTORE PASSWORD

Debian makes the file when it installs Java. Its format (JKS) has a date for each certificate.
"""

from __future__ import annotations

import hashlib
import struct
import sys
from pathlib import Path

MAGIC = 0xFEEDFEED
CERTIFICATE = 2
"""The tag of an entry with a certificate and no key."""

DIGEST_BYTES = 20
PREFIX = b"Mighty Aphrodite"
"""The bytes between password and content in the input of a store's digest: see
`sun.security.provider`."""


def undated(store: bytes, password: str) -> bytes:
    """Return a key store of certificates, each with the date 0.

    Raises:
        ValueError: the store is damaged, has another password, or has more than certificates.
    """
    if _digest(store[:-DIGEST_BYTES], password) != store[-DIGEST_BYTES:]:
        raise ValueError("the store is damaged, or has another password")
    magic, _, count = struct.unpack_from(">III", store)
    made, at = bytearray(store[:-DIGEST_BYTES]), 12
    for _ in range(count):
        (tag,) = struct.unpack_from(">I", store, at)
        if (magic, tag) != (MAGIC, CERTIFICATE):
            raise ValueError("the store has more than certificates")
        at = _after_text(store, at + 4)
        made[at : at + 8] = bytes(8)
        at = _after_text(store, at + 8)
        (length,) = struct.unpack_from(">I", store, at)
        at += 4 + length
    return bytes(made) + _digest(bytes(made), password)


def _after_text(store: bytes, at: int) -> int:
    """Return the offset after a text."""
    (length,) = struct.unpack_from(">H", store, at)
    return at + 2 + int(length)


def _digest(contents: bytes, password: str) -> bytes:
    """Return the digest of a store's content."""
    secret = password.encode("utf-16-be") + PREFIX
    return hashlib.sha1(secret + contents).digest()  # noqa: S324 - the form's own


def main() -> None:
    """Rewrite the file."""
    path = Path(sys.argv[1])
    path.write_bytes(undated(path.read_bytes(), sys.argv[2]))


if __name__ == "__main__":
    main()
