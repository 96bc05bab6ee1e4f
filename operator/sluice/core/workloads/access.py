"""Check what a StreamStore's `access` allows."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from sluice.api.fields.backends import Holds, named
from sluice.errors import AccessDenied, InvalidSpec

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from sluice.api.kinds.ephemeralstream import EphemeralStreamSpec
    from sluice.api.kinds.streamstore import Access, Operation, StreamStoreSpec


def check(
    access: Access | None,
    *,
    store: str,
    scope: str,
    operations: Iterable[Operation],
    field: str = "spec",
) -> None:
    """Check that a resource may do these operations in a scope.

    Args:
        access: the StreamStore's `access`; None allows everything.
        store: its name, for the message.
        scope: the scope.
        operations: all operations that the resource needs there.
        field: the part of the resource that names store and scope.

    Raises:
        AccessDenied: the scope or an operation is not allowed.
    """
    if access is None:
        return
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
        remedy=f"Name a StreamStore of kind {' or '.join(named(wanted))}.",
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
