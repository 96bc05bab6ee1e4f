"""Look at an EphemeralStream: turn objects and its store into the world to decide on."""

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
    from sluice.core.claims.claim import Holding
    from sluice.core.reconcile.ephemeral.world import EphemeralSeen
    from sluice.core.values.model import StoreAddress
    from sluice.kube.api.cache import Mirror
    from sluice.kube.api.client import Api
    from sluice.kube.api.kinds import Object
    from sluice.kube.ephemeral.owners import Owners
    from sluice.kube.stores.connections import Connections
    from sluice.kube.stores.storeview import FoundStore, StoreView
    from sluice.stores.base import Store


@dataclass(slots=True)
class _Memory:
    """Memory of a resource between two looks.

    Attributes:
        address: the last address of its store with the StreamStore's namespace, for the time when
            the StreamStore is gone.
        holding: the store's last answer while the streams were the resource's own, when it came
            (monotonic seconds), and the generation that it is about. It only spares calls.
    """

    address: tuple[str, StoreAddress] | None = None
    holding: tuple[Holding, float, int] | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class EphemeralSituation:
    """An EphemeralStream and its surroundings.

    Attributes:
        body: its object at the API server.
        resource: the EphemeralStream as a model.
        seen: the EphemeralStream as its reconcile function takes it.
        world: its surroundings.
        claim: its claim in the store.
    """

    body: Object
    resource: EphemeralStream
    seen: EphemeralSeen
    world: EphemeralWorld
    claim: Claim


class EphemeralObserver:
    """Observer of EphemeralStreams.

    Args:
        api: the API server.
        mirror: the objects that the watches have seen.
        owners: looks at owners.
        stores: the StreamStores.
        connections: connections to the stores.
        cluster: the cluster's identity.
        threads: threads for blocking calls to stores.
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
        """Forget a resource that is gone, or has nothing in a store any more."""
        self._memories.forget(namespace, name)

    def forget_holding(self, situation: EphemeralSituation) -> None:
        """Forget the store's answer before a change there, so that the next look asks again."""
        self._memory(situation.seen).holding = None

    async def look(self, body: Object) -> EphemeralSituation:
        """Look at a resource's surroundings. Nothing is changed.

        Raises:
            InvalidSpec: this version cannot read the object.
            ApiUnavailable: the API server could not be asked.
        """
        resource = parse(body, EphemeralStream)
        seen = ephemeral_seen(body, resource)
        ends = seen.deleted is not None or seen.status.release is not None
        admitted = ends and seen.status.admitted_time is not None
        found = await self._stores.look(
            seen.spec.store_ref, seen.namespace, admitted=admitted, eager=seen.asked
        )
        if found is not None:
            self._memory(seen).address = (found.seen.namespace, found.seen.address)
        refused = await self._refused(seen, found)
        # Rivals and readers are found by the store's address, which is told to none whom the
        # StreamStore does not admit.
        world = EphemeralWorld(
            now=datetime.now(UTC),
            store=found.seen if found else None,
            owners=await self._look_at_owners(seen, found, refused),
            rival=None
            if seen.deleted is not None or found is None
            else conflicts.rival(self._mirror, body),
            readers=conflicts.readers(self._mirror, body) if found else (),
            refused=refused,
        )
        claim = claim_of(resource, seen, cluster=self._cluster)
        situation = EphemeralSituation(
            body=body, resource=resource, seen=seen, world=world, claim=claim
        )
        return await self._ask(situation) if asks_store(seen, world) else situation

    async def store(self, situation: EphemeralSituation) -> Store:
        """Connect to the store, even if its StreamStore is gone but a connection is still open.

        Raises:
            StoreNotFound, SecretNotFound: the store cannot be reached any more.
        """
        known = self._memory(situation.seen).address
        if known is None:
            name = situation.seen.spec.store_ref.title
            raise StoreNotFound(f"there is no StreamStore {name!r} any more")
        return await self._connections.get(*known)

    def _memory(self, seen: EphemeralSeen) -> _Memory:
        return self._memories.of(seen.namespace, seen.name, seen.uid)

    async def _look_at_owners(
        self, seen: EphemeralSeen, store: FoundStore | None, refused: Trouble | None
    ) -> tuple[OwnerSeen, ...]:
        """Look at the owners; for a deleted resource, only if it has a prefix.

        A resource that the StreamStore refuses gets no look at owners. Otherwise its status would
        tell of workloads that its author may not see. Without a StreamStore none has admitted the
        owners of other namespaces.
        """
        if refused is not None:
            return tuple(OwnerSeen(trouble=refused) for _ in seen.spec.owners)
        if seen.deleted is None and store is None:
            ref, namespace = seen.spec.store_ref, seen.namespace
            gone = access.not_found(ref, namespace=namespace, field="spec.storeRef.name")
            return tuple(
                [
                    await self._look_at_owner(seen, owner)
                    if owner.namespace in {None, namespace}
                    else OwnerSeen(trouble=Trouble.of(gone))
                    for owner in seen.spec.owners
                ]
            )
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
        """Look at an owner. If that would make or release a stream, ask the API server once more.

        A watch may lag. With a reference to an owner that is being deleted, Kubernetes would
        delete the resource, and so its streams.
        """
        namespace = owner.namespace or seen.namespace
        found = await self._owners.look(owner, namespace)
        refers = seen.spec.tracking == "OwnerReference"
        settled = found.uid in seen.references if refers else found.uid is not None
        if found.trouble is not None or (settled and not found.finished):
            return found
        return await self._owners.confirm(owner, namespace)

    async def _refused(self, seen: EphemeralSeen, store: FoundStore | None) -> Trouble | None:
        """Tell why the StreamStore's access forbids what the spec asks for; None if it does not."""
        if store is None or seen.deleted is not None:
            return None
        try:
            access.check(
                store.resource.spec.access,
                store=seen.spec.store_ref.title,
                scope=seen.spec.scope,
                operations=access.needs(seen.spec),
                grants=store.grants,
            )
            for owner in seen.spec.owners:
                await self._check_owner(seen, store, owner)
        except SluiceError as error:
            return Trouble.of(error)
        return None

    async def _check_owner(
        self, seen: EphemeralSeen, store: FoundStore | None, owner: Owner
    ) -> None:
        """Check that an owner of another namespace may be looked at.

        Raises:
            AccessDenied: the StreamStore or that namespace does not agree.
            ApiUnavailable: the API server does not answer.
        """
        if owner.namespace in {None, seen.namespace}:
            return
        found = await self._api.get(NAMESPACE, None, str(owner.namespace))
        access.check_namespace(
            store.resource.spec.access if store is not None else None,
            store=seen.spec.store_ref.title,
            here=seen.namespace,
            namespace=str(owner.namespace),
            labels=None if found is None else found["metadata"].get("labels", {}),
        )

    async def _ask(self, situation: EphemeralSituation) -> EphemeralSituation:
        """Add the store's answer, or its failure, to the world; a recent answer is used again."""
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
        if holding.ownership is Ownership.OURS:  # any other answer may change at any moment
            memory.holding = (holding, time.monotonic(), seen.generation)
        left = await self._is_left(holding)
        return replace(situation, world=replace(situation.world, holding=holding, left=left))

    async def _is_left(self, holding: Holding) -> bool:
        """Tell whether the EphemeralStream of this cluster that owns the stream is gone.

        A resource of the same name with another uid is not the owner.
        """
        if holding.holder_uid is None:
            return False
        namespace, _, name = holding.holder_resource.partition("/")
        try:
            found = await self._api.get(EPHEMERAL_STREAM, namespace, name)
        except InvalidSpec:  # any client may have written the tag; the stream is not left then
            return False
        return found is None or found["metadata"]["uid"] != holding.holder_uid


def claim_of(resource: EphemeralStream, seen: EphemeralSeen, *, cluster: str) -> Claim:
    """Return the claim that a resource makes in its store."""
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
    """Return the stream's configuration in the store's terms."""
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
