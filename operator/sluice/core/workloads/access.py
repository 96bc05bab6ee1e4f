"""Check what a StreamStore's `access` allows."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from sluice.api.fields.backends import Holds, either
from sluice.api.fields.query_sinks import LiveStream, ResultStream
from sluice.api.kinds.streamquery import QueriedArchive
from sluice.errors import (
    AccessDenied,
    InvalidSpec,
    LoginNotShared,
    StoreNotFound,
    StoreNotShared,
)

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

    from sluice.api.fields.common import StoreRef
    from sluice.api.kinds.ephemeralstream import EphemeralStreamSpec
    from sluice.api.kinds.streamstore import Access, Grant, Operation, StreamStoreSpec
    from sluice.core.query.request import Place
    from sluice.core.values.model import StoreAddress


def check(
    access: Access | None,
    *,
    store: str,
    scope: str,
    operations: Iterable[Operation],
    field: str = "spec",
    grants: Sequence[Grant] | None = None,
) -> None:
    """Check that a resource may do these operations in a scope.

    Args:
        access: the StreamStore's `access`; None allows everything.
        store: its name, for the message.
        scope: the scope.
        operations: all operations that the resource needs there.
        field: the part of the resource that names store and scope.
        grants: the entries of `access.sharedWith` that select the resource's namespace, of which
            one has to allow everything; None for a resource of the StreamStore's own namespace.

    Raises:
        AccessDenied: the scope or an operation is not allowed.
        StoreNotShared: there are no grants.
    """
    if access is not None:
        _check(access, store=store, scope=scope, operations=operations, field=field)
    if grants is None:
        return
    denied: AccessDenied | None = None
    for grant in grants:
        try:
            _check(grant, store=store, scope=scope, operations=operations, field=field)
        except AccessDenied as error:
            denied = error
        else:
            return
    raise denied or not_shared(store, field=f"{field}.storeRef")


def _check(
    access: Access | Grant, *, store: str, scope: str, operations: Iterable[Operation], field: str
) -> None:
    """Check one list of scopes and operations. Arguments and errors are those of `check`."""
    if access.scopes is not None and not any(_takes(one, scope) for one in access.scopes):
        raise AccessDenied(
            f"StreamStore {store!r} may be used for these scopes only: {', '.join(access.scopes)}",
            field=f"{field}.scope",
        )
    if access.operations is not None:
        missing = sorted(set(operations) - set(access.operations))
        if missing:
            raise AccessDenied(
                f"StreamStore {store!r} does not allow to {' and '.join(missing)}",
                field=f"{field}.storeRef.name",
            )


def check_queried(
    spec: StreamStoreSpec, place: Place, *, field: str, grants: Sequence[Grant] | None = None
) -> None:
    """Check that a query may use a StreamStore as one of its places needs it.

    Args:
        spec: of the StreamStore.
        place: a source, an archive or a sink of the query.
        field: the path of its field.
        grants: see `check`.

    Raises:
        SpecError: the store is of the wrong kind, or its `access` forbids it.
    """
    check_kind(
        spec, store=place.store, archives=place.holds_archives, field=f"{field}.{place.store_field}"
    )
    operations: tuple[Operation, ...] = ("Read",)
    if isinstance(place, ResultStream):
        operations = ("Create", "Append")
    if isinstance(place, LiveStream):
        operations = ("Create", "Append", "Delete")
    check(
        spec.access,
        store=place.store,
        scope="" if isinstance(place, QueriedArchive) else place.scope,
        operations=operations,
        field=field,
        grants=grants,
    )


def check_shown(spec: StreamStoreSpec, sink: ResultStream, *, field: str) -> None:
    """Check that viewers may see what a query has written to a sink.

    Args:
        spec: of the StreamStore.
        sink: the sink.
        field: the path of its field.

    Raises:
        SpecError: the store is of the wrong kind, or its `access` does not allow to read.
    """
    check_kind(spec, store=sink.store, archives=False, field=f"{field}.{sink.store_field}")
    check(spec.access, store=sink.store, scope=sink.scope, operations=("Read",), field=field)


def grants(access: Access | None, labels: Mapping[str, str] | None) -> tuple[Grant, ...]:
    """Return the entries of `access.sharedWith` that select a namespace.

    Args:
        access: the StreamStore's `access`.
        labels: the labels of the namespace; None when there is no such namespace.
    """
    if access is None or labels is None:
        return ()
    return tuple(
        grant
        for grant in access.shared_with
        if grant.selector.match_labels.items() <= labels.items()
    )


def not_shared(store: str, *, field: str) -> StoreNotShared:
    """Return the error about a StreamStore of another namespace that does not admit a resource.

    It is the same if there is no such StreamStore, so it tells nothing of the other namespace.

    Args:
        store: its namespace and name, as the resource has them.
        field: the field of the resource that names it.
    """
    return StoreNotShared(f"no StreamStore {store!r} is shared with this namespace", field=field)


def not_found(ref: StoreRef, *, namespace: str, field: str) -> StoreNotFound | StoreNotShared:
    """Return the error about a StreamStore that is not there, for its users.

    Args:
        ref: the reference.
        namespace: the namespace of the resource that has it.
        field: the field of the resource that has it.
    """
    if ref.other(namespace) is not None:
        return not_shared(ref.title, field=field)
    return StoreNotFound(f"there is no StreamStore {ref.name!r}", field=field)


def hosting(granted: Sequence[Grant]) -> tuple[Grant, ...]:
    """Return the grants whose copies may have drivers in the StreamStore's namespace."""
    return tuple(grant for grant in granted if grant.driver_namespace == "Store")


def mounted(address: StoreAddress) -> list[str]:
    """List, for people, the objects of a StreamStore's namespace that its drivers mount."""
    objects = (
        ("Secret", address.secret),
        ("bundle of certificates", address.ca),
        ("client certificate", address.client_certificate),
        ("claim", address.claim),
    )
    return [what for what, name in objects if name is not None]


def check_mounts(address: StoreAddress, *, store: str, field: str) -> None:
    """Check that a driver in another namespace can use a store: it mounts nothing from there.

    Raises:
        LoginNotShared: it would need a Secret, a ConfigMap or a claim of the StreamStore's
            namespace.
    """
    needed = mounted(address)
    if needed:
        raise LoginNotShared(
            f"StreamStore {store!r} is of another namespace, and drivers would have to mount its "
            f"{' and its '.join(needed)}",
            field=field,
        )


def check_volume(address: StoreAddress, *, store: str, field: str) -> None:
    """Check that a StreamStore whose namespace is to run a driver is no volume.

    A driver may write anywhere in a volume that it mounts, and its path is no border there.

    Raises:
        LoginNotShared: it is a volume.
    """
    if address.claim is not None:
        raise LoginNotShared(
            f"StreamStore {store!r} is a volume of another namespace, and volumes are not shared",
            field=field,
            remedy="Name a StreamStore of kind s3, or run the copy in the StreamStore's namespace.",
        )


def ending(*, moves: bool, seals: bool) -> tuple[Operation, ...]:
    """List what a copy does to its source at its end, which its source's store has to allow.

    Args:
        moves: whether it deletes the source.
        seals: whether it seals the source, which changes a stream that exists.
    """
    return (*(("Delete",) if moves else ()), *(("Append",) if seals else ()))


def needs(spec: EphemeralStreamSpec) -> set[Operation]:
    """List the operations that an EphemeralStream does in its store, now or later."""
    needed: set[Operation] = set()
    if spec.stream is not None or spec.scope_policy == "CreateIfAbsent":
        needed.add("Create")
    if spec.adopt == "IfUnowned":
        needed.add("Append")
    if spec.on_release == "Delete":
        needed.add("Delete")
    return needed


def check_kind(spec: StreamStoreSpec, *, store: str, archives: bool, field: str) -> None:
    """Check that a StreamStore holds archives, or live streams, as needed.

    Args:
        spec: its spec.
        store: its name, for the message.
        archives: whether it has to hold archives, and not live streams.
        field: the field of the resource that names it.

    Raises:
        InvalidSpec: it holds the other.
    """
    if spec.holds_archives == archives:
        return
    wanted = Holds.ARCHIVES if archives else Holds.LIVE
    raise InvalidSpec(
        f"StreamStore {store!r} is no store of {wanted}",
        field=field,
        remedy=f"Name a StreamStore of kind {either(wanted)}.",
    )


CONSENT: Final = "observed-by.sluice.dev/"
"""Prefix of labels by which a namespace agrees to be observed. The rest of a label names another
namespace, whose EphemeralStreams may have owners here."""


def check_namespace(
    access: Access | None,
    *,
    store: str,
    here: str,
    namespace: str,
    labels: Mapping[str, str] | None,
) -> None:
    """Check that workloads of another namespace may own streams here: both sides have to agree.

    The message does not tell whether there is such a namespace.

    Args:
        access: the StreamStore's `access`.
        store: its name, for the message.
        here: the namespace of the StreamStore and the EphemeralStream.
        namespace: the other namespace.
        labels: its labels; None when there is no such namespace.

    Raises:
        AccessDenied: the other namespace or the StreamStore does not agree.
    """
    if (labels or {}).get(CONSENT + here) != "true":
        raise AccessDenied(
            f"nothing is told of workloads of namespace {namespace!r}: it does not agree",
            field="spec.owners",
            remedy=f"Its owner may agree: kubectl label namespace {namespace} {CONSENT}{here}=true",
        )
    wanted = access.selector.match_labels.items() if access and access.selector else None
    if wanted is None or labels is None or not wanted <= labels.items():
        raise AccessDenied(
            f"StreamStore {store!r} does not admit owners of namespace {namespace!r}",
            field="spec.owners",
        )


def _takes(pattern: str, scope: str) -> bool:
    if pattern.endswith("*"):
        return scope.startswith(pattern[:-1])
    return scope == pattern
