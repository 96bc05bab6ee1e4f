"""Sweep the namespaces of StreamStores: end what works there for copies that are gone, or may not.

The operator looks at a copy, too, and stops its driver when a grant is withdrawn. But the copy's
users write what it looks at there: the copy's spec, and Jobs beside the copy that can be as many
and as large as they like. Nothing of that is in the way here. The sweep reads the Jobs from the
mirror, and has a task of its own.
"""

from __future__ import annotations

import asyncio
from collections import defaultdict
from typing import TYPE_CHECKING, Final

import structlog

from sluice.api.kinds.streamstore import StreamStore
from sluice.core.pace.sharing import dealt
from sluice.core.workloads import access
from sluice.core.workloads.request import store_address
from sluice.errors import ApiUnavailable, InvalidSpec, SluiceError
from sluice.kube.api.kinds import COPIES, JOB, NAMESPACE, STREAM_STORE
from sluice.kube.api.names import Child, away_of
from sluice.kube.api.objects import driver_namespace, parse
from sluice.kube.api.responses import Refused
from sluice.kube.jobs import away
from sluice.kube.jobs.jobs import is_over
from sluice.kube.loop.served import ALL
from sluice.kube.stores.dependents import stores_of

if TYPE_CHECKING:
    from collections.abc import Mapping

    from sluice.kube.api.cache import Mirror
    from sluice.kube.api.client import Api
    from sluice.kube.api.kinds import Kind, Object
    from sluice.kube.loop.served import Served

    _Labels = dict[str, Mapping[str, str] | None]
    """The labels of namespaces; None for those that do not exist."""

_log = structlog.get_logger()

_MOST: Final = 100
"""Most copies for which a round deletes something."""

_DOUBTS: Final = 1000
"""Most Jobs about which a round asks the API server, shared by the namespaces."""

_FIRST: Final = 10.0
"""Seconds until the first round, in which the watches begin."""


class CopySweep:
    """The sweep.

    Args:
        api: the API server.
        mirror: the objects that the watches have shown.
        served: the namespaces that this operator serves. Of others it does not know the copies.
        seconds: seconds between two rounds.
    """

    def __init__(
        self, api: Api, mirror: Mirror, served: Served = ALL, *, seconds: float = 60.0
    ) -> None:
        self._api = api
        self._mirror = mirror
        self._served = served
        self._seconds = seconds
        self._gone: asyncio.Queue[Child] = asyncio.Queue()

    def gone(self, kind: Kind, body: Object) -> None:
        """Take in that a resource is gone. If its user removed the finalizer, a driver may be left.

        Args:
            kind: its kind.
            body: its last state.
        """
        child = Child.of(kind, body, host=driver_namespace(body))
        if COPIES.get(kind.name) == kind and child.place != child.namespace and self._serves(child):
            self._gone.put_nowait(child)

    async def follow(self) -> None:
        """Clear away at once, for ever, what worked for copies that are gone."""
        while True:
            child = await self._gone.get()
            try:
                await away.clear(self._api, child)
            except SluiceError as error:  # the next round does it
                _log.warning("not swept", namespace=child.place, error=str(error))

    async def run(self) -> None:
        """Make rounds for ever."""
        await asyncio.sleep(min(_FIRST, self._seconds))
        while True:
            try:
                await self.round()
            except SluiceError as error:
                _log.warning("sweep failed", error=str(error))
            await asyncio.sleep(self._seconds)

    async def round(self) -> int:
        """Delete what works for copies that are gone, or whose grant is.

        Users may forge Jobs. One that cannot be dealt with keeps no other from its end.

        Returns:
            For how many copies something was deleted.

        Raises:
            ApiUnavailable: the API server could not be asked.
        """
        over: dict[Child, bool] = {}
        for job in self._mirror.all(JOB):
            child = away_of(job)
            if child is not None and child.has(job) and self._serves(child):
                over[child] = is_over(job) and over.get(child, True)
        labels: _Labels = {}
        groups: defaultdict[str, list[Child]] = defaultdict(list)
        for child in sorted(over, key=over.__getitem__):  # those first that may have a driver
            if not await self._is_good(labels, child, over=over[child], fresh=False):
                groups[child.place].append(child)
        swept, failed = 0, set[str]()
        for child in dealt([*groups.values()], _DOUBTS):
            if swept == _MOST:
                break
            if child.place in failed:
                continue
            try:
                swept += await self._clear(labels, child, over=over[child])
            except (Refused, InvalidSpec) as error:  # a namespace without rights, or a forged name
                _log.warning("not swept", namespace=child.place, error=str(error))
            except ApiUnavailable as error:  # perhaps by Jobs that are too many, or too large
                failed.add(child.place)
                _log.warning("not swept", namespace=child.place, error=str(error))
        return swept

    async def _clear(self, labels: _Labels, child: Child, *, over: bool) -> bool:
        """Delete what works for a copy, if the API server does not say that it may go on.

        Returns:
            Whether there was anything.
        """
        if await self._is_good(labels, child, over=over, fresh=True):
            return False
        found = await away.clear(self._api, child) > 0
        if found:
            _log.info("swept", namespace=child.place, copy=str(child))
        return found

    def _serves(self, child: Child) -> bool:
        return self._served.include(child.namespace) and self._served.include(child.place)

    async def _is_good(self, labels: _Labels, child: Child, *, over: bool, fresh: bool) -> bool:
        """Tell whether a copy exists and, unless its Jobs are over, still has its grant.

        Args:
            labels: of the namespaces that this round has read.
            child: the copy, as its Jobs name it.
            over: whether the Jobs have ended.
            fresh: whether to ask the API server, which is asked before anything is deleted. The
                mirror may lag.
        """
        body = await self._read(child.kind, child.namespace, child.name, fresh=fresh)
        if body is None or body["metadata"]["uid"] != child.uid:
            return False
        return over or await self._is_granted(labels, body, child.place, fresh=fresh)

    async def _read(self, kind: Kind, namespace: str, name: str, *, fresh: bool) -> Object | None:
        if fresh:
            return await self._api.get(kind, namespace, name)
        return self._mirror.get(kind, namespace, name)

    async def _is_granted(self, labels: _Labels, body: Object, place: str, *, fresh: bool) -> bool:
        """Tell whether the StreamStores of a namespace still let a copy have drivers there.

        If that cannot be made out, it is not granted.
        """
        namespace = body["metadata"]["namespace"]
        if namespace not in labels:
            found = await self._api.get(NAMESPACE, None, namespace)
            labels[namespace] = None if found is None else found["metadata"].get("labels") or {}
        hosting = False
        try:
            for one in (one for one in stores_of(body) if one.namespace == place):
                store = await self._read(STREAM_STORE, *one, fresh=fresh)
                granted = _granted(store, labels[namespace])
                if granted is None:
                    return False
                hosting = hosting or granted
        except ApiUnavailable:
            raise
        except Exception as error:  # noqa: BLE001 - nothing that users write keeps a driver alive
            _log.warning("not readable", namespace=place, error=type(error).__name__)
            return False
        return hosting


def _granted(store: Object | None, labels: Mapping[str, str] | None) -> bool | None:
    """Tell whether a StreamStore lets a namespace have drivers beside it; None if it forbids them.

    Args:
        store: the StreamStore; None if there is none.
        labels: of the namespace; None if there is no such namespace.
    """
    if store is None:
        return None
    resource = parse(store, StreamStore)
    grants = access.grants(resource.spec.access, labels)
    hosting = bool(access.hosting(grants))
    if not grants or (access.mounted(store_address(resource)) and not hosting):
        return None
    return hosting
