"""Turn objects of the API into models of our own kinds; name finalizers and annotations."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any, Final, TypeVar

from pydantic import ValidationError

from sluice.api.fields.common import GROUP, Resource
from sluice.api.kinds.scopecopy import ScopeCopy, ScopeCopySpec
from sluice.api.kinds.streamarchive import StreamArchive, StreamArchiveSpec
from sluice.api.kinds.streamcopy import StreamCopy, StreamCopySpec
from sluice.api.load import invalid
from sluice.api.registry import DRIVEN, KINDS, Copy
from sluice.api.status.archive_status import StreamArchiveStatus
from sluice.api.status.common import MOST_TOKEN, CopyingStatus
from sluice.api.status.ephemeral_status import EphemeralStreamStatus
from sluice.api.status.query_status import StreamQueryStatus
from sluice.api.status.scope_status import ScopeCopyStatus
from sluice.core.reconcile.copies.archive_seen import ArchiveSeen
from sluice.core.reconcile.copies.drill.seen import times as drill_times
from sluice.core.reconcile.copies.scheduled.seen import ScheduledScopeSeen, times
from sluice.core.reconcile.copies.seen import CopySeen
from sluice.core.reconcile.ephemeral.world import EphemeralSeen
from sluice.core.reconcile.queries.verifying import times as verify_times
from sluice.core.reconcile.queries.world import QuerySeen
from sluice.core.values.trouble import Trouble
from sluice.errors import InvalidSpec
from sluice.kube.api.kinds import (
    COPIES,
    EPHEMERAL_STREAM,
    OWN,
    STREAM_COPY,
    STREAM_QUERY,
    STREAM_STORE,
)

if TYPE_CHECKING:
    from collections.abc import Sequence

    from sluice.api.fields.scopeplaces import ScopeSource, ScopeTarget
    from sluice.api.kinds.ephemeralstream import EphemeralStream
    from sluice.api.kinds.streamarchive import ArchivedStream, Destination
    from sluice.api.kinds.streamcopy import SourceSpec, Target
    from sluice.api.kinds.streamquery import StreamQuery
    from sluice.kube.api.kinds import Object

    Origin = SourceSpec | ScopeSource | ArchivedStream
    Goal = Target | ScopeTarget | Destination

R = TypeVar("R", bound=Resource)

CopySpec = StreamCopySpec | ScopeCopySpec | StreamArchiveSpec
"""The specs of the kinds that drivers work for."""

_COPIES: Final = {kind.name: kind.model for kind in DRIVEN}

STATUSES: Final = {
    OWN[kind.name]: kind.status for kind in DRIVEN if issubclass(kind.status, CopyingStatus)
}
"""The status models of the kinds that drivers work for."""

FINALIZERS: Final = {OWN[kind.name]: f"{GROUP}/{kind.finalizer}" for kind in KINDS}
"""The finalizer of each kind. An object has it while something of it is in a store, or, for a
StreamStore, while a resource needs it."""

STAGING_FINALIZER: Final = FINALIZERS[STREAM_COPY]
STREAMS_FINALIZER: Final = FINALIZERS[EPHEMERAL_STREAM]
QUERY_FINALIZER: Final = FINALIZERS[STREAM_QUERY]
IN_USE_FINALIZER: Final = FINALIZERS[STREAM_STORE]
REQUESTED_AT: Final = f"{GROUP}/requestedAt"
DRILL_REQUESTED_AT: Final = f"{GROUP}/drillRequestedAt"
VERIFY_REQUESTED_AT: Final = f"{GROUP}/verifyRequestedAt"
FORCE_ORPHAN: Final = f"{GROUP}/force-orphan"


def parse(body: Object, model: type[R]) -> R:
    """Parse an object into a resource.

    Raises:
        InvalidSpec: this version cannot read the object.
    """
    try:
        return model.model_validate(body)
    except ValidationError as error:
        raise invalid(error, model.__name__) from error


def parse_copy(body: Object) -> Copy:
    """Parse an object into a resource that drivers work for.

    Raises:
        InvalidSpec: this version cannot read the object.
        TypeError: drivers do not work for this kind.
    """
    resource = parse(body, _COPIES.get(body["kind"], StreamCopy))
    if not isinstance(resource, Copy):
        raise TypeError(f"no driver works for a {type(resource).__name__}")
    return resource


def ephemeral_seen(body: Object, resource: EphemeralStream) -> EphemeralSeen:
    """Return an EphemeralStream as its reconcile function needs it."""
    meta = body["metadata"]
    return EphemeralSeen(
        name=meta["name"],
        namespace=meta["namespace"],
        uid=meta["uid"],
        generation=meta.get("generation", 0),
        created=datetime.fromisoformat(meta["creationTimestamp"]),
        spec=resource.spec,
        status=EphemeralStreamStatus.read(body.get("status")),
        requested_at=requested_at(body),
        references=frozenset(one["uid"] for one in meta.get("ownerReferences") or ()),
        finalizer=has_finalizer(body, STREAMS_FINALIZER),
        deleted=_deleted_for(meta),
        force_orphan=wants_orphan(body),
    )


def query_seen(body: Object, resource: StreamQuery, query_id: str) -> QuerySeen:
    """Return a StreamQuery as its reconcile function needs it."""
    meta = body["metadata"]
    status = StreamQueryStatus.read(body.get("status"))
    due: tuple[datetime | None, datetime | None] = (None, None)
    trouble = None
    try:
        due = verify_times(resource.spec.verify, status.verification, now=datetime.now(UTC))
    except InvalidSpec as error:  # a bad schedule must not stop the care for the query itself
        trouble = Trouble.of(error)
    return QuerySeen(
        name=meta["name"],
        namespace=meta["namespace"],
        uid=meta["uid"],
        generation=meta.get("generation", 0),
        query_id=query_id,
        spec=resource.spec,
        status=status,
        requested_at=requested_at(body),
        verify_requested_at=requested_at(body, VERIFY_REQUESTED_AT),
        verify_due=due[0],
        verify_later=due[1],
        verify_trouble=trouble,
        finalizer=has_finalizer(body, QUERY_FINALIZER),
        deleted=_deleted_for(meta),
        force_orphan=wants_orphan(body),
    )


def origins_of(resource: Copy) -> Sequence[tuple[str, Origin]]:
    """Return a copy's sources in order, each with the field of the spec that names it."""
    return resource.spec.origins


def goal_of(resource: Copy) -> tuple[str, Goal]:
    """Return a copy's target, with the field of the spec that names it."""
    return resource.spec.goal


def copy_seen(body: Object, resource: Copy, copy_id: str) -> CopySeen:
    """Return a copy as `reconcile` needs it.

    Raises:
        InvalidSpec: a schedule never comes due.
    """
    meta = body["metadata"]
    common: dict[str, Any] = {
        "name": meta["name"],
        "uid": meta["uid"],
        "generation": meta.get("generation", 0),
        "copy_id": copy_id,
        "requested_at": requested_at(body),
        "finalizer": has_finalizer(body, STAGING_FINALIZER),
        "deleted": _deleted_for(meta),
        "force_orphan": wants_orphan(body),
    }
    match resource:
        case StreamArchive(spec=archive):
            status = StreamArchiveStatus.read(body.get("status"))
            due, later = _times(body, archive, status)
            drills: tuple[datetime | None, datetime | None] = (None, None)
            if not is_deleting(body):  # as in _times
                drills = drill_times(archive.verify, status.drill, now=datetime.now(UTC))
            return ArchiveSeen(
                spec=archive,
                status=status,
                due=due,
                later=later,
                drill_due=drills[0],
                drill_later=drills[1],
                drill_requested_at=requested_at(body, DRILL_REQUESTED_AT),
                **common,
            )
        case ScopeCopy(spec=scope) if scope.schedule is not None:
            of_scope = ScopeCopyStatus.read(body.get("status"))
            due, later = _times(body, scope, of_scope)
            return ScheduledScopeSeen(spec=scope, status=of_scope, due=due, later=later, **common)
    status_of_kind = STATUSES[COPIES[resource.kind]].read(body.get("status"))
    return CopySeen(spec=resource.spec, status=status_of_kind, **common)


def _times(
    body: Object,
    spec: StreamArchiveSpec | ScopeCopySpec,
    status: StreamArchiveStatus | ScopeCopyStatus,
) -> tuple[datetime | None, datetime | None]:
    """Return the times of a run that is due, and of the next one; see `times`."""
    if is_deleting(body):  # a bad schedule must not block the deletion
        return None, None
    created = datetime.fromisoformat(body["metadata"]["creationTimestamp"])
    return times(spec, status, created=created, now=datetime.now(UTC))


def requested_at(body: Object, annotation: str = REQUESTED_AT) -> str | None:
    """Return the annotation by which a user asks for a run now; None without one."""
    annotations = body["metadata"].get("annotations") or {}
    return str(annotations.get(annotation, ""))[:MOST_TOKEN] or None


def _deleted_for(meta: Object) -> float | None:
    """Return the seconds since an object was deleted; None if it was not."""
    deleted = meta.get("deletionTimestamp")
    if deleted is None:
        return None
    since = (datetime.now(UTC) - datetime.fromisoformat(deleted)).total_seconds()
    return max(0.0, since)


def wants_orphan(body: Object) -> bool:
    """Tell whether a user insists on deleting an object, even if it leaves data in a store."""
    annotations = body["metadata"].get("annotations") or {}
    return annotations.get(FORCE_ORPHAN, "") not in {"", "false"}


def has_finalizer(body: Object, finalizer: str) -> bool:
    """Tell whether an object has a finalizer."""
    return finalizer in (body["metadata"].get("finalizers") or [])


def is_scheduled(body: Object) -> bool:
    """Tell whether an object has a schedule, even a suspended one."""
    return (body.get("spec") or {}).get("schedule") is not None


def is_followed(body: Object) -> bool:
    """Tell whether an object is a copy that follows its source, and has begun to."""
    spec, status = body.get("spec") or {}, body.get("status") or {}
    return spec.get("mode") == "Continuous" and isinstance(status.get("follow"), dict)


def is_drilled(body: Object) -> bool:
    """Tell whether an object has restore drills, even suspended ones."""
    verify = (body.get("spec") or {}).get("verify")
    return isinstance(verify, dict) and isinstance(verify.get("schedule"), dict)


def driver_namespace(body: Object) -> str | None:
    """Return the namespace of a copy's drivers, if its status says that it is another one."""
    found = (body.get("status") or {}).get("driverNamespace")
    return found if isinstance(found, str) else None


def is_deleting(body: Object) -> bool:
    """Tell whether an object was deleted, and only its finalizers keep it."""
    return "deletionTimestamp" in body["metadata"]
