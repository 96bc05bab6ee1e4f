"""Sweep the namespaces of StreamStores: end what works there for copies that are gone, or may not.

The operator looks at a copy, too, and stops its driver when a grant is withdrawn. But the copy's
users write what it looks at there: the copy's spec, and Jobs beside the copy that can be as many
and as large as they like. Nothing of that is in the way here. The sweep reads the Jobs from the
mirror, and has a task of its own.
"""

from __future__ import annotations

import asyncio
from collections import defaultdict
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Final

import structlog

from sluice.api.kinds.streamstore import StreamStore
from sluice.core.pace.sharing import dealt
from sluice.core.workloads import access
from sluice.core.workloads.request import store_address
from sluice.errors import ApiUnavailable, SluiceError
from sluice.kube.api.kinds import COPIES, JOB, NAMESPACE, STREAM_STORE
from sluice.kube.api.names import Child, away_of
from sluice.kube.api.objects import driver_namespace, parse
from sluice.kube.api.responses import Refused
from sluice.kube.jobs import away
from sluice.kube.loop.served import ALL
from sluice.kube.stores.dependents import stores_of

if TYPE_CHECKING:
    from collections.abc import Mapping

    from sluice.kube.api.cache import Mirror
    from sluice.kube.api.client import Api
    from sluice.kube.api.kinds import Kind, Object
    from sluice.kube.loop.served import Served

_log = structlog.get_logger()

_MOST: Final = 100
"""Most copies for which a round deletes something."""

_DOUBTS: Final = 1000
"""Most Jobs about which a round asks the API server, shared by the namespaces."""

_FIRST: Final = 10.0
"""Seconds until the first round, in which the watches begin."""


@dataclass
class _Round:
    """What a round has read already.

    Attributes:
        labels: of namespaces; None for those that do not exist.
        swept: for how many copies something was deleted.
    """

    labels: dict[str, Mapping[str, str] | None] = field(default_factory=dict)
    swept: int = 0


class Sweep:
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
        meta, host = body["metadata"], driver_namespace(body)
        if COPIES.get(kind.name) != kind or host in {None, meta["namespace"]}:
            return
        child = Child(
            kind=kind, namespace=meta["namespace"], name=meta["name"], uid=meta["uid"], host=host
        )
        if self._serves(child):
            self._gone.put_nowait(child)

    async def follow(self) -> None:
        """Clear away at once, for ever, what worked for copies that are gone."""
        while True:
            child = await self._gone.get()
            try:
                await away.clear(self._api, child, ())
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

        Returns:
            For how many copies something was deleted.

        Raises:
            ApiUnavailable: the API server could not be asked.
        """
        known = _Round()
        groups: defaultdict[str, list[tuple[bool, Child]]] = defaultdict(list)
        for job in [*self._mirror.all(JOB)]:
            child, over = _worked_for(job), _is_over(job)
            if child is None or not self._serves(child):
                continue
            if not await self._is_good(known, child, over=over, fresh=False):
                groups[child.place].append((over, child))
        for group in groups.values():
            group.sort(key=_is_late)
        for over, child in dealt([*groups.values()], _DOUBTS):
            if known.swept >= _MOST:
                break
            try:
                await self._clear(known, child, over=over)
            except Refused as error:  # a forged name, or a namespace without rights
                _log.warning("not swept", namespace=child.place, error=str(error))
        return known.swept

    async def _clear(self, known: _Round, child: Child, *, over: bool) -> None:
        """Delete what works for a copy, if the API server does not say that it may go on."""
        if await self._is_good(known, child, over=over, fresh=True):
            return
        if await away.clear(self._api, child, ()):
            known.swept += 1
            _log.info("swept", namespace=child.place, copy=str(child))

    def _serves(self, child: Child) -> bool:
        return self._served.include(child.namespace) and self._served.include(child.place)

    async def _is_good(self, known: _Round, child: Child, *, over: bool, fresh: bool) -> bool:
        """Tell whether a Job's copy exists and, unless the Job is over, still has its grant.

        Args:
            known: what this round knows.
            child: the copy, as the Job names it.
            over: whether the Job has ended.
            fresh: whether to ask the API server, which is asked before anything is deleted. The
                mirror may lag.
        """
        body = await self._read(child.kind, child.namespace, child.name, fresh=fresh)
        if body is None or body["metadata"]["uid"] != child.uid:
            return False
        return over or await self._is_granted(known, body, child.place, fresh=fresh)

    async def _read(self, kind: Kind, namespace: str, name: str, *, fresh: bool) -> Object | None:
        if fresh:
            return await self._api.get(kind, namespace, name)
        return self._mirror.get(kind, namespace, name)

    async def _is_granted(self, known: _Round, body: Object, place: str, *, fresh: bool) -> bool:
        """Tell whether the StreamStores of a namespace still let a copy have drivers there.

        If that cannot be made out, it is not granted.
        """
        namespace = body["metadata"]["namespace"]
        if namespace not in known.labels:
            found = await self._api.get(NAMESPACE, None, namespace)
            labels = None if found is None else found["metadata"].get("labels") or {}
            known.labels[namespace] = labels
        hosting = False
        try:
            for one in (one for one in stores_of(body) if one.namespace == place):
                store = await self._read(STREAM_STORE, *one, fresh=fresh)
                granted = _granted(store, known.labels[namespace])
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


def _worked_for(job: Object) -> Child | None:
    """Return the copy that a Job of another namespace works for; None if it works for none."""
    found = away_of(job)
    if found is None or found.kind not in COPIES:
        return None
    child = Child(
        kind=COPIES[found.kind],
        namespace=found.namespace,
        name=found.name,
        uid=found.uid,
        host=job["metadata"]["namespace"],
    )
    return child if child.has(job) else None


def _is_over(job: Object) -> bool:
    """Tell whether a Job has ended, so that no pod of it runs."""
    said = (job.get("status") or {}).get("conditions") or ()
    return any(
        one.get("type") in {"Complete", "Failed"} and one.get("status") == "True" for one in said
    )


def _is_late(entry: tuple[bool, Child]) -> bool:
    """Order Jobs: those first that may have a driver."""
    return entry[0]
