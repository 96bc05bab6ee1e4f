"""An EphemeralStream and its surroundings as they were seen, and what can be done about them."""

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
    """One of spec.owners, as the API server has it now.

    Attributes:
        uid: of the object of that name; None when there is none.
        finished: whether its work is over, as its kind says it.
        deleting: whether it was deleted and is still there. It has to be read after the resource:
            who deletes an owner with --cascade=orphan takes the references away in between.
        trouble: why it cannot be looked at (OwnerForbidden, OwnerKindNotFound, ...); then the rest
            says nothing.
    """

    uid: str | None = None
    finished: bool = False
    deleting: bool = False
    trouble: Trouble | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Rival:
    """Another EphemeralStream, older than this one, that claims the same streams.

    One that was released claims nothing any more.

    Attributes:
        name: as it is told to people, with its kind.
        uid: its uid.
        grace: seconds for which it still leaves its stream to a successor; None while it lives.
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
        finalizer: whether our finalizer stands on it.
        deleted: since when it is being deleted, in seconds; None if it is not.
        force_orphan: whether it may go without its streams being deleted.
        requested_at: the annotation that asks to look again and to put things right, if any.
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
        """Whether somebody asked by the annotation and was not heard yet."""
        return (
            self.requested_at is not None
            and self.requested_at != self.status.last_handled_requested_at
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class EphemeralWorld:
    """Everything that was seen of one EphemeralStream's surroundings.

    Attributes:
        now: the time of looking.
        store: the StreamStore; None when there is none of that name.
        owners: in the order of spec.owners; of a deleted resource only with a prefix.
        holding: what the store says, if it was asked.
        trouble: why the store could not be asked, or why what was decided could not be done.
        rival: an older resource that claims the same.
        readers: StreamCopies that still read what is to be deleted.
        left: whether the EphemeralStream whose tags the stream has is gone.
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
    """Take the finalizer off."""


@dataclass(frozen=True, slots=True)
class Refer:
    """Make owners own the resource.

    Attributes:
        owners: by index in spec.owners, and uid.
        drop: uids of those that own it no more, since they were taken out of the spec.
    """

    owners: tuple[tuple[int, str], ...]
    drop: frozenset[str] = frozenset()


@dataclass(frozen=True, slots=True)
class Make:
    """Make the stream, or the marker of a prefix, and the scope if that is wanted."""


@dataclass(frozen=True, slots=True)
class Adopt:
    """Make a stream ours that is there already.

    Attributes:
        predecessor: uid of the EphemeralStream that leaves it to us, or has left it behind; None if
            nobody has it.
    """

    predecessor: str | None = None


@dataclass(frozen=True, slots=True)
class Configure:
    """Give the stream the configuration of the spec."""


@dataclass(frozen=True, slots=True)
class Release:
    """Let the streams go.

    Attributes:
        delete: seal and delete them; otherwise only take our tags away.
        watch: the claim to a prefix stays, since streams may still come that are to be deleted.
    """

    delete: bool
    watch: bool = False


@dataclass(frozen=True, slots=True)
class LeaveBehind:
    """Say loudly which streams are left behind."""

    why: str


EphemeralAction = Protect | Unprotect | Refer | Make | Adopt | Configure | Release | LeaveBehind


@dataclass(frozen=True, slots=True, kw_only=True)
class EphemeralDecision:
    """What to do now.

    Attributes:
        status: to write before anything is done.
        actions: in order; the resource is looked at again after they are done.
        again: seconds until it is looked at in any case; None to wait for an event.
    """

    status: EphemeralStreamStatus
    actions: tuple[EphemeralAction, ...] = field(default=())
    again: float | None = None
