"""An EphemeralStream and its surroundings as they were seen, and the actions on them, as values."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from datetime import datetime

    from sluice.api.kinds.ephemeralstream import EphemeralStreamSpec
    from sluice.api.status.ephemeral_status import EphemeralStreamStatus
    from sluice.core.claims.claim import Holding
    from sluice.core.reconcile.shared.store_seen import StoreSeen
    from sluice.core.values.trouble import Trouble


@dataclass(frozen=True, slots=True, kw_only=True)
class OwnerSeen:
    """An owner of spec.owners, as the API server has it now.

    Attributes:
        uid: of the object of that name; None when there is no such object.
        finished: whether its work is over, by the rules of its kind.
        deleting: whether it was deleted and still exists. It has to be read after the resource:
            a deletion with --cascade=orphan removes the references in between.
        trouble: why it cannot be read (OwnerForbidden, OwnerKindNotFound, ...); then the other
            attributes mean nothing.
        watched: whether a change of it wakes the resource.
    """

    uid: str | None = None
    finished: bool = False
    deleting: bool = False
    trouble: Trouble | None = None
    watched: bool = True


@dataclass(frozen=True, slots=True, kw_only=True)
class Rival:
    """Another EphemeralStream, older than this one, that claims the same streams.

    A released EphemeralStream claims nothing any more.

    Attributes:
        name: kind and name, for people.
        uid: its uid.
        grace: if it is being deleted, seconds in which a successor may still take its stream.
    """

    name: str
    uid: str
    grace: float | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class EphemeralSeen:
    """An EphemeralStream as the API server has it.

    Attributes:
        name, namespace, uid, generation, created: from its metadata.
        spec, status: as they are written.
        references: the uids in its ownerReferences.
        finalizer: whether Sluice's finalizer stands on it.
        deleted: seconds since its deletion; None if it is not being deleted.
        force_orphan: whether it may go without its streams being deleted.
        requested_at: the annotation by which a user asks for another look and a repair, if any.
    """

    name: str
    namespace: str
    uid: str
    generation: int
    created: datetime
    spec: EphemeralStreamSpec
    status: EphemeralStreamStatus
    references: frozenset[str] = frozenset()
    finalizer: bool = False
    deleted: float | None = None
    force_orphan: bool = False
    requested_at: str | None = None

    @property
    def asked(self) -> bool:
        """Whether the annotation has a request that was not handled yet."""
        return (
            self.requested_at is not None
            and self.requested_at != self.status.last_handled_requested_at
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class EphemeralWorld:
    """The surroundings of an EphemeralStream, as they were seen.

    Attributes:
        now: the time of the look.
        store: the StreamStore; None when there is none of that name.
        owners: in the order of spec.owners; empty for a deleted resource without a prefix.
        holding: the store's answer, if it was asked.
        trouble: why the store could not be asked.
        rival: an older resource that claims the same streams.
        readers: copies and archives that still read the streams.
        left: whether the EphemeralStream that the stream's tags name is gone.
        refused: why the StreamStore's access forbids what the spec asks for.
    """

    now: datetime
    store: StoreSeen | None
    owners: tuple[OwnerSeen, ...] = ()
    holding: Holding | None = None
    trouble: Trouble | None = None
    rival: Rival | None = None
    readers: tuple[str, ...] = ()
    left: bool = False
    refused: Trouble | None = None


@dataclass(frozen=True, slots=True)
class Protect:
    """Put the finalizer on the resource, and hold the StreamStore and its Secret."""


@dataclass(frozen=True, slots=True)
class Unprotect:
    """Remove the finalizer from the resource."""


@dataclass(frozen=True, slots=True)
class Refer:
    """Set the ownerReferences of the resource.

    Attributes:
        owners: owners to add, by index in spec.owners, and uid.
        drop: uids of references to remove, since the spec no longer names their owners.
    """

    owners: tuple[tuple[int, str], ...]
    drop: frozenset[str] = frozenset()


@dataclass(frozen=True, slots=True)
class Make:
    """Make the stream, or the marker of a prefix, and the scope if the spec asks for it."""


@dataclass(frozen=True, slots=True)
class Adopt:
    """Take ownership of an existing stream.

    Attributes:
        predecessor: uid of the EphemeralStream that leaves the stream, or has left it behind; None
            if no resource owns it.
    """

    predecessor: str | None = None


@dataclass(frozen=True, slots=True)
class Configure:
    """Give the stream the configuration of the spec."""


@dataclass(frozen=True, slots=True)
class Release:
    """Release the streams.

    Attributes:
        delete: seal and delete them; otherwise only remove Sluice's tags.
        watch: keep the claim to a prefix, since pods may still make streams under it.
    """

    delete: bool
    watch: bool = False


@dataclass(frozen=True, slots=True)
class LeaveBehind:
    """Report by log, metric and event which streams are left behind."""

    why: str


EphemeralAction = Protect | Unprotect | Refer | Make | Adopt | Configure | Release | LeaveBehind


@dataclass(frozen=True, slots=True, kw_only=True)
class EphemeralDecision:
    """Decision about an EphemeralStream.

    Attributes:
        status: the status to write before the actions.
        actions: to do in this order.
        again: seconds until the next look in any case; None to wait for an event.
    """

    status: EphemeralStreamStatus
    actions: tuple[EphemeralAction, ...] = field(default=())
    again: float | None = None
