"""Requests that only a driver can plan: for archives in volumes, which only pods can read."""

from __future__ import annotations

import hashlib
from typing import TYPE_CHECKING, Final

from pydantic import Field
from pydantic_core import from_json

from sluice.core.archive.request import ArchiveRequest
from sluice.core.copy.planner import CopyRequest
from sluice.core.scope.request import ScopeRequest
from sluice.core.workloads.plan import ArchiveRunPlan, Plan, ScopeCopyPlan, StreamCopyPlan

if TYPE_CHECKING:
    from sluice.core.workloads.request import Request


class Unplanned(Plan):
    """A request that stands in place of a plan: one of the classes below. It has nothing to watch.

    All have the same fields in JSON, of which one is a request, and the others are null.
    """

    scope: None = None
    copying: CopyRequest | None = None
    archiving: ArchiveRequest | None = None
    scoping: ScopeRequest | None = None
    run: int = Field(default=1, ge=1)

    @property
    def request(self) -> Request:
        """The request.

        Raises:
            ValueError: there is none.
        """
        request = self.copying or self.archiving or self.scoping
        if request is None:
            raise ValueError(f"a {type(self).__name__} has no request")
        return request

    @property
    def hash(self) -> str:
        """SHA-256 of the request, in hexadecimal digits."""
        return hashlib.sha256(self.model_dump_json().encode()).hexdigest()


class UnplannedCopy(Unplanned):
    """A StreamCopy from archives that only its driver can read.

    Attributes:
        copying: the copy.
    """

    copying: CopyRequest
    archiving: None = None
    scoping: None = None


class UnplannedArchiveRun(Unplanned):
    """A run of an archive that only its driver can read.

    Attributes:
        archiving: the run.
    """

    copying: None = None
    archiving: ArchiveRequest
    scoping: None = None


class UnplannedScopeCopy(Unplanned):
    """A run of a ScopeCopy from archives that only its driver can read.

    Attributes:
        scoping: the copy.
        run: the number of the run. A later run plans failed streams of the run before again.
    """

    copying: None = None
    archiving: None = None
    scoping: ScopeRequest


def read_plan(text: str | bytes) -> Plan:
    """Read a plan, or a request in place of it, from JSON.

    Raises:
        ValidationError: the JSON is neither.
    """
    return _class_of(text).model_validate_json(text)


def _class_of(text: str | bytes) -> type[Plan]:
    """Return the class of a plan by the fields at the top: names of streams are further below."""
    try:
        body = from_json(text)
    except ValueError:
        return StreamCopyPlan
    if not isinstance(body, dict):
        return StreamCopyPlan
    for field, found in _BY_FIELD.items():
        if body.get(field) is not None:
            return found
    return StreamCopyPlan


_BY_FIELD: Final[dict[str, type[Plan]]] = {
    "copying": UnplannedCopy,
    "archiving": UnplannedArchiveRun,
    "scoping": UnplannedScopeCopy,
    "archive": ArchiveRunPlan,
    "scope": ScopeCopyPlan,
}
"""The class of a plan that has a value in a field."""
