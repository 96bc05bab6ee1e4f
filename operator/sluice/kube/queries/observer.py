"""Look at a StreamQuery: turn objects and stores into the world of `core.reconcile.queries`."""

from __future__ import annotations

from dataclasses import dataclass, replace
from datetime import UTC, datetime
from typing import TYPE_CHECKING

from sluice.api.fields.query_sinks import ResultStream
from sluice.api.kinds.streamquery import QueriedArchive, StreamQuery
from sluice.core.query.request import query_id, query_request
from sluice.core.reconcile.queries.decide import asks_stores, latest_job
from sluice.core.reconcile.queries.world import QueryWorld
from sluice.core.reconcile.shared.jobs import verifier_name
from sluice.core.reconcile.shared.store_seen import StoreSeen
from sluice.core.values.model import StreamName
from sluice.core.values.trouble import Trouble
from sluice.core.workloads import access
from sluice.engine.query.ledger import QueryLedger
from sluice.engine.query.progress import read_query
from sluice.errors import (
    ClaimNotFound,
    InvalidSpec,
    QueriesNotOffered,
    SluiceError,
    SpecError,
    StoreNotReady,
)
from sluice.kube.api.kinds import CLAIM, STREAM_QUERY
from sluice.kube.api.names import Child
from sluice.kube.api.objects import parse, query_seen
from sluice.kube.jobs.attempts import Attempts
from sluice.kube.jobs.profiles import no_profile, size_trouble
from sluice.kube.jobs.query_job import QueryJob, runtime_hash
from sluice.kube.loop.memory import Blocking, Memories

if TYPE_CHECKING:
    from concurrent.futures import Executor

    from sluice.api.kinds.streamquery import QueriedStream
    from sluice.core.query.request import Place
    from sluice.core.reconcile.queries.world import QuerySeen
    from sluice.kube.api.cache import Mirror
    from sluice.kube.api.client import Api
    from sluice.kube.api.kinds import Object
    from sluice.kube.loop.settings import OperatorSettings
    from sluice.kube.stores.connections import Connections
    from sluice.kube.stores.storeview import StoreView
    from sluice.stores.base import Store


@dataclass(frozen=True, slots=True, kw_only=True)
class QuerySituation:
    """A StreamQuery and its surroundings, as one look at them found them.

    Attributes:
        body: the object at the API server.
        resource: the same as a model.
        seen: the query as it is decided on.
        world: its surroundings.
        job: what the Job of the next attempt depends on; None if a store or a setting is missing.
    """

    body: Object
    resource: StreamQuery
    seen: QuerySeen
    world: QueryWorld
    job: QueryJob | None

    @property
    def child(self) -> Child:
        """The query, as the objects that are made for it name it."""
        return Child.of(STREAM_QUERY, self.body)


@dataclass(slots=True)
class QueryMemory:
    """What is remembered of a query between looks. It only spares calls.

    Attributes:
        of: the query's identity, its first sink and the connection to its store.
        ledger: its ledger, as far as it was read.
    """

    of: tuple[str, StreamName, Store] | None = None
    ledger: QueryLedger | None = None


class QueryObserver:
    """Observer of queries.

    Args:
        api: the API server.
        mirror: the objects that the watches have seen.
        connections: connections to the stores.
        stores: the StreamStores.
        settings: the operator's settings.
        cluster: the cluster's identity.
        threads: threads for blocking calls to stores.

    Attributes:
        blocking: makes blocking calls to stores.
    """

    def __init__(
        self,
        api: Api,
        mirror: Mirror,
        connections: Connections,
        stores: StoreView,
        *,
        settings: OperatorSettings,
        cluster: str,
        threads: Executor,
    ) -> None:
        self._api = api
        self._attempts = Attempts(api, mirror)
        self._connections = connections
        self._stores = stores
        self._settings = settings
        self._cluster = cluster
        self.blocking = Blocking(threads)
        self._memories = Memories(QueryMemory)

    async def look(self, body: Object, *, glance: bool = False) -> QuerySituation:
        """Look at a query's surroundings. Nothing is changed.

        Args:
            body: the query.
            glance: see `reconciler.Workings`.

        Raises:
            InvalidSpec: this version cannot read the object.
            ApiUnavailable: the API server could not be asked.
        """
        resource = parse(body, StreamQuery)
        seen = query_seen(body, resource, query_id(resource, cluster=self._cluster))
        page = self._settings.queries.page_of(seen.namespace, seen.name)
        seen = replace(seen, url=page)
        stores = tuple([await self._store(seen, *place) for place in seen.spec.places])
        situation = QuerySituation(
            body=body,
            resource=resource,
            seen=seen,
            world=QueryWorld(now=datetime.now(UTC), stores=stores),
            job=None,
        )
        hindrance = self._offer_trouble(resource)
        job = self._job(situation) if hindrance is None else None
        places = [seen.namespace]
        jobs = await self._attempts.of(
            situation.child,
            places,
            seen.status.attempts,
            runtime=None if job is None else runtime_hash(job),
            glance=glance,
        )
        world = replace(situation.world, hindrance=hindrance, jobs=jobs)
        if seen.spec.verify is not None or seen.status.verification is not None:
            known = seen.status.verification
            verifiers = await self._attempts.verifiers(
                situation.child,
                verifier_name(seen.uid, 0 if known is None else known.number),
                glance=glance or not _concerns_verifiers(seen),
            )
            world = replace(world, verifiers=verifiers)
        latest, kept = latest_job(seen, world), seen.deleted is None
        # While a driver runs and may go on, its pod is there, and so is its claim.
        at_work = latest is not None and latest.active and not seen.spec.suspend
        if not (kept and (at_work or seen.settled)):
            pods = await self._attempts.alive(places, seen.uid, glance=glance)
            missing = hindrance or await self._claim_trouble(resource)
            world = replace(world, pods=pods, hindrance=missing)
        situation = replace(situation, world=world, job=job)
        return await self._asked(situation) if asks_stores(seen, world) else situation

    async def _store(self, seen: QuerySeen, field: str, place: Place) -> StoreSeen | Trouble | None:
        """Look at a StreamStore, and check that the query may use it."""
        named = f"{field}.{place.store_field}"
        try:
            found = await self._stores.look(
                place.ref, seen.namespace, eager=seen.changed or seen.asked
            )
        except InvalidSpec as error:
            return Trouble.of(
                StoreNotReady(
                    f"the spec of StreamStore {place.store!r} is invalid: {error}",
                    field=named,
                    remedy="Correct the StreamStore and apply it again; the query goes on then.",
                )
            )
        if found is None:
            return None
        if seen.deleted is not None:
            return found.seen  # only what the query has made is deleted there
        try:
            access.check_queried(found.resource.spec, place, field=field)
        except SpecError as error:
            return Trouble.of(error)
        return found.seen

    def _offer_trouble(self, resource: StreamQuery) -> Trouble | None:
        """Tell why the administrator's settings allow no driver; None if they do."""
        spec, settings = resource.spec, self._settings
        if not settings.queries.image:
            return Trouble.of(QueriesNotOffered("this operator has no image for queries"))
        profile = settings.profiles.get(spec.runtime.profile)
        if profile is None:
            return no_profile(spec.runtime.profile, settings)
        if spec.checkpoint.claim_name is None:
            return Trouble.of(
                InvalidSpec(
                    "a query in a cluster needs a volume for its checkpoint",
                    field="spec.checkpoint.claimName",
                    remedy="Make a PersistentVolumeClaim, and name it here.",
                )
            )
        return size_trouble(profile, driver=spec.runtime.driver.resources)

    async def _claim_trouble(self, resource: StreamQuery) -> Trouble | None:
        """Tell why the claim of the checkpoint cannot be mounted; None if it can."""
        claim = resource.spec.checkpoint.claim_name
        if claim is None or await self._api.get(CLAIM, resource.metadata.namespace, claim):
            return None
        missing = f"there is no PersistentVolumeClaim {claim!r}"
        return Trouble.of(ClaimNotFound(missing, field="spec.checkpoint.claimName"))

    def _job(self, situation: QuerySituation) -> QueryJob | None:
        """Return what the Job depends on; None if a StreamStore is missing."""
        resource, world = situation.resource, situation.world
        places = resource.spec.places
        found = {
            field: store.address
            for (field, _), store in zip(places, world.stores, strict=True)
            if isinstance(store, StoreSeen)
        }
        claim = resource.spec.checkpoint.claim_name
        if len(found) < len(places) or claim is None:
            return None
        return QueryJob(
            child=situation.child,
            attempt=situation.seen.status.attempts,
            spec=resource.spec,
            request=query_request(
                resource, lambda field, _place: found[field], cluster=self._cluster
            ),
            claim=claim,
            profile=self._settings.profiles[resource.spec.runtime.profile],
            settings=self._settings,
        )

    async def _open(self, store: StoreSeen | Trouble | None) -> Store:
        """Connect to a store with the keys of its StreamStore's namespace."""
        if not isinstance(store, StoreSeen):
            raise StoreNotReady("the StreamStore is not there")
        return await self._connections.get(store.namespace, store.address)

    async def open_place(self, situation: QuerySituation, field: str) -> Store:
        """Connect to the store of one of the query's places, by the path of its field.

        Raises:
            StoreNotReady: its StreamStore is not there.
            SluiceError: the query may not use it, or it cannot be reached.
        """
        fields = [path for path, _ in situation.resource.spec.places]
        store = situation.world.stores[fields.index(field)]
        if isinstance(store, Trouble):
            raise StoreNotReady(store.message, field=store.field, remedy=store.remedy)
        return await self._open(store)

    def _ledger(self, seen: QuerySeen, sink: StreamName, store: Store) -> QueryLedger:
        """Return the ledger of a query as it was read so far."""
        memory = self._memories.of(seen.namespace, seen.name, seen.uid)
        known = memory.ledger
        if known is None or memory.of != (seen.query_id, sink, store):
            known = QueryLedger(store, seen.query_id, sink)
            memory.of, memory.ledger = (seen.query_id, sink, store), known
        return known

    def forget(self, namespace: str, name: str) -> None:
        """Forget a query that is gone."""
        self._memories.forget(namespace, name)

    async def _asked(self, situation: QuerySituation) -> QuerySituation:
        """Ask the stores how far the query is, and add the answer or the failure to the world."""
        world = situation.world
        places = situation.resource.spec.places
        try:
            opened = [
                (place, await self._open(store))
                for (_, place), store in zip(places, world.stores, strict=True)
                if not isinstance(place, QueriedArchive)
            ]
            sink = next(one for one in opened if isinstance(one[0], ResultStream))
            sources = [
                (_name(place), store)
                for place, store in opened
                if not isinstance(place, ResultStream)
            ]
            ledger = self._ledger(situation.seen, _name(sink[0]), sink[1])
            reading = await self.blocking(lambda: read_query(ledger, sources))
        except SluiceError as error:
            return replace(situation, world=replace(world, trouble=Trouble.of(error)))
        return replace(situation, world=replace(world, reading=reading))


def _concerns_verifiers(seen: QuerySeen) -> bool:
    """Tell whether something may be decided about Jobs that verify results."""
    known = seen.status.verification
    if seen.spec.verify is None or seen.verify_asked or seen.verify_due is not None:
        return True
    return known is None or known.under_way or seen.once


def _name(place: QueriedStream | ResultStream) -> StreamName:
    return StreamName(scope=place.scope, stream=place.stream)
