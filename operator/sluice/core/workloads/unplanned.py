"""Plans that only a driver can make: of archives in volumes, into which only pods can look."""

from __future__ import annotations

import hashlib

from pydantic import Field
from pydantic_core import from_json

from sluice.core.archive.request import ArchiveRequest
from sluice.core.copy.plan import StreamPlan
from sluice.core.copy.planner import CopyRequest
from sluice.core.scope.request import ScopeRequest
from sluice.core.workloads.plan import Plan


class Unplanned(Plan):
    """What is to be planned and carried out, in place of a plan. It has nothing to look at.

    Attributes:
        copying: a copy from archives.
        archiving: a run of an archive.
        scoping: the streams of a scope, from archives.
        run: of these, which run it is: what is over in the one before is planned again.
    """

    streams: tuple[StreamPlan, ...] = ()
    copying: CopyRequest | None = None
    archiving: ArchiveRequest | None = None
    scoping: ScopeRequest | None = None
    run: int = Field(default=1, ge=1)

    @property
    def hash(self) -> str:
        """SHA-256 of what is wanted, in hexadecimal digits."""
        return hashlib.sha256(self.model_dump_json().encode()).hexdigest()


def read_plan(text: str | bytes) -> Plan:
    """A plan, or what is to be planned, from its JSON.

    Raises:
        ValidationError: it is neither.
    """
    return (Unplanned if _is_unplanned(text) else Plan).model_validate_json(text)


def _is_unplanned(text: str | bytes) -> bool:
    """Whether JSON has a field that no plan has. Streams, scopes and tags may have its name."""
    try:
        body = from_json(text)
    except ValueError:
        return False
    return isinstance(body, dict) and "copying" in body
