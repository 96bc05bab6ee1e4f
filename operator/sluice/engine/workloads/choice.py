"""Choose the workload of a request."""

from __future__ import annotations

from typing import TYPE_CHECKING

from sluice.core.archive.request import ArchiveRequest
from sluice.core.copy.planner import CopyRequest
from sluice.core.scope.request import ScopeRequest
from sluice.engine.workloads.archive import ArchiveWorkload
from sluice.engine.workloads.scope import ScopeWorkload
from sluice.engine.workloads.stream import StreamWorkload

if TYPE_CHECKING:
    from sluice.core.workloads.request import Request
    from sluice.engine.workloads.workload import Workload


def workload_of(request: Request) -> Workload:
    """Give the workload of a request."""
    match request:
        case CopyRequest():
            return StreamWorkload(request)
        case ScopeRequest():
            return ScopeWorkload(request)
        case ArchiveRequest():
            return ArchiveWorkload(request)
