"""Choose the workload of a request."""

from __future__ import annotations

from typing import TYPE_CHECKING

from sluice.api.kinds.streamarchive import StreamArchive
from sluice.core.archive.request import ArchiveRequest
from sluice.core.scope.request import ScopeRequest
from sluice.core.values import identity
from sluice.core.workloads.request import archive_id
from sluice.engine.workloads.archive import ArchiveWorkload
from sluice.engine.workloads.scope import ScopeWorkload
from sluice.engine.workloads.stream import StreamWorkload

if TYPE_CHECKING:
    from sluice.api.registry import Copy
    from sluice.core.workloads.request import Request
    from sluice.engine.workloads.workload import Workload


def identity_of(resource: Copy, *, cluster: str) -> str:
    """Give a resource's identity in stores."""
    if isinstance(resource, StreamArchive):
        return archive_id(resource, cluster=cluster)
    return identity.copy_id(
        cluster=cluster,
        namespace=resource.metadata.namespace,
        name=resource.metadata.name,
        identity=resource.spec.identity(),
    )


def workload_of(request: Request) -> Workload:
    """Give the workload of a request."""
    if isinstance(request, ArchiveRequest):
        return ArchiveWorkload(request)
    return ScopeWorkload(request) if isinstance(request, ScopeRequest) else StreamWorkload(request)
