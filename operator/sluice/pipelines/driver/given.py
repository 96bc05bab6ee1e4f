"""Read files that the operator gave to a driver in a ConfigMap, and check their digests.

A user who may change ConfigMaps in a namespace may not be allowed to create pods there. So a driver
uses a plan or a template only if its digest is the one in the arguments of its Job.
"""

from __future__ import annotations

import hashlib
from typing import TYPE_CHECKING

from sluice.errors import InfrastructureError

if TYPE_CHECKING:
    from pathlib import Path


def read_given(path: Path, sha256: str | None) -> bytes:
    """Read a file and check its digest.

    Args:
        path: the file.
        sha256: the expected SHA-256, in hexadecimal digits; None to skip the check.

    Raises:
        OSError: the file cannot be read.
        InfrastructureError: the file has another digest.
    """
    data = path.read_bytes()
    if sha256 is not None and hashlib.sha256(data).hexdigest() != sha256:
        raise InfrastructureError(
            f"{path.name} is not what the operator wrote: its ConfigMap was changed",
            remedy="Find out who changes ConfigMaps of this namespace. Nothing was done; the next "
            "attempt gets a ConfigMap of its own.",
        )
    return data
