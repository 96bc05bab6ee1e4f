"""Looking at an EphemeralStream: from objects and its store to the world that is decided on."""

from __future__ import annotations

import time
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from typing import TYPE_CHECKING

from sluice.api.kinds.ephemeralstream import EphemeralStream
from sluice.core.claims.claim import Claim, Claimant, Ownership
from sluice.core.reconcile.ephemeral.decide import asks_store
from sluice.core.reconcile.ephemeral.holding import DRIFT_SECONDS, NEWS_SECONDS
from sluice.core.reconcile.ephemeral.world import EphemeralWorld, OwnerSeen
from sluice.core.values.model import (
    RetentionType,
    ScaleType,
    Scaling,
    StreamConfig,
    StreamRetention,
)
from sluice.core.values.trouble import Trouble
from sluice.core.workloads import access
from sluice.engine.claims import claims
from sluice.errors import InvalidSpec, SluiceError, StoreNotFound
from sluice.kube.api.kinds import EPHEMERAL_STREAM, NAMESPACE
from sluice.kube.api.objects import ephemeral_seen, parse
from sluice.kube.ephemeral import conflicts
from sluice.kube.loop.memory import Blocking, Memories

if TYPE_CHECKING:
    from concurrent.futures import Executor

    from sluice.api.kinds.ephemeralstream import EphemeralStreamSpec, Owner
    from sluice.api.kinds.streamstore import StreamStore
    from sluice.core.claims.claim import Holding
    from sluice.core.reconcile.ephemeral.world import EphemeralSeen
    from sluice.core.values.model import StoreAddress
    from sluice.kube.api.cache import Mirror
    from sluice.kube.api.client import Api
    from sluice.kube.api.kinds import Object
    from sluice.kube.ephemeral.owners import Owners
    from sluice.kube.stores.connections import Connections
    from sluice.kube.stores.storeview import StoreView
    from sluice.stores.base import Store


@dataclass(slots=True)
class _Memory:
    """What is kept of a resource between two looks, only to spare calls.

    Attributes:
        address: where its store was last seen, for the time when its StreamStore is gone.
        holding: what the store said of streams that are ours, and when and about which generation.
    """

    address: StoreAddress | None = None
    holding: tuple[Holding, float, int] | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class EphemeralSituation:
    """An EphemeralStream and everything around it.

    Attributes:
        body: the object.
        resource: it, as a model.
        seen: it, as its reconcile function takes it.
        world: its surroundings.
        claim: what it claims.
    """

    body: Object
    resource: EphemeralStream
    seen: EphemeralSeen
    world: EphemeralWorld
    claim: Claim


class EphemeralObserver:
    """Looks at EphemeralStreams.

    Args:
        api: the API server.
        mirror: what the watches told.
        owners: what is known of owners.
        stores: the StreamStores.
        connections: the stores themselves.
        cluster: the cluster's identity.
        threads: where blocking calls to stores are made.
    """

    def __init__(
        self,
        api: Api,
        mirror: Mirror,
        owners: Owners,
        stores: StoreView,
        connections: Connections,
        *,
        cluster: str,
        threads: Executor,
    ) -> None:
        self._api = api
        self._mirror = mirror
        self._owners = owners
        self._stores = stores
        self._connections = connections
        self._cluster = cluster
        self.blocking = Blocking(threads)
        self._memories = Memories(_Memory)

    def forget(self, namespace: str, name: str) -> None:
        """The resource is gone."""
        self._memories.forget(namespace, name)

    def forget_holding(self, situation: EphemeralSituation) -> None:
        """Something was changed in the store: it is asked again."""
        self._memory(situation.seen).holding = None

    async def look(self, body: Object) -> EphemeralSituation:
        """Look at a resource's surroundings. Nothing is changed.

        Raises:
            InvalidSpec: the object is none that this version understands.
            ApiUnavailable: the API server could not be asked.
        """
        resource = parse(body, EphemeralStream)
        seen = ephemeral_seen(body, resource)
        found = await self._stores.look(seen.namespace, seen.spec.store_ref.name, eager=seen.asked)
        memory = self._memory(seen)
        if found is not None and found.seen is not None:
            memory.address = found.seen.address
        refused = await self._refused(seen, found.resource if found else None)
        world = EphemeralWorld(
            now=datetime.now(UTC),
            store=found.seen if found else None,
            owners=await self._look_at_owners(seen, found.resource if found else None, refused),
            rival=None if seen.deleted is not None else conflicts.rival(self._mirror, body),
            readers=conflicts.readers(self._mirror, body),
            refused=refused,
        )
        claim = claim_of(resource, seen, cluster=self._cluster)
        situation = EphemeralSituation(
            body=body, resource=resource, seen=seen, world=world, claim=claim
        )
        return await self._ask(situation) if asks_store(seen, world) else situation

    async def store(self, situation: EphemeralSituation) -> Store:
        """The store, also when its StreamStore is gone and a connection is still open.

        Raises:
            StoreNotFound, SecretNotFound: there is no way to it.
        """
        address = self._memory(situation.seen).address
        if address is None:
            name = situation.seen.spec.store_ref.name
            raise StoreNotFound(f"there is no StreamStore {name!r} any more")
        return await self._connections.get(situation.seen.namespace, address)

    def _memory(self, seen: EphemeralSeen) -> _Memory:
        return self._memories.of(seen.namespace, seen.name, seen.uid)

    async def _look_at_owners(
        self, seen: EphemeralSeen, store: StreamStore | None, refused: Trouble | None
    ) -> tuple[OwnerSeen, ...]:
        """The owners; of a resource that is deleted, those of a prefix only.

        While it is refused what the resource wants, nobody is asked about owners: the status would
        tell of workloads that its author may not see.
        """
        if refused is not None:
            return tuple(OwnerSeen(trouble=refused) for _ in seen.spec.owners)
        if seen.deleted is None:
            return tuple([await self._look_at_owner(seen, owner) for owner in seen.spec.owners])
        if seen.spec.stream_prefix is None:
            return ()
        found = []
        for owner in seen.spec.owners:
            try:
                await self._check_owner(seen, store, owner)
            except SluiceError as error:
                found.append(OwnerSeen(trouble=Trouble.of(error)))
            else:
                found.append(await self._owners.look(owner, owner.namespace or seen.namespace))
        return tuple(found)

    async def _look_at_owner(self, seen: EphemeralSeen, owner: Owner) -> OwnerSeen:
        """An owner; one by whom something would be released, or made, is looked at once more.

        A watch may lag, and a reference to an owner that is being deleted would be the end of the
        streams.
        """
        namespace = owner.namespace or seen.namespace
        found = await self._owners.look(owner, namespace)
        refers = seen.spec.tracking == "OwnerReference"
        settled = found.uid in seen.references if refers else found.uid is not None
        if found.trouble is not None or (settled and not found.finished):
            return found
        return await self._owners.confirm(owner, namespace)

    async def _refused(self, seen: EphemeralSeen, store: StreamStore | None) -> Trouble | None:
        """Why the StreamStore's access forbids what the spec asks for."""
        if store is None or seen.deleted is not None:
            return None
        name = store.metadata.name
        try:
            access.check(
                store.spec.access,
                store=name,
                scope=seen.spec.scope,
                operations=access.needs(seen.spec),
            )
            for owner in seen.spec.owners:
                await self._check_owner(seen, store, owner)
        except SluiceError as error:
            return Trouble.of(error)
        return None

    async def _check_owner(
        self, seen: EphemeralSeen, store: StreamStore | None, owner: Owner
    ) -> None:
        """Check that an owner of another namespace may be looked at.

        Raises:
            AccessDenied: the StreamStore or that namespace does not agree.
            ApiUnavailable: the API server does not say.
        """
        if owner.namespace in {None, seen.namespace}:
            return
        found = await self._api.get(NAMESPACE, None, str(owner.namespace))
        access.check_namespace(
            store.spec.access if store is not None else None,
            store=seen.spec.store_ref.name,
            here=seen.namespace,
            namespace=str(owner.namespace),
            labels=None if found is None else found["metadata"].get("labels", {}),
        )

    async def _ask(self, situation: EphemeralSituation) -> EphemeralSituation:
        """Ask the store, unless it was asked lately; why it could not be is part of the answer."""
        seen, memory = situation.seen, self._memory(situation.seen)
        if memory.holding is not None and seen.status.release is None and not seen.asked:
            holding, at, generation = memory.holding
            fresh = DRIFT_SECONDS if seen.spec.stream is not None else NEWS_SECONDS
            if generation == seen.generation and time.monotonic() - at < fresh - 1:
                return replace(situation, world=replace(situation.world, holding=holding))
        try:
            store = await self.store(situation)
            claim = situation.claim
            holding = await self.blocking(lambda: claims.look(claim, store))
        except SluiceError as error:
            return replace(situation, world=replace(situation.world, trouble=Trouble.of(error)))
        if holding.ownership is Ownership.OURS:  # what is not may be any moment
            memory.holding = (holding, time.monotonic(), seen.generation)
        left = await self._is_left(holding)
        return replace(situation, world=replace(situation.world, holding=holding, left=left))

    async def _is_left(self, holding: Holding) -> bool:
        """Whether the EphemeralStream of this cluster that has a stream is there no more.

        What was made under its name since is another one.
        """
        if holding.holder_uid is None:
            return False
        namespace, _, name = holding.holder_resource.partition("/")
        try:
            found = await self._api.get(EPHEMERAL_STREAM, namespace, name)
        except InvalidSpec:  # a tag says so, which anybody may have written: it is somebody's
            return False
        return found is None or found["metadata"]["uid"] != holding.holder_uid


def claim_of(resource: EphemeralStream, seen: EphemeralSeen, *, cluster: str) -> Claim:
    """What a resource claims."""
    spec = resource.spec
    claimant = Claimant(
        cluster=cluster,
        namespace=seen.namespace,
        name=seen.name,
        uid=seen.uid,
        created=round(seen.created.timestamp() * 1000),
    )
    return Claim(
        claimant=claimant,
        scope=spec.scope,
        make_scope=spec.scope_policy == "CreateIfAbsent",
        stream=spec.stream,
        prefix=spec.stream_prefix,
        config=stream_config(spec),
        existing=spec.claim == "ExistingAndNew",
        known=seen.status.created_milliseconds,
    )


def stream_config(spec: EphemeralStreamSpec) -> StreamConfig:
    """A stream's configuration as the store knows it."""
    if spec.config is None:
        return StreamConfig()
    scaling, retention = spec.config.scaling, spec.config.retention
    kept = StreamRetention()
    if retention is not None and retention.seconds is not None:
        kept = StreamRetention(type=RetentionType.TIME, minimum=retention.seconds * 1000)
    elif retention is not None and retention.bytes is not None:
        kept = StreamRetention(type=RetentionType.SIZE, minimum=retention.bytes)
    return StreamConfig(
        scaling=Scaling(
            type=ScaleType(scaling.type),
            target_rate=scaling.target_rate or 0,
            scale_factor=scaling.scale_factor or 0,
            min_segments=scaling.min_segments,
        ),
        retention=kept,
        tags=spec.config.tags,
    )
