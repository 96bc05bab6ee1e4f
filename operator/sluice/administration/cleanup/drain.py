"""Drain the cluster before the operator is uninstalled, since nothing cleans up afterwards.

A resource that holds data in a store has a finalizer of ours, and so has a StreamStore that a
schedule needs. Without an operator they and their namespaces could never be deleted, and the data
would stay in the store.
"""

from __future__ import annotations

import asyncio
from enum import StrEnum
from typing import TYPE_CHECKING, Final

from sluice.administration.cleanup.holders import held_stores, resources
from sluice.kube.api import finalizers
from sluice.kube.api.kinds import SECRET, STREAM_STORE
from sluice.kube.api.objects import FORCE_ORPHAN, IN_USE_FINALIZER
from sluice.kube.api.responses import Refused
from sluice.kube.stores.storekeeper import secrets_of

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Iterable

    from sluice.administration.cleanup.holders import Holder
    from sluice.kube.api.client import Api
    from sluice.kube.loop.served import Served

POLL_SECONDS: Final = 2.0
"""Seconds between two looks at the resources that are left."""

QUIET_SECONDS: Final = 30.0
"""Seconds without any change after which the operator counts as gone."""

STORES_SECONDS: Final = 90.0
"""Seconds in which the operator releases a StreamStore that is no longer needed. It looks at each
every minute."""

AT_ONCE: Final = 16
"""The most calls to the API server at a time."""

_OTHER_UID = 422  # the API server's answer to a patch with another object's UID


class DrainPolicy(StrEnum):
    """The policy for resources that hold data in a store."""

    REFUSE = "refuse"
    DELETE = "delete"
    ORPHAN = "orphan"


class Drainer:
    """The drain of a cluster before the operator is uninstalled.

    Args:
        api: the API server.
        served: the namespaces whose resources count.
        timeout: seconds to wait for the operator.
        say: callback that gets a line for each thing that happens.
    """

    def __init__(
        self, api: Api, served: Served, *, timeout: float, say: Callable[[str], None]
    ) -> None:
        self._api = api
        self._served = served
        self._timeout = timeout
        self._say = say

    async def run(self, policy: DrainPolicy) -> list[Holder]:
        """Drain the cluster by a policy.

        Returns:
            The resources that still hold data, or the StreamStores that are still held. Empty if
            the operator may be uninstalled.

        Raises:
            ApiUnavailable: the API server cannot be asked, or refuses.
        """
        match policy:
            case DrainPolicy.REFUSE:
                return await self._refuse()
            case DrainPolicy.DELETE:
                return await self._delete()
            case DrainPolicy.ORPHAN:
                return await self._orphan()

    async def _held(self) -> list[Holder]:
        """Return the resources that hold data; if there are none, the stores that are held."""
        found = [one for one in await resources(self._api, self._served) if one.holds]
        return found or await held_stores(self._api, self._served)

    async def _refuse(self) -> list[Holder]:
        """Return the resources that hold data, after the operator had time to release stores."""
        progress = _Progress(self._say)
        end = _now() + min(self._timeout, STORES_SECONDS)
        while True:
            left = await self._held()
            if any(one.kind != STREAM_STORE for one in left) or not left or _now() >= end:
                return left
            progress.show(left)
            await asyncio.sleep(min(POLL_SECONDS, max(0.0, end - _now())))

    async def _delete(self) -> list[Holder]:
        """Delete resources that hold data, or still may. Wait until the operator has cleaned up."""
        progress = _Progress(self._say)
        end = _now() + self._timeout
        while True:
            found = await resources(self._api, self._served)
            wanted = [one for one in found if one.unfinished]
            left = wanted or await held_stores(self._api, self._served)
            progress.show(left)
            if not left or _now() >= end:
                return left
            await _each(self._remove, [one for one in wanted if not one.deleting])
            await asyncio.sleep(min(POLL_SECONDS, max(0.0, end - _now())))

    async def _orphan(self) -> list[Holder]:
        """Delete resources without cleaning up their data in stores.

        The operator removes the finalizers. If no operator answers, they are removed here.
        """
        progress = _Progress(self._say)
        told: set[str] = set()
        end = _now() + self._timeout
        while True:
            left = await self._held()
            progress.show(left)
            if not left:
                return []
            users = [one for one in left if one.kind != STREAM_STORE]
            for one in users:
                if one.uid not in told:
                    how = "LEFT BEHIND by {} in {}" if one.leaves else "DELETED: {}, {}"
                    self._say(how.format(one.title, one.where))
                    told.add(one.uid)
            await _each(self._force, [one for one in users if not one.forced])
            if _now() >= end or progress.quiet > QUIET_SECONDS:
                break
            await asyncio.sleep(min(POLL_SECONDS, max(0.0, end - _now())))
        self._say("No operator lets go of these, so their finalizers are taken off here.")
        await _each(self._free, [one for one in left if one.kind != STREAM_STORE])
        await _each(self._free_store, await held_stores(self._api, self._served))
        return await self._held()

    async def _remove(self, one: Holder) -> None:
        await self._api.delete(one.kind, one.namespace, one.name, uid=one.uid)

    async def _force(self, one: Holder) -> None:
        """Annotate a resource to skip the cleaning up, and only then delete it.

        In the other order the operator would clean up after all. The UID protects a new resource of
        the same name.
        """
        note = {"metadata": {"uid": one.uid, "annotations": {FORCE_ORPHAN: "true"}}}
        try:
            noted = await self._api.patch(one.kind, one.namespace, one.name, note)
        except Refused as error:
            if error.status != _OTHER_UID:
                raise
            return  # another object took its name
        if noted is not None:
            await self._remove(one)

    async def _free(self, one: Holder) -> None:
        """Remove the finalizer of a resource."""
        await finalizers.remove(
            self._api, one.kind, one.namespace, one.name, one.finalizer, uid=one.uid
        )
        self._say(f"{one.title}: {one.finalizer} is taken off")

    async def _free_store(self, store: Holder) -> None:
        """Remove the finalizers of a StreamStore and its Secrets, the store's last."""
        for secret in sorted(secrets_of(store.body)):
            await finalizers.remove(self._api, SECRET, store.namespace, secret, IN_USE_FINALIZER)
            self._say(f"Secret {store.namespace}/{secret}: {IN_USE_FINALIZER} is taken off")
        await self._free(store)


class _Progress:
    """The progress of a drain: it tells the number of resources left whenever they change."""

    def __init__(self, say: Callable[[str], None]) -> None:
        self._say = say
        self._left: set[str] | None = None
        self._changed = _now()

    def show(self, left: Iterable[Holder]) -> None:
        """Tell how many resources are left, if they have changed."""
        uids = {one.uid for one in left}
        if uids == self._left:
            return
        if uids:
            self._say(f"Still there: {len(uids)}")
        self._left, self._changed = uids, _now()

    @property
    def quiet(self) -> float:
        """Seconds since the last change."""
        return _now() - self._changed


def _now() -> float:
    return asyncio.get_running_loop().time()


async def _each(call: Callable[[Holder], Awaitable[None]], these: Iterable[Holder]) -> None:
    """Call a function for each holder, for at most AT_ONCE of them at a time."""
    room = asyncio.Semaphore(AT_ONCE)

    async def one(this: Holder) -> None:
        async with room:
            await call(this)

    await asyncio.gather(*(one(this) for this in these))
