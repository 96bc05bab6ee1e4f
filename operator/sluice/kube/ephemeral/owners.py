"""Look at owners of any kind, and watch them while EphemeralStreams ask for them.

Each kind and namespace in use has a watch. So a look at an owner costs no call, and a change wakes
the EphemeralStreams that name it. Where the operator may get objects but not list or watch them,
each look is a GET, and changes are noticed within a minute.
"""

from __future__ import annotations

import asyncio
import time
from dataclasses import replace
from typing import TYPE_CHECKING, Final

from sluice.core.reconcile.ephemeral.world import OwnerSeen
from sluice.core.values.trouble import Trouble
from sluice.errors import OwnerForbidden, OwnerKindNotFound, SpecError
from sluice.kube.api.responses import Refused
from sluice.kube.ephemeral.owner_kinds import OwnerKinds
from sluice.kube.ephemeral.owner_watch import OwnerWatch, WatchTimeouts, seen

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable

    from sluice.api.kinds.ephemeralstream import Owner
    from sluice.kube.api.client import Api
    from sluice.kube.api.kinds import Kind

    Wake = Callable[[str, str, str, str], None]
    _Place = tuple[Kind, str]

LABEL: Final = 'sluice.dev/aggregate-to-owner-reader: "true"'
"""Label of the ClusterRoles that make up the operator's rights to read owners."""
MOST_WATCHES: Final = 500
"""Watches at once, each with a connection. Beyond that, each look is a GET."""
_FORBIDDEN, _NOT_FOUND = 403, 404


class Owners:
    """Reader of owners, for one asyncio loop.

    Args:
        api: the API server.
        wake: callback `(apiVersion, kind, namespace, name)`, called when an object appears, is
            replaced, is deleted or goes, or when `finished` changes. It is called for every object
            of a watched kind and namespace, not only for owners.
        patience: timeouts of the watches.
    """

    def __init__(self, api: Api, wake: Wake, patience: WatchTimeouts | None = None) -> None:
        self._api = api
        self._wake = wake
        self._patience = patience or WatchTimeouts()
        self._kinds = OwnerKinds(api)
        self._watches: dict[_Place, OwnerWatch] = {}
        self._unwatched: dict[_Place, float] = {}
        self._forbidden: dict[tuple[Kind, str, str], tuple[float, OwnerForbidden]] = {}

    async def look(self, owner: Owner, namespace: str) -> OwnerSeen:
        """Look at an owner in its watch, or at the API server if there is no watch.

        Raises:
            ApiUnavailable: the API server does not answer.
        """
        return await self._answer(self._look(owner, namespace))

    async def confirm(self, owner: Owner, namespace: str) -> OwnerSeen:
        """Look at an owner at the API server.

        Raises:
            ApiUnavailable: the API server does not answer.
        """
        return await self._answer(self._confirm(owner, namespace))

    async def close(self) -> None:
        """End all watches."""
        watches = list(self._watches.values())
        self._watches.clear()
        await asyncio.gather(*(watch.close() for watch in watches))

    @staticmethod
    async def _answer(asked: Awaitable[OwnerSeen]) -> OwnerSeen:
        """Return the owner; turn an error that a person has to mend into its `trouble`."""
        try:
            return await asked
        except SpecError as error:
            return OwnerSeen(trouble=Trouble.of(error))

    async def _look(self, owner: Owner, namespace: str) -> OwnerSeen:
        kind = await self._kinds.find(owner.api_version, owner.kind)
        watch = self._watch(kind, namespace)
        if watch is not None:
            await watch.use()
            if watch.cache.in_sync:
                return watch.cache.get(owner.name)
        found = await self._get(kind, namespace, owner.name)
        if watch is None or watch.refused is not None:
            return replace(found, watched=False)
        if watch.cache.in_sync:  # in sync since: later events compare to it
            return watch.cache.get(owner.name)
        return found

    async def _confirm(self, owner: Owner, namespace: str) -> OwnerSeen:
        kind = await self._kinds.find(owner.api_version, owner.kind)
        return await self._get(kind, namespace, owner.name)

    def _watch(self, kind: Kind, namespace: str) -> OwnerWatch | None:
        """Return the watch of a kind in a namespace, or begin it; None if it cannot be watched.

        Watches that have ended are removed first.
        """
        place, now = (kind, namespace), time.monotonic()
        for other, one in list(self._watches.items()):
            if one.ended:
                del self._watches[other]
                if one.refused is not None and one.refused.status == _NOT_FOUND:
                    self._kinds.forget(other[0])
                elif one.refused is not None:
                    self._unwatched[other] = now + self._patience.refused
        self._unwatched = {other: at for other, at in self._unwatched.items() if at > now}
        if place not in self._watches:
            if place in self._unwatched or len(self._watches) >= MOST_WATCHES:
                return None

            def changed(name: str) -> None:
                self._wake(kind.api_version, kind.name, namespace, name)

            self._watches[place] = OwnerWatch(
                self._api, kind, namespace, changed=changed, patience=self._patience
            )
        return self._watches[place]

    async def _get(self, kind: Kind, namespace: str, name: str) -> OwnerSeen:
        """Read an object at the API server. A refusal for lack of rights is remembered a while."""
        now = time.monotonic()
        self._forbidden = {key: one for key, one in self._forbidden.items() if one[0] > now}
        if (kind, namespace, name) in self._forbidden:
            raise self._forbidden[kind, namespace, name][1]
        try:
            found = seen(kind, await self._api.get(kind, namespace, name))
        except Refused as error:
            if error.status == _FORBIDDEN:
                refused = _forbidden(kind, namespace, name)
                until = time.monotonic() + self._patience.refused
                self._forbidden[kind, namespace, name] = until, refused
                raise refused from error
            if error.status == _NOT_FOUND:
                self._kinds.forget(kind)
                raise OwnerKindNotFound(
                    f"the cluster knows no {kind.name} of {kind.api_version} any more",
                    field="spec.owners",
                ) from error
            raise
        watch = self._watches.get((kind, namespace))
        if watch is not None:
            watch.cache.tell(name, found)
        return found


def _forbidden(kind: Kind, namespace: str, name: str) -> OwnerForbidden:
    what = f"{kind.plural}.{kind.group}" if kind.group else kind.plural
    return OwnerForbidden(
        f"the operator must not get {what} {name!r} in the namespace {namespace}: that takes a "
        f"ClusterRole with the label {LABEL} that allows to get, list and watch {what}",
        field="spec.owners",
        remedy="Add such a ClusterRole; it is looked at again every minute.",
    )
