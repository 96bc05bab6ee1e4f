"""ScopeCopies to archives and from them, for tests of `reconcile`; see `scope_copies`."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from sluice.core.copy.plan import SourceStream
from sluice.core.scope.request import RestoreFrom, ScopeRequest
from sluice.core.values.model import ArchivedRun, StoreAddress, StreamName
from sluice.core.workloads.answers import Planned, ScopeEnded
from sluice.core.workloads.unplanned import UnplannedScopeCopy
from support.engine.plans import ADDRESS
from support.reconcile import archives_seen
from support.reconcile.copies import COPY_ID
from support.reconcile.scope_copies import copied, scope_plan, stream

if TYPE_CHECKING:
    from sluice.core.archive.manifest import Parent
    from sluice.core.archive.plan import ArchivePlan
    from sluice.core.copy.plan import StreamPlan
    from sluice.core.workloads.plan import ScopeCopyPlan

BUCKET: Final = StoreAddress(backend="s3", uri="s3://archives")
FOLDER: Final = {"storeRef": {"name": "archives"}, "path": "backup/in"}
ARCHIVED: Final[dict[str, Any]] = {"target": {"archive": FOLDER}}
RESTORED: Final[dict[str, Any]] = {"source": {"archive": FOLDER}}


def run_plan(name: str, size: int = 1000, *, parent: Parent | None = None) -> ArchivePlan:
    """Return the plan of one stream's run."""
    bare = archives_seen.plan(size).archive
    source = StreamName(scope="in", stream=name)
    changes = {"source": source, "path": f"backup/in/{name}", "parent": parent}
    return bare.model_copy(update=changes)


def archive_plan(*runs: ArchivePlan, **changes: Any) -> ScopeCopyPlan:
    """Return the plan to archive a scope's streams, with some fields of ScopePlan set."""
    bare = scope_plan(target="backup/in", **changes)
    return bare.model_copy(update={"target": BUCKET, "streams": (), "runs": runs})


def restored(name: str, run: int = 1) -> StreamPlan:
    """Return the plan to restore one stream from a run."""
    pinned = ArchivedRun(path=f"backup/in/{name}", run=run, sha256=f"{run:064x}")
    source = SourceStream(stream=StreamName(scope="in", stream=name), archive=pinned)
    return stream(name).model_copy(update={"sources": (source,)})


def restore_plan(*streams: StreamPlan, **changes: Any) -> ScopeCopyPlan:
    """Return the plan to restore streams, with some fields of ScopePlan set."""
    bare = scope_plan(*streams, source="backup/in", **changes)
    return bare.model_copy(update={"sources": (BUCKET,), "target": ADDRESS})


_ALL: Final = archive_plan(run_plan("a", 3000), run_plan("b"), run_plan("c"))
_BOTH: Final = restore_plan(restored("a"), restored("b"))
ARCHIVING: Final = Planned(plan=_ALL)
RESTORING: Final = Planned(plan=_BOTH)
UNPLANNED: Final = UnplannedScopeCopy(
    sources=(StoreAddress(backend="volume", uri="volume://archives"),),
    target=ADDRESS,
    scoping=ScopeRequest(scope_id=COPY_ID, source="backup/in", target="out", restore=RestoreFrom()),
)
"""The request from which a driver has to plan archives in a volume."""

WHOLE: Final = ScopeEnded(plan=_ALL, results=(copied("a", 3000), copied("b"), copied("c")))
BACK: Final = ScopeEnded(plan=_BOTH, results=(copied("a"), copied("b")))
