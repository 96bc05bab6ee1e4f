"""Look up StreamStores for the resources that name them."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final, NamedTuple

from sluice.api.kinds.streamstore import StreamStore
from sluice.core.reconcile.shared.store_seen import StoreSeen
from sluice.core.values.model import StoreHealth
from sluice.core.values.trouble import Trouble
from sluice.core.workloads import access
from sluice.core.workloads.request import store_address
from sluice.errors import AccessDenied, InvalidSpec
from sluice.kube.api.kinds import NAMESPACE, STREAM_STORE
from sluice.kube.api.objects import IN_USE_FINALIZER, has_finalizer, is_deleting, parse
from sluice.kube.loop.served import ALL

if TYPE_CHECKING:
    from sluice.api.fields.common import StoreRef
    from sluice.api.kinds.streamstore import Grant
    from sluice.kube.api.cache import Mirror
    from sluice.kube.api.client import Api
    from sluice.kube.api.kinds import Object
    from sluice.kube.loop.served import Served
    from sluice.kube.stores.probes import Probes

MAX_AGE: Final = 60.0
"""Seconds for which a store's answer is good enough for its users. Usually it is newer."""


class FoundStore(NamedTuple):
    """A StreamStore's resource, the state of its store, and what its user may do.

    Attributes:
        resource: the StreamStore.
        seen: the state of its store.
        grants: the entries of `access.sharedWith` that admit the user's namespace; None for a user
            of the StreamStore's own namespace.
    """

    resource: StreamStore
    seen: StoreSeen
    grants: tuple[Grant, ...] | None = None


class StoreView:
    """The look-up of StreamStores.

    Args:
        api: the API server.
        mirror: the objects that the watches have shown.
        probes: the answers of stores.
        served: the namespaces that this operator serves. It protects no StreamStore of another one,
            so those are not shared.
    """

    def __init__(self, api: Api, mirror: Mirror, probes: Probes, served: Served = ALL) -> None:
        self._api = api
        self._mirror = mirror
        self._probes = probes
        self._served = served

    async def look(
        self, ref: StoreRef, namespace: str, *, admitted: bool = False, eager: bool = False
    ) -> FoundStore | None:
        """Look up a StreamStore for a resource.

        Nothing that a StreamStore of another namespace says reaches a resource that it does not
        admit, and its store is not asked.

        Args:
            ref: the reference that the resource has.
            namespace: the resource's namespace.
            admitted: whether a StreamStore of another namespace is found even if it does not admit
                the resource any more. This is for what the resource has to clean up there; `grants`
                are empty then.
            eager: whether a user has just changed the resource that needs the store. Then a failed
                probe counts only for seconds.

        Returns:
            The StreamStore; None if it does not exist, or is of another namespace and does not
            admit the resource.

        Raises:
            InvalidSpec: this version cannot read the StreamStore.
            ApiUnavailable: the API server could not be asked.
        """
        other = ref.other(namespace)
        if other is None:
            body = await self._body(namespace, ref.name)
            return None if body is None else await self._seen(body, parse(body, StreamStore), eager)
        if not self._served.include(other):
            return None
        # One call for each reference: a tenant may name many StreamStores that are not there.
        body = await self._body(other, ref.name)
        if body is None:
            return None
        user = await self._api.get(NAMESPACE, None, namespace)
        try:
            resource = parse(body, StreamStore)
        except InvalidSpec:
            if admitted:
                raise
            return None
        labels = None if user is None else user["metadata"].get("labels") or {}
        grants = access.grants(resource.spec.access, labels)
        if not grants and not admitted:
            return None
        return (await self._seen(body, resource, eager))._replace(grants=grants)

    async def _body(self, namespace: str, name: str) -> Object | None:
        body = self._mirror.get(STREAM_STORE, namespace, name)
        if body is None:  # the mirror may lag behind a new StreamStore
            body = await self._api.get(STREAM_STORE, namespace, name)
        return body

    async def _seen(self, body: Object, resource: StreamStore, eager: bool) -> FoundStore:  # noqa: FBT001
        """Ask the store of a StreamStore, unless its last answer counts."""
        answer = (await self._probes.look(body, max_age=MAX_AGE, eager=eager)).answer
        ready = isinstance(answer, StoreHealth)
        seen = StoreSeen(
            namespace=body["metadata"]["namespace"],
            name=body["metadata"]["name"],
            address=store_address(resource),
            ready=ready,
            why="" if ready else str(answer),
            denied=_denial(answer),
            held=has_finalizer(body, IN_USE_FINALIZER),
            deleting=is_deleting(body),
        )
        return FoundStore(resource, seen)


def _denial(answer: StoreHealth | Trouble) -> Trouble | None:
    """Return why the operator may not open a store, if that is what the answer says."""
    if isinstance(answer, Trouble) and answer.reason == AccessDenied.__name__:
        return answer
    return None
