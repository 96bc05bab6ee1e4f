"""Our own kinds, from the API's objects to models; names of what Sluice puts on objects."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import TYPE_CHECKING, Final, TypeVar

from pydantic import ValidationError

from sluice.api.fields.common import GROUP, Resource
from sluice.api.kinds.scopecopy import ScopeCopySpec
from sluice.api.kinds.streamarchive import StreamArchive, StreamArchiveSpec
from sluice.api.kinds.streamcopy import StreamCopy, StreamCopySpec
from sluice.api.load import invalid
from sluice.api.registry import DRIVEN, KINDS, Copy
from sluice.api.status.archive_status import StreamArchiveStatus
from sluice.api.status.common import MOST_TOKEN, CopyingStatus
from sluice.api.status.ephemeral_status import EphemeralStreamStatus
from sluice.core.reconcile.copies.archive_seen import ArchiveSeen, times
from sluice.core.reconcile.copies.seen import CopySeen
from sluice.core.reconcile.ephemeral.world import EphemeralSeen
from sluice.kube.api.kinds import (
    COPIES,
    EPHEMERAL_STREAM,
    OWN,
    STREAM_COPY,
    STREAM_STORE,
)

if TYPE_CHECKING:
    from collections.abc import Sequence

    from sluice.api.fields.scopeplaces import ScopeSource, ScopeTarget
    from sluice.api.kinds.ephemeralstream import EphemeralStream
    from sluice.api.kinds.streamarchive import ArchivedStream, Destination
    from sluice.api.kinds.streamcopy import Source, Target
    from sluice.kube.api.kinds import Object

    Origin = Source | ScopeSource | ArchivedStream
    Goal = Target | ScopeTarget | Destination

R = TypeVar("R", bound=Resource)

CopySpec = StreamCopySpec | ScopeCopySpec | StreamArchiveSpec
"""What drivers work for."""

_COPIES: Final = {kind.name: kind.model for kind in DRIVEN}

STATUSES: Final = {
    OWN[kind.name]: kind.status for kind in DRIVEN if issubclass(kind.status, CopyingStatus)
}
"""The models of their statuses."""

FINALIZERS: Final = {OWN[kind.name]: f"{GROUP}/{kind.finalizer}" for kind in KINDS}
"""What stands on a kind's objects while they hold something, or are held themselves."""

STAGING_FINALIZER: Final = FINALIZERS[STREAM_COPY]
STREAMS_FINALIZER: Final = FINALIZERS[EPHEMERAL_STREAM]
IN_USE_FINALIZER: Final = FINALIZERS[STREAM_STORE]
REQUESTED_AT: Final = f"{GROUP}/requestedAt"
FORCE_ORPHAN: Final = f"{GROUP}/force-orphan"


def parse(body: Object, model: type[R]) -> R:
    """Make a resource of its object. InvalidSpec where it is none that this version knows."""
    try:
        return model.model_validate(body)
    except ValidationError as error:
        raise invalid(error, model.__name__) from error


def parse_copy(body: Object) -> Copy:
    """Make a resource that drivers work for of its object. InvalidSpec as `parse`."""
    resource = parse(body, _COPIES.get(body["kind"], StreamCopy))
    if not isinstance(resource, Copy):
        raise TypeError(f"no driver works for a {type(resource).__name__}")
    return resource


def ephemeral_seen(body: Object, resource: EphemeralStream) -> EphemeralSeen:
    """An EphemeralStream as its reconcile function takes it."""
    meta = body["metadata"]
    return EphemeralSeen(
        name=meta["name"],
        namespace=meta["namespace"],
        uid=meta["uid"],
        generation=meta.get("generation", 0),
        created=datetime.fromisoformat(meta["creationTimestamp"]),
        spec=resource.spec,
        status=EphemeralStreamStatus.read(body.get("status")),
        requested_at=_requested_at(body),
        references=frozenset(one["uid"] for one in meta.get("ownerReferences") or ()),
        finalizer=has_finalizer(body, STREAMS_FINALIZER),
        deleted=_deleted_for(meta),
        force_orphan=wants_orphan(body),
    )


def origins_of(resource: Copy) -> Sequence[tuple[str, Origin]]:
    """What a copy copies, in order, each with the field that names it."""
    return resource.spec.origins


def goal_of(resource: Copy) -> tuple[str, Goal]:
    """Where it copies it to, with the field that names it."""
    return resource.spec.goal


def copy_seen(body: Object, resource: Copy, copy_id: str) -> CopySeen:
    """A copy as `reconcile` takes it. InvalidSpec where an archive's schedule has no times."""
    meta = body["metadata"]
    if isinstance(resource, StreamArchive):
        return _archive_seen(body, resource, copy_id)
    return CopySeen(
        name=meta["name"],
        uid=meta["uid"],
        generation=meta.get("generation", 0),
        copy_id=copy_id,
        spec=resource.spec,
        status=STATUSES[COPIES[resource.kind]].read(body.get("status")),
        requested_at=_requested_at(body),
        finalizer=has_finalizer(body, STAGING_FINALIZER),
        deleted=_deleted_for(meta),
        force_orphan=wants_orphan(body),
    )


def _archive_seen(body: Object, resource: StreamArchive, archive_id: str) -> ArchiveSeen:
    meta, now = body["metadata"], datetime.now(UTC)
    status = StreamArchiveStatus.read(body.get("status"))
    created = datetime.fromisoformat(meta["creationTimestamp"])
    due, later = None, None
    if not is_deleting(body):  # what has no times is deleted as well
        due, later = times(resource.spec, status, created=created, now=now)
    return ArchiveSeen(
        name=meta["name"],
        uid=meta["uid"],
        generation=meta.get("generation", 0),
        copy_id=archive_id,
        spec=resource.spec,
        status=status,
        requested_at=_requested_at(body),
        finalizer=has_finalizer(body, STAGING_FINALIZER),
        deleted=_deleted_for(meta),
        force_orphan=wants_orphan(body),
        due=due,
        later=later,
    )


def _requested_at(body: Object) -> str | None:
    """The annotation by which somebody asks for something to be done now."""
    annotations = body["metadata"].get("annotations") or {}
    return str(annotations.get(REQUESTED_AT, ""))[:MOST_TOKEN] or None


def _deleted_for(meta: Object) -> float | None:
    """For how many seconds an object is being deleted; None if it is not."""
    deleted = meta.get("deletionTimestamp")
    if deleted is None:
        return None
    since = (datetime.now(UTC) - datetime.fromisoformat(deleted)).total_seconds()
    return max(0.0, since)


def wants_orphan(body: Object) -> bool:
    """Whether somebody insists that an object goes, whatever it leaves in a store."""
    annotations = body["metadata"].get("annotations") or {}
    return annotations.get(FORCE_ORPHAN, "") not in {"", "false"}


def has_finalizer(body: Object, finalizer: str) -> bool:
    """Whether a finalizer stands on an object."""
    return finalizer in (body["metadata"].get("finalizers") or [])


def is_deleting(body: Object) -> bool:
    """Whether somebody has deleted an object, and finalizers hold it back."""
    return "deletionTimestamp" in body["metadata"]
