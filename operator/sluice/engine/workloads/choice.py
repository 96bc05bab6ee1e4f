"""Choose the workload of a resource, or of the request that stands in place of its plan."""

from __future__ import annotations

from typing import TYPE_CHECKING

from sluice.api.kinds.scopecopy import ScopeCopy
from sluice.api.kinds.streamarchive import StreamArchive
from sluice.core.values import identity
from sluice.core.workloads.request import archive_id, archive_request, copy_request, scope_request
from sluice.core.workloads.unplanned import UnplannedArchiveRun, UnplannedCopy, UnplannedScopeCopy
from sluice.engine.workloads.archive import ArchiveWorkload
from sluice.engine.workloads.scope import ScopeWorkload
from sluice.engine.workloads.stream import StreamWorkload

if TYPE_CHECKING:
    from sluice.api.registry import Copy
    from sluice.core.workloads.unplanned import Unplanned
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


def workload_of(
    resource: Copy, *, cluster: str, tasks: int, run_key: str | None = None
) -> Workload:
    """Give the workload of a resource.

    Args:
        resource: the resource.
        cluster: name of the cluster, which differs between clusters that share a store.
        tasks: how many tasks will run at once.
        run_key: for an archive, the key of the run.
    """
    if isinstance(resource, StreamArchive):
        return ArchiveWorkload(archive_request(resource, cluster=cluster, run_key=run_key))
    if isinstance(resource, ScopeCopy):
        return ScopeWorkload(scope_request(resource, cluster=cluster, tasks=tasks))
    return StreamWorkload(copy_request(resource, cluster=cluster, tasks=tasks))


def workload_left(wanted: Unplanned) -> Workload:
    """Give the workload that a driver has to plan itself."""
    match wanted:
        case UnplannedScopeCopy():
            return ScopeWorkload(wanted.scoping)
        case UnplannedArchiveRun():
            return ArchiveWorkload(wanted.archiving)
        case UnplannedCopy():
            return StreamWorkload(wanted.copying)
        case _:
            raise TypeError(f"a {type(wanted).__name__} has no request")
