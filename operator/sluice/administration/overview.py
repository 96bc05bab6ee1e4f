"""List a cluster's copies and archives with their status, and a scope's with its streams."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from sluice.administration.listing import listed
from sluice.core.copy.plan import origin
from sluice.kube.api.kinds import SCOPE_COPY
from sluice.kube.api.names import Child
from sluice.kube.api.objects import STATUSES, is_deleting
from sluice.kube.jobs import results
from sluice.kube.loop.served import Served
from sluice.kube.stores.dependents import title_of

if TYPE_CHECKING:
    from sluice.api.status.common import CopyingStatus
    from sluice.core.scope.scope import StreamResult
    from sluice.kube.api.client import Api
    from sluice.kube.api.kinds import Kind, Object


@dataclass(frozen=True, slots=True)
class Reported:
    """A copy or an archive with its status.

    Attributes:
        kind, namespace, name: those of the resource.
        source, target: the source and target, as `STORE:SCOPE/STREAM` or `STORE/PATH`.
        deleting: whether it was deleted, and only finalizers keep it.
        status: the status that the operator has written.
        streams: the published results of a ScopeCopy's streams; None if they are not published yet,
            and for all other kinds.
    """

    kind: str
    namespace: str
    name: str
    source: str
    target: str
    deleting: bool
    status: CopyingStatus
    streams: tuple[StreamResult, ...] | None = None


async def overview(
    api: Api, namespace: str | None = None, name: str | None = None
) -> list[Reported]:
    """List copies and archives, sorted by namespace, kind and name.

    Args:
        api: the API server.
        namespace: the namespace; None for all.
        name: the name; None for all.

    Raises:
        ApiUnavailable: the API server cannot be asked, or refuses.
    """
    served = Served() if namespace is None else Served((namespace,))
    found = [
        await _reported(api, kind, body)
        for kind in STATUSES
        for body in await listed(api, kind, served)
        if name in {None, body["metadata"]["name"]}
    ]
    return sorted(found, key=lambda one: (one.namespace, one.kind, one.name))


async def _reported(api: Api, kind: Kind, body: Object) -> Reported:
    meta, spec = body["metadata"], body.get("spec") or {}
    child = Child(kind=kind, namespace=meta["namespace"], name=meta["name"], uid=meta["uid"])
    sources = spec.get("sources") or [spec.get("source") or {}]
    return Reported(
        kind=kind.name,
        namespace=child.namespace,
        name=child.name,
        source=origin([_place(one) for one in sources]),
        target=_place(spec.get("target") or spec.get("destination") or {}),
        deleting=is_deleting(body),
        status=STATUSES[kind].read(body.get("status")),
        streams=await results.published(api, child) if kind == SCOPE_COPY else None,
    )


def _place(spec: Object) -> str:
    """Return a scope or a stream as `sluice verify` takes it, or an archive with its path."""
    spec = spec.get("archive") or spec
    if "path" in spec:
        return f"{title_of(spec)}/{spec['path']}"
    stream = f"/{spec['stream']}" if "stream" in spec else ""
    return f"{title_of(spec)}:{spec.get('scope')}{stream}"
