"""Look at the restore drill of a StreamArchive, and carry out decisions about it."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Final

import structlog

from sluice.api.fields.common import API_VERSION
from sluice.api.fields.drills import DrillTarget
from sluice.api.kinds.streamarchive import StreamArchive
from sluice.api.kinds.streamcopy import StreamCopy
from sluice.api.status.copy_status import StreamCopyStatus
from sluice.core.reconcile.copies.actions import (
    DeleteDrill,
    DropScratch,
    PauseDrill,
    StartDrill,
)
from sluice.core.reconcile.copies.archive_seen import ArchiveSeen
from sluice.core.reconcile.copies.drill.seen import DrillCopy, DrillSeen, copy_name
from sluice.core.reconcile.shared.store_seen import StoreSeen
from sluice.core.values.model import StreamName
from sluice.core.values.scratch import scratch_name
from sluice.core.values.trouble import Trouble
from sluice.engine.copy import scratch
from sluice.errors import (
    ApiUnavailable,
    InvalidSpec,
    PodRefused,
    QuotaExceeded,
    SluiceError,
    StoreNotFound,
)
from sluice.kube.api import names
from sluice.kube.api.kinds import STREAM_COPY
from sluice.kube.api.objects import is_deleting, parse
from sluice.kube.api.responses import Refused
from sluice.kube.copies.store_access import DRILLS, look_at_store

if TYPE_CHECKING:
    from collections.abc import Callable

    from sluice.core.reconcile.copies.seen import CopySeen
    from sluice.kube.api.client import Api
    from sluice.kube.api.kinds import Object
    from sluice.kube.copies.situation import Situation
    from sluice.kube.jobs.attempts import Attempts
    from sluice.kube.loop.memory import Blocking
    from sluice.kube.stores.connections import Connections
    from sluice.kube.stores.storeview import StoreView

_log = structlog.get_logger()


_RUNNING: Final = ("limits", "backoffLimit", "runtime")
"""Fields of a StreamArchive's spec that the StreamCopy of a drill gets as well."""


class Drills:
    """The restore drills of StreamArchives.

    Args:
        api: the API server.
        attempts: the Jobs and pods of copies.
        connections: connections to the stores.
        stores: the StreamStores.
        blocking: makes calls to stores in threads.
    """

    def __init__(
        self,
        api: Api,
        attempts: Attempts,
        connections: Connections,
        stores: StoreView,
        blocking: Blocking,
    ) -> None:
        self._api = api
        self._attempts = attempts
        self._connections = connections
        self._stores = stores
        self._blocking = blocking

    async def look(self, body: Object, seen: CopySeen, *, eager: bool) -> DrillSeen | None:
        """Look at a resource's drill; None if it has none. `eager`: see `look_at_store`."""
        if not isinstance(seen, ArchiveSeen):
            return None
        # Before the resource goes, a lost status must not hide a drill.
        drill = seen.status.drill
        if seen.spec.verify is None and drill is None and seen.deleted is None:
            return None
        store, drills = None, _drills_of(seen)
        if drills is not None:
            field, place = drills
            store = await look_at_store(self._stores, body, field, place, DRILLS, eager=eager)
        namespace = body["metadata"]["namespace"]
        found = await self._api.get(STREAM_COPY, namespace, copy_name(seen.name, seen.uid))
        copy = None if found is None else _drill_copy(found, seen)
        if found is not None and copy is not None:
            uid = found["metadata"]["uid"]
            copy = replace(copy, active=await self._attempts.at_work(namespace, uid))
        exists, trouble = None, None
        if found is None and drill is not None and drill.scratch and drill.result is not None:
            try:
                exists = await self._in_store(body, seen, scratch.exists)
            except SluiceError as error:
                trouble = Trouble.of(error)
        return DrillSeen(
            place=store,
            copy=copy,
            taken=found is not None and copy is None,
            scratch=exists,
            trouble=trouble,
        )

    async def perform(
        self, situation: Situation, action: StartDrill | PauseDrill | DeleteDrill | DropScratch
    ) -> None:
        """Carry out one action, which may be done twice.

        Raises:
            SluiceError: it failed.
        """
        match action:
            case StartDrill(run):
                await self._start(situation, run)
            case PauseDrill(paused):
                await self._pause(situation, paused=paused)
            case DeleteDrill():
                await self._delete(situation)
            case DropScratch():
                await self._drop(situation)

    async def _start(self, situation: Situation, run: int) -> None:
        """Make the StreamCopy of a drill, if it does not exist.

        Raises:
            QuotaExceeded: a quota forbids the StreamCopy.
            PodRefused: the API server refuses it, or another resource has its name.
        """
        archive, seen = situation.resource, situation.seen
        if not isinstance(archive, StreamArchive) or not isinstance(seen, ArchiveSeen):
            raise TypeError(f"a {type(archive).__name__} has no drills")
        made = _made(situation, seen, archive, run)
        try:
            created = await self._api.create(STREAM_COPY, situation.namespace, made)
        except Refused as error:
            kind = QuotaExceeded if "exceeded quota" in error.message else PodRefused
            raise kind(error.message, field="spec.verify") from error
        if created is None:
            found = await self._api.get(STREAM_COPY, situation.namespace, made["metadata"]["name"])
            if found is None or _drill_copy(found, seen) is None:
                raise PodRefused(
                    f"there is a StreamCopy {made['metadata']['name']!r} that is no drill",
                    remedy="Delete it: the drill's StreamCopy has to have this name.",
                )
        _log.info("drill started", run=run)

    async def _pause(self, situation: Situation, *, paused: bool) -> None:
        """Have the StreamCopy of a drill pause or go on, if it exists."""
        name = copy_name(situation.seen.name, situation.seen.uid)
        await self._api.patch(STREAM_COPY, situation.namespace, name, {"spec": {"suspend": paused}})

    async def _delete(self, situation: Situation) -> None:
        """Delete the StreamCopy of a drill, but no foreign one of its name."""
        seen, namespace = situation.seen, situation.namespace
        name = copy_name(seen.name, seen.uid)
        found = await self._api.get(STREAM_COPY, namespace, name)
        if found is None or not isinstance(seen, ArchiveSeen) or _drill_copy(found, seen) is None:
            return
        await self._api.delete(STREAM_COPY, namespace, name, uid=found["metadata"]["uid"])

    async def _drop(self, situation: Situation) -> None:
        """Delete the scratch stream. A StreamCopy that may write to it must be gone.

        Raises:
            ApiUnavailable: the StreamCopy still exists; try again.
            StoreNotFound: there is no StreamStore any more that the scratch stream is in.
        """
        seen, namespace = situation.seen, situation.namespace
        name = copy_name(seen.name, seen.uid)
        if not isinstance(seen, ArchiveSeen):
            return
        found = await self._api.get(STREAM_COPY, namespace, name)
        if found is not None and (_drill_copy(found, seen) is not None or _writes(found, seen)):
            raise ApiUnavailable(f"the StreamCopy {name!r} of the restore drill still exists")
        done = await self._in_store(situation.body, seen, scratch.drop)
        _log.info("scratch stream deleted" if done else "there is no scratch stream")

    async def _in_store(self, body: Object, seen: ArchiveSeen, call: Callable[..., bool]) -> bool:
        """Call with the scratch stream's name and its store; False if there is no place of it.

        Raises:
            StoreNotFound: there is no StreamStore any more that the scratch stream is in.
            SluiceError: the call failed.
        """
        drill, drills = seen.status.drill, _drills_of(seen)
        if drills is None and (drill is None or not drill.scratch):
            return False
        place = None if drills is None else drills[1]
        found = None
        if place is not None:
            found = await self._stores.look(place.ref, body["metadata"]["namespace"])
        if found is not None and found.resource.spec.holds_archives:
            found = None  # made anew, for archives
        if found is None or place is None:
            name = place.store if place is not None else drill.store if drill is not None else ""
            raise StoreNotFound(
                f"there is no StreamStore {name!r} any more in this namespace, which has the "
                "scratch stream of a restore drill"
            )
        store = await self._connections.get(found.seen.namespace, found.seen.address)
        stream = StreamName(scope=place.scope, stream=scratch_name(seen.uid))
        return await self._blocking(lambda: call(stream, store))


def _drills_of(seen: ArchiveSeen) -> tuple[str, DrillTarget] | None:
    """Return where the scratch stream is, or else where drills make it, behind the field's path.

    None if there is no such place. It is in the archive's own namespace, even if a status should
    say otherwise: nothing else has consented.
    """
    drill = seen.status.drill
    if drill is None or not drill.scratch or not drill.store or not drill.scope:
        return seen.spec.drills
    if "/" in drill.store:
        return None
    return "spec.verify.target", DrillTarget.at(drill.store, drill.scope)


def _made(situation: Situation, seen: ArchiveSeen, archive: StreamArchive, run: int) -> Object:
    """Return the StreamCopy of a drill.

    Raises:
        PodRefused: there is no place for its scratch stream.
    """
    spec = archive.spec
    drills, origin = _drills_of(seen), spec.destination
    if drills is None:
        raise PodRefused("there is no place for a scratch stream", field="spec.verify.target")
    place = drills[1]
    written = situation.body["spec"]  # as the user wrote it: sizes have several forms
    made: Object = {
        "apiVersion": API_VERSION,
        "kind": STREAM_COPY.name,
        "metadata": situation.child.metadata(copy_name(seen.name, seen.uid), "drill"),
        "spec": {
            "source": {
                "archive": {
                    "storeRef": origin.ref.model_dump(
                        mode="json", by_alias=True, exclude_none=True
                    ),
                    "path": origin.path,
                    "run": run,
                }
            },
            "target": {
                "storeRef": {"name": place.store},
                "scope": place.scope,
                "stream": scratch_name(seen.uid),
            },
            "onTruncation": "Record",  # the run has recorded its gaps, and is whole with them
            **{part: written[part] for part in _RUNNING if part in written},
        },
    }
    return made


def _drill_copy(body: Object, seen: ArchiveSeen) -> DrillCopy | None:
    """Return the StreamCopy of a drill; None if it is another one that has its name.

    The owner reference alone proves nothing: any client can write it. So its target has to be the
    place of the scratch stream: else a forged one would have the operator log in elsewhere.
    """
    meta = body["metadata"]
    try:
        spec = parse(body, StreamCopy).spec
    except InvalidSpec:
        return None
    archive = None if spec.source is None else spec.source.archive
    ours = (
        names.is_child(body, seen.uid)
        and archive is not None
        and archive.run is not None
        and (archive.store, archive.path)
        == (seen.spec.destination.store, seen.spec.destination.path)
        and _writes(body, seen)
        and spec.target.on_exists == "Fail"
    )
    if not ours or archive is None or archive.run is None:
        return None
    status = StreamCopyStatus.read(body.get("status"))
    return DrillCopy(
        status=status,
        run=archive.run,
        store=spec.target.store,
        scope=spec.target.scope,
        current=status.observed_generation == meta.get("generation", 0),
        suspended=spec.suspend,
        deleting=is_deleting(body),
    )


def _writes(body: Object, seen: ArchiveSeen) -> bool:
    """Tell whether a StreamCopy writes to the scratch stream, even one that cannot be read."""
    drills, target = _drills_of(seen), (body.get("spec") or {}).get("target") or {}
    if drills is None:
        return False
    place = drills[1]
    return (target.get("storeRef"), target.get("scope"), target.get("stream")) == (
        {"name": place.store},
        place.scope,
        scratch_name(seen.uid),
    )


def held(situation: Situation) -> list[tuple[str, StoreSeen]]:
    """List the StreamStores that a drill needs beside the archive's own, by their names' fields."""
    seen, drill = situation.seen, situation.world.drill
    if not isinstance(seen, ArchiveSeen) or drill is None:
        return []
    store = drill.place
    drills = _drills_of(seen)
    if drills is None or not isinstance(store, StoreSeen) or store.held:
        return []
    return [(f"{drills[0]}.storeRef.name", store)]


def scratch_of(situation: Situation) -> str:
    """Describe what a drill may leave behind; empty if that is nothing."""
    seen = situation.seen
    drill = seen.status.drill if isinstance(seen, ArchiveSeen) else None
    if drill is None or not drill.scratch:
        return ""
    stream = f"{drill.scope}/{scratch_name(seen.uid)}"
    return f"StreamStore {drill.store!r} may hold the scratch stream {stream} of a restore drill"
