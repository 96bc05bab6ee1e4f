"""Look at a StreamStore that a copy names, and check that the copy may use it."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Final

from sluice.api.fields.scopeplaces import ScopeTarget
from sluice.api.kinds.streamarchive import Destination
from sluice.core.values.trouble import Trouble
from sluice.core.workloads import access
from sluice.core.workloads.request import retention_of
from sluice.errors import InvalidSpec, SpecError, StoreNotReady
from sluice.kube.api.objects import is_deleting
from sluice.kube.stores.dependents import was_admitted

if TYPE_CHECKING:
    from sluice.api.fields.drills import DrillTarget
    from sluice.api.kinds.streamstore import Operation
    from sluice.api.registry import Copy
    from sluice.core.reconcile.shared.store_seen import StoreSeen
    from sluice.kube.api.kinds import Object
    from sluice.kube.api.objects import Goal, Origin
    from sluice.kube.stores.storeview import FoundStore, StoreView

READS: Final[tuple[Operation, ...]] = ("Read",)
WRITES: Final[tuple[Operation, ...]] = ("Create", "Append")
KEEPS: Final[tuple[Operation, ...]] = ("Create", "Append", "Delete")
ERASES: Final[tuple[Operation, ...]] = ("Delete",)
DRILLS: Final[tuple[Operation, ...]] = ("Create", "Append", "Delete")
"""Operations of copies on their stores, as a StreamStore's `access` names them."""


def writes_of(resource: Copy, goal: Goal, *, keeps: bool, deleted: bool) -> tuple[Operation, ...]:
    """Return the operations that a copy does on its target's store.

    A retention removes the runs of an archive, also those of other makers. In a store of another
    namespace these may be runs of that namespace's users, so the store's grant has to allow that.

    Args:
        resource: the copy.
        goal: its target.
        keeps: whether the archive is deleted with the resource.
        deleted: whether the resource is being deleted.
    """
    if keeps:
        return ERASES if deleted else KEEPS
    drops = retention_of(resource.spec).has_rule
    foreign = goal.ref.other(resource.metadata.namespace) is not None
    return KEEPS if drops and foreign else WRITES


async def look_at_store(
    stores: StoreView,
    body: Object,
    field: str,
    what: Origin | Goal | DrillTarget,
    needs: tuple[Operation, ...],
    *,
    eager: bool,
) -> StoreSeen | Trouble | None:
    """Look at a StreamStore, and check that the copy may use it.

    Args:
        stores: the StreamStores.
        body: the copy's object.
        field: the field that holds `what`.
        what: the source or the target in that store.
        needs: the operations that the copy does there.
        eager: whether the user has just changed the copy or requested a run.

    Returns:
        The StreamStore; None if there is none; a Trouble if the copy may not use it. A copy
        that is being deleted gets the StreamStore, with the Trouble as `refused`; from another
        namespace only if it was admitted before.
    """
    name, namespace = what.store, body["metadata"]["namespace"]
    place = f"{field}.{what.store_field}"
    deleted = is_deleting(body)
    try:
        found = await stores.look(
            what.ref, namespace, admitted=deleted and was_admitted(body), eager=eager
        )
    except InvalidSpec as error:
        return Trouble.of(
            StoreNotReady(
                f"the spec of StreamStore {name!r} is invalid: {error}",
                field=place,
                remedy="Correct the StreamStore and apply it again; the copy goes on then.",
            )
        )
    if found is None and what.ref.other(namespace) is not None:
        return Trouble.of(access.not_shared(name, field=place))
    if found is None:
        return None
    try:
        hosts = _check(found, field, what, needs)
    except SpecError as error:
        if not deleted:
            return Trouble.of(error)
        return replace(found.seen, refused=Trouble.of(error))
    return replace(found.seen, hosts=hosts)


def _check(
    found: FoundStore, field: str, what: Origin | Goal | DrillTarget, needs: tuple[Operation, ...]
) -> bool:
    """Check that a copy may use a StreamStore; tell whether its drivers have to run there.

    Args:
        found: the StreamStore.
        field: the field that holds `what`.
        what: the source or the target in that store.
        needs: the operations that the copy does there.

    Raises:
        SpecError: it may not.
    """
    name, place = what.store, f"{field}.{what.store_field}"
    access.check_kind(
        found.resource.spec,
        store=name,
        archives=what.holds_archives,
        field=place,
    )
    access.check(
        found.resource.spec.access,
        store=name,
        scope=_scope(what),
        operations=needs,
        field=place.removesuffix(".storeRef.name"),
        grants=found.grants,
    )
    hosts = found.grants is not None and _hosts(found, what, needs, field=place)
    if found.seen.address.claim is not None:
        _check_volume(field, what, keeps=needs in {KEEPS, ERASES})
    return hosts


def _hosts(
    found: FoundStore,
    what: Origin | Goal | DrillTarget,
    needs: tuple[Operation, ...],
    *,
    field: str,
) -> bool:
    """Tell whether the copy's drivers have to run in a StreamStore's namespace, as a grant allows.

    Args:
        found: the StreamStore, of another namespace.
        what: the source or the target in that store.
        needs: the operations that the copy does there.
        field: the field that names the StreamStore.

    Raises:
        LoginNotShared: they would have to, and no grant allows that along with all else.
    """
    address = found.seen.address
    if not access.mounted(address):
        return False
    access.check_volume(address, store=what.store, field=field)
    grants = access.hosting(found.grants or ())
    try:
        access.check(
            None, store=what.store, scope=_scope(what), operations=needs, grants=grants, field=field
        )
    except SpecError:
        access.check_mounts(address, store=what.store, field=field)
    return True


def _scope(what: Origin | Goal | DrillTarget) -> str:
    """Return the scope in which a copy works; empty for archives, which are in none."""
    return "" if isinstance(what, Destination) else what.scope


def _check_volume(field: str, what: Origin | Goal | DrillTarget, *, keeps: bool) -> None:
    """Check that a copy can do with a volume, into which only pods can look.

    Args:
        field: the field that holds `what`.
        what: the source or the target in the volume.
        keeps: whether the archive is deleted with the resource.

    Raises:
        InvalidSpec: the copy needs a store that the operator can look into.
    """
    if keeps:
        raise InvalidSpec(
            "an archive in a volume is not deleted with its resource: only pods can look into a "
            "volume",
            field="spec.onDelete",
            remedy="Take onDelete: Retain, and delete the directory or the claim.",
        )
    if isinstance(what, ScopeTarget):
        raise InvalidSpec(
            "a scope is archived to a bucket: only pods can look into a volume, and what became of "
            "many streams they cannot tell",
            field=f"{field}.{what.store_field}",
            remedy="Name a StreamStore of kind s3, or run the copy with `sluice run` where the "
            "volume is; or take a StreamArchive for each stream.",
        )
