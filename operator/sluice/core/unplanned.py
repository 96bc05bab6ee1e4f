"""Plans that only a driver can make: of archives in volumes, into which only pods can look."""

from __future__ import annotations

import hashlib

from sluice.core.archive.request import ArchiveRequest
from sluice.core.plan import Plan, StreamPlan
from sluice.core.planner import CopyRequest


class Unplanned(Plan):
    """What is to be planned and carried out, in place of a plan. It has nothing to look at.

    Attributes:
        copying: a copy from archives.
        archiving: a run of an archive.
    """

    streams: tuple[StreamPlan, ...] = ()
    copying: CopyRequest | None = None
    archiving: ArchiveRequest | None = None

    @property
    def hash(self) -> str:
        """SHA-256 of what is wanted, in hexadecimal digits."""
        return hashlib.sha256(self.model_dump_json().encode()).hexdigest()


def read_plan(text: str | bytes) -> Plan:
    """A plan, or what is to be planned, from its JSON.

    Raises:
        ValidationError: it is neither.
    """
    if b'"copying"' in (text.encode() if isinstance(text, str) else text):
        return Unplanned.model_validate_json(text)
    return Plan.model_validate_json(text)
