"""Requests that only a driver can plan: for archives in volumes, which only pods can read."""

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
    """Request that stands in place of a plan, for the driver to plan and carry out.

    Attributes:
        copying: a copy from an archive.
        archiving: a run of an archive.
        scoping: a copy of a scope from archives.
        run: the number of the scope's run; a later run plans again what failed before.
    """

    streams: tuple[StreamPlan, ...] = ()
    copying: CopyRequest | None = None
    archiving: ArchiveRequest | None = None
    scoping: ScopeRequest | None = None
    run: int = Field(default=1, ge=1)

    @property
    def hash(self) -> str:
        """SHA-256 of the request, in hexadecimal digits."""
        return hashlib.sha256(self.model_dump_json().encode()).hexdigest()


def read_plan(text: str | bytes) -> Plan:
    """Read a plan, or an `Unplanned`, from its JSON.

    Raises:
        ValidationError: the JSON is neither.
    """
    return (Unplanned if _is_unplanned(text) else Plan).model_validate_json(text)


def _is_unplanned(text: str | bytes) -> bool:
    """Tell whether JSON is an `Unplanned`, by a field that no plan has.

    The JSON is parsed, since streams, scopes and tags may have the field's name.
    """
    try:
        body = from_json(text)
    except ValueError:
        return False
    return isinstance(body, dict) and "copying" in body
