"""Find resources that want the same streams: other EphemeralStreams, and copies that read them."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import TYPE_CHECKING

from sluice.api.kinds.streamstore import StreamStore
from sluice.core.reconcile.ephemeral.world import Rival
from sluice.core.workloads.request import store_address
from sluice.errors import InvalidSpec
from sluice.kube.api.kinds import (
    COPIES,
    EPHEMERAL_STREAM,
    SCOPE_COPY,
    STREAM_ARCHIVE,
    STREAM_STORE,
)
from sluice.kube.api.objects import (
    STAGING_FINALIZER,
    STREAMS_FINALIZER,
    has_finalizer,
    is_deleting,
    parse,
)
from sluice.kube.stores.dependents import place_of, sources_of

if TYPE_CHECKING:
    from sluice.core.values.model import StoreAddress
    from sluice.kube.api.cache import Mirror
    from sluice.kube.api.kinds import Kind, Object
    from sluice.kube.stores.dependents import StorePlace


def rival(mirror: Mirror, body: Object) -> Rival | None:
    """Return the oldest EphemeralStream that is older than this one and claims the same streams.

    It counts only after it had streams in the store, by its status, which tenants cannot write.
    So an EphemeralStream without rights in the store blocks no other. Until then the store's tags
    decide.

    If two were made in the same second, the lower uid counts as older.
    """
    meta, spec = body["metadata"], body["spec"]
    here = _address(mirror, place_of(spec, meta["namespace"]))
    older = [
        other
        for other in _near(mirror, spec)
        if _age(other) < _age(body)
        and "release" not in (other.get("status") or {})
        and _has_claimed(other)
        and _overlap(other.get("spec", {}), spec)
        and here is not None
        and here == _address(mirror, place_of(other["spec"], other["metadata"]["namespace"]))
    ]
    if not older:
        return None
    found = min(older, key=_age)
    return Rival(
        name=_told(EPHEMERAL_STREAM, found, meta["namespace"]),
        uid=found["metadata"]["uid"],
        grace=_grace(found) if is_deleting(found) else None,
    )


def readers(mirror: Mirror, body: Object) -> tuple[str, ...]:
    """List the unfinished copies and archives that read what an EphemeralStream claims, sorted."""
    meta, spec = body["metadata"], body["spec"]
    here = _address(mirror, place_of(spec, meta["namespace"]))
    return tuple(
        sorted(
            _told(kind, copy, meta["namespace"])
            for kind in COPIES.values()
            for copy in mirror.where(kind, _read_scopes, spec.get("scope"))
            if (kind != STREAM_ARCHIVE or _goes_on(copy))
            and (kind != SCOPE_COPY or _with_ephemeral(copy))
            and here is not None
            and any(
                _overlap(source, spec)
                and here == _address(mirror, place_of(source, copy["metadata"]["namespace"]))
                for source in sources_of(copy)
            )
        )
    )


def _has_claimed(body: Object) -> bool:
    """Tell whether an EphemeralStream has, or had, streams in the store, by its status."""
    status = body.get("status") or {}
    ready = any(
        one["type"] == "Ready" and one["status"] == "True" for one in status.get("conditions") or []
    )
    there = ready or status.get("streams") or status.get("createdMilliseconds") is not None
    return has_finalizer(body, STREAMS_FINALIZER) and bool(there)


def _read_scopes(copy: Object) -> frozenset[str | None]:
    """Return the scopes that an unfinished copy may read: only once the operator has planned it."""
    planned = (copy.get("status") or {}).get("planHash") is not None
    if not planned or not has_finalizer(copy, STAGING_FINALIZER):
        return frozenset()
    return frozenset(source.get("scope") for source in sources_of(copy))


def _told(kind: Kind, body: Object, to: str) -> str:
    """Name a resource to the users of a namespace; give only the kind if it is in another one."""
    namespace, name = body["metadata"]["namespace"], body["metadata"]["name"]
    if namespace != to:
        return f"{'an' if kind.name[0] in 'AEIOU' else 'a'} {kind.name} of another namespace"
    return f"{kind.name} {namespace}/{name}"


def _goes_on(archive: Object) -> bool:
    """Tell whether a run of an archive goes on. An archive at rest may have the finalizer too."""
    conditions = (archive.get("status") or {}).get("conditions") or []
    return any(one["type"] == "Reconciling" for one in conditions)


def _with_ephemeral(copy: Object) -> bool:
    """Tell whether a ScopeCopy copies EphemeralStreams' streams. Then all of its scope count."""
    return bool((copy["spec"].get("streams") or {}).get("includeEphemeral"))


def _near(mirror: Mirror, spec: Object) -> list[Object]:
    """List the EphemeralStreams that may share a stream with a spec: a few out of thousands."""
    scope, stream = spec.get("scope"), spec.get("stream")
    if stream is None:
        return mirror.where(EPHEMERAL_STREAM, _scope, scope)
    names = (stream, None)  # None: those with a prefix
    return [one for name in names for one in mirror.where(EPHEMERAL_STREAM, _place, (scope, name))]


def _scope(body: Object) -> str | None:
    found: str | None = body.get("spec", {}).get("scope")
    return found


def _place(body: Object) -> tuple[str | None, str | None]:
    """Return scope and stream of a resource; the stream is None for a prefix."""
    return _scope(body), body.get("spec", {}).get("stream")


def _overlap(one: Object, other: Object) -> bool:
    """Tell whether two specs, each with a scope and a stream or a prefix, may share a stream.

    A spec with neither means every stream of the scope.
    """
    if one.get("scope") != other.get("scope"):
        return False
    names = [spec.get("stream") or spec.get("streamPrefix") or "" for spec in (one, other)]
    exact = ["stream" in spec for spec in (one, other)]
    if all(exact):
        return names[0] == names[1]
    if exact[0]:
        return names[0].startswith(names[1])
    if exact[1]:
        return names[1].startswith(names[0])
    return names[0].startswith(names[1]) or names[1].startswith(names[0])


def _address(mirror: Mirror, place: StorePlace) -> StoreAddress | None:
    """Return a StreamStore's address without its Secret, to compare StreamStores by their store."""
    body = mirror.get(STREAM_STORE, *place)
    if body is None:
        return None
    try:
        return store_address(parse(body, StreamStore)).model_copy(update={"secret": None})
    except InvalidSpec:
        return None


def _age(body: Object) -> tuple[str, str]:
    return str(body["metadata"].get("creationTimestamp")), str(body["metadata"]["uid"])


def _grace(body: Object) -> float:
    """Give the seconds that are left of the grace period of a resource that is being deleted."""
    since = datetime.fromisoformat(body["metadata"]["deletionTimestamp"])
    gone = (datetime.now(UTC) - since).total_seconds()
    return max(0.0, float(body["spec"].get("gracePeriodSeconds", 0)) - gone)
