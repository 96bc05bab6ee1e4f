"""Names of the scratch streams that restore drills make and delete."""

from __future__ import annotations

import hashlib
import re
from typing import Final

_PREFIX: Final = "sluice-drill-"
_NAME: Final = re.compile(re.escape(_PREFIX) + "[0-9a-f]{32}")


def scratch_name(uid: str) -> str:
    """Return the name of the scratch stream of the resource with this UID, which no other has."""
    return _PREFIX + hashlib.sha256(uid.encode()).hexdigest()[:32]


def is_scratch(stream: str) -> bool:
    """Tell whether a stream has the name of a scratch stream."""
    return _NAME.fullmatch(stream) is not None
