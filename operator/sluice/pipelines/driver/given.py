"""Files that the operator hands to a driver in a ConfigMap, read once and compared with its word.

Who may change ConfigMaps in a namespace need not be who may make pods there. So a driver runs from
a plan, and makes executors from a template, only if these are what its Job's arguments name.
"""

from __future__ import annotations

import hashlib
from typing import TYPE_CHECKING

from sluice.errors import InfrastructureError

if TYPE_CHECKING:
    from pathlib import Path


def read_given(path: Path, sha256: str | None) -> bytes:
    """Read a file.

    Args:
        path: the file.
        sha256: of its bytes, in hexadecimal digits; None where nobody has named one.

    Raises:
        OSError: it cannot be read.
        InfrastructureError: it has other bytes.
    """
    data = path.read_bytes()
    if sha256 is not None and hashlib.sha256(data).hexdigest() != sha256:
        raise InfrastructureError(
            f"{path.name} is not what the operator wrote: its ConfigMap was changed",
            remedy="Find out who changes ConfigMaps of this namespace. Nothing was done; the next "
            "attempt gets a ConfigMap of its own.",
        )
    return data
