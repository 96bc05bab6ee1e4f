"""Look at a copy: turn objects and stores into the World that `reconcile` decides on."""

from __future__ import annotations

import time
from contextlib import suppress
from dataclasses import replace
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Final

from sluice.core.archive.recorded import Recorded
from sluice.core.follow.catching_up import FAR
from sluice.core.reconcile.copies.decide import questions
from sluice.core.reconcile.copies.hooks.standing import under_way
from sluice.core.reconcile.copies.object_names import plan_name, positions_name
from sluice.core.reconcile.copies.seen import asks_again, recorded
from sluice.core.reconcile.copies.world import PlanSeen, Question, Reading, World, host_of
from sluice.core.reconcile.shared.store_seen import StoreSeen
from sluice.core.scope.progress import Meter
from sluice.core.values.trouble import Trouble
from sluice.core.values.weight import weight_of_json
from sluice.core.workloads.access import mounted
from sluice.core.workloads.answers import Complete, Planned, ScopeEnded
from sluice.core.workloads.request import source_stores
from sluice.engine.workloads.scope import made_by_driver
from sluice.errors import SluiceError, StoreNotFound, StoreNotReady, StoreNotShared
from sluice.kube.api.kinds import CONFIG_MAP, SCOPE_COPY
from sluice.kube.api.objects import goal_of, origins_of
from sluice.kube.copies.copy_object import CopyObject
from sluice.kube.copies.drills import Drills
from sluice.kube.copies.following import groups_of, is_wished, look_at_groups, seal_trouble
from sluice.kube.copies.memory import CopyMemory
from sluice.kube.copies.situation import Situation
from sluice.kube.jobs import hooks, results
from sluice.kube.jobs.attempts import Attempts
from sluice.kube.jobs.manifests import believed_plan, controls_data, positions_of, runtime_hash
from sluice.kube.jobs.profiles import profile_trouble
from sluice.kube.loop.memory import Blocking, Memories
from sluice.kube.stores.dependents import was_admitted
from sluice.stores.allowance import Kept

if TYPE_CHECKING:
    from concurrent.futures import Executor

    from sluice.api.registry import Copy
    from sluice.core.reconcile.copies.seen import CopySeen
    from sluice.core.values.model import StoreAddress
    from sluice.core.workloads.answers import Answer
    from sluice.core.workloads.plan import Plan
    from sluice.engine.access.source_runs import Place
    from sluice.engine.workloads.workload import Located
    from sluice.kube.api.cache import Mirror
    from sluice.kube.api.client import Api
    from sluice.kube.api.kinds import Object
    from sluice.kube.api.names import Child
    from sluice.kube.loop.settings import OperatorSettings
    from sluice.kube.stores.connections import Connections
    from sluice.kube.stores.storeview import StoreView
    from sluice.stores.allowance import Allowance


BELIEVED_SECONDS: Final = 300.0
"""Seconds until the ConfigMaps with results that were written are read again."""


class CopyObserver:
    """Observer of copies.

    Args:
        api: the API server.
        mirror: the objects that the watches have seen.
        connections: connections to the stores.
        stores: the StreamStores.
        settings: the operator's settings.
        cluster: the cluster's identity.
        threads: threads for blocking calls to stores.
        allowance: bounds the memory for answers of stores.
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
        allowance: Allowance,
    ) -> None:
        self._api = api
        self._allowance = allowance
        self._attempts = Attempts(api, mirror)
        self._connections = connections
        self._stores = stores
        self._settings = settings
        self._cluster = cluster
        self.blocking = Blocking(threads)
        self._memories = Memories(CopyMemory)
        self.drills = Drills(api, self._attempts, connections, stores, self.blocking)

    def forget(self, namespace: str, name: str) -> None:
        """Forget a copy that is gone, or needs nothing any more."""
        self._memories.forget(namespace, name)

    async def look(self, body: Object, *, glance: bool = False) -> Situation:
        """Look at a copy's surroundings. Nothing is changed.

        Args:
            body: the copy.
            glance: see `reconciler.Workings`.

        Raises:
            InvalidSpec: this version cannot read the object.
            ApiUnavailable: the API server could not be asked.
        """
        copy = CopyObject.read(body, self._settings, cluster=self._cluster)
        resource, seen = copy.resource, copy.seen
        memory = self._memories.of(copy.namespace, seen.name, seen.uid)
        stores = await copy.look_at_stores(self._stores)
        places = self._places(copy, host_of(stores))
        world = await self._world(copy, memory, stores, places, glance=glance)
        trouble = profile_trouble(resource, copy.profile, self._settings, host=world.host)
        situation = Situation(
            body=body,
            resource=resource,
            seen=seen,
            world=replace(world, profile=trouble),
            workload=copy.workload,
            memory=memory,
            places=places,
        )
        asked = questions(seen, situation.world)
        return await self._ask(situation, asked) if asked else situation

    def _places(self, copy: CopyObject, host: str | None) -> tuple[str, ...]:
        """Return the namespaces in which a copy may have Jobs, its own first.

        The operator may do nothing in a namespace that it serves no more.
        """
        seen, served = copy.seen, self._settings.served
        hosts = copy.hosts
        if not (was_admitted(copy.body) or seen.deleted is not None):  # the status may be lost
            hosts = [one for one in hosts if self._attempts.are_shown(one, seen.uid)]
        named = (copy.namespace, host, seen.status.driver_namespace, *hosts)
        return tuple(dict.fromkeys(one for one in named if one and served.include(one)))

    async def _world(
        self,
        copy: CopyObject,
        memory: CopyMemory,
        stores: tuple[StoreSeen | Trouble | None, ...],
        places: tuple[str, ...],
        *,
        glance: bool,
    ) -> World:
        """Look at a copy's surroundings in the cluster: its Jobs and pods, plan, hooks and drill.

        The stores themselves are asked later, see `_ask`.
        """
        body, resource, seen, profile = copy.body, copy.resource, copy.seen, copy.profile
        runtime = None if profile is None else runtime_hash(resource.spec, profile, self._settings)
        host = host_of(stores)
        if not all(isinstance(one, StoreSeen) for one in stores):
            host = host or seen.status.driver_namespace  # the grants are withdrawn, or unknown
        jobs = await self._attempts.jobs(
            copy.child, places, seen, runtime=runtime, host=host, glance=glance
        )
        at_work = any(job.active for job in jobs)
        hooked = await hooks.look(self._api, copy.namespace, seen, at_work=at_work)
        if under_way(seen.status):
            memory.survey = None  # what was read before a hook is old after it
        plan, damaged = await self._plan(copy.namespace, seen, memory, glance=glance)
        return World(
            now=datetime.now(UTC),
            sources=stores[:-1],
            target=stores[-1],
            job_seconds=None if profile is None else profile.ttl_seconds_after_finished,
            job_history=1 if profile is None else profile.history_limit,
            far=FAR if profile is None else profile.catch_up_from,
            plan=plan,
            damaged=damaged,
            jobs=jobs,
            pods=await self._attempts.pods(places, seen, glance=glance),
            controls=memory.controls == controls_data(resource.spec),
            hooks=hooked,
            late_hooks=await hooks.late(self._api, copy.namespace, seen, at_work=at_work),
            drill=await self.drills.look(body, seen, eager=copy.eager),
            seal=await seal_trouble(self._stores, body, resource, eager=copy.eager),
        )

    async def stores(self, situation: Situation) -> tuple[list[Place] | None, Place]:
        """Connect to the stores to read from, and to the target's.

        Returns:
            The sources' stores, or None if one cannot be reached; and the target's store.

        Raises:
            StoreNotFound, StoreNotReady, SecretNotFound: the target's store cannot be reached.
        """
        target = await self._connections.place(*self._target_address(situation))
        sources = _sources(situation.resource, situation.world)
        if sources is None:
            return None, target
        try:
            return await self._open(sources), target
        except SluiceError:
            return None, target

    async def _open(self, stores: tuple[StoreSeen, ...]) -> list[Place]:
        """Connect to stores, each with the keys of its StreamStore's namespace."""
        return [await self._connections.place(one.namespace, one.address) for one in stores]

    def _target_address(self, situation: Situation) -> tuple[str, StoreAddress]:
        """Return the target store's namespace and address, from its StreamStore or the plan."""
        store = situation.world.target
        if isinstance(store, StoreSeen):
            return store.namespace, store.address
        goal, plan = goal_of(situation.resource)[1], situation.world.plan
        far = goal.ref.other(situation.namespace) is not None
        lent = plan is not None and far and bool(mounted(plan.plan.target))
        if plan is not None and not lent:
            return situation.namespace, plan.plan.target
        # The plan tells that the copy was admitted, so it would find a StreamStore that exists. The
        # login is not used without the StreamStore.
        gone = lent and isinstance(store, Trouble) and store.reason == StoreNotShared.__name__
        if isinstance(store, Trouble) and not gone:
            raise StoreNotReady(store.message, field=store.field, remedy=store.remedy)
        why = "" if gone else ", and no plan to tell where it was"
        raise StoreNotFound(f"there is no StreamStore {goal.store!r} any more{why}")

    async def _ask(self, situation: Situation, asked: frozenset[Question]) -> Situation:
        """Ask the stores, and add the answers or the failure to the world."""
        try:
            return await self._answers(situation, asked)
        except SluiceError as error:
            world = replace(situation.world, trouble=Trouble.of(error))
            return replace(situation, world=world)

    async def _answers(self, situation: Situation, asked: frozenset[Question]) -> Situation:
        world, memory = situation.world, situation.memory
        sources = _sources(situation.resource, world)
        if sources is None or not isinstance(world.target, StoreSeen):
            return situation
        (target,) = await self._open((world.target,))
        to = world.target.address, target
        if Question.STATE in asked:
            answer = await self._state(situation, sources, to)
            return await self._completed(situation, replace(world, answer=answer))
        if world.plan is None:
            return situation
        reading, made = await self._reading(situation, world.plan.plan, sources, target)
        progress, follow = reading.progress, reading.progress.follow
        wished = is_wished(situation.resource, memory.wish, follow, key=situation.seen.uid)
        world = replace(world, reading=reading, wished=wished)
        if progress.published or (follow is not None and follow.stopped is not None):
            # The store tells the end seconds before the kubelet tells that the pod has ended.
            ended = None
            with suppress(SluiceError):  # the progress is known, and the next look asks again
                ended = await self._state(situation, sources, to)
            if isinstance(ended, Complete | ScopeEnded | Recorded):
                return await self._completed(situation, replace(world, answer=ended))
        if made is not None:
            answer = Planned(plan=made, recorded=True)
            world = await self._published(situation.child, replace(world, answer=answer))
        elif follow is not None and follow.streams is not None:
            world = replace(world, results=await self._results(situation))
        return replace(situation, world=world)

    async def _reading(
        self, situation: Situation, plan: Plan, stores: tuple[StoreSeen, ...], target: Place
    ) -> tuple[Reading, Plan | None]:
        """Measure the progress of a plan.

        Returns:
            The progress; and the plan that a driver has made in place of this one, if it has.
        """
        world, memory = situation.world, situation.memory
        origins = tuple(await self._open(stores)) if plan.follows else ()
        measured = plan.hash, target, origins
        if memory.watch is None or memory.watch[0] != measured:
            memory.watch = measured, situation.workload.watch(plan, target, origins)
        attempt = world.job.name if world.job else ""
        if memory.metered != (plan.hash, attempt):
            memory.metered, memory.meter = (plan.hash, attempt), Meter()
        watch, begun = memory.watch[1], time.monotonic()
        progress = await self.blocking(watch.measure)
        now = time.monotonic()
        if not self._allowance.has_room:  # a new watch holds nothing, but reads all of it again
            memory.watch = measured, situation.workload.watch(plan, target, origins)
        pace = memory.meter.read(now, progress.bytes, progress.total)
        reading = Reading(progress=progress, pace=pace, took=now - begun)
        return reading, made_by_driver(watch)

    async def _state(
        self, situation: Situation, stores: tuple[StoreSeen, ...], target: Located
    ) -> Answer:
        """Ask the stores about the copy's state."""
        addresses = tuple(store.address for store in stores)
        sources = list(zip(addresses, await self._open(stores), strict=True))
        world = situation.world
        workload, known = situation.workload, world.plan.plan if world.plan else None
        again = asks_again(situation.seen, world)
        told = _told(situation)
        return await situation.memory.surveyed(
            self.blocking,
            (workload, addresses, target[0], again),
            lambda: workload.ask(sources, target, known=known, again=again, told=told),
        )

    async def _completed(self, situation: Situation, world: World) -> Situation:
        """Add to the world what is published, and how reader groups stand that are to go on."""
        world = await self._published(situation.child, world)
        groups, workload = groups_of(situation.resource), situation.workload
        sources, target = await self.stores(situation) if groups else (None, None)
        if sources and target is not None and isinstance(world.answer, Complete):
            seen = await self.blocking(lambda: look_at_groups(workload, sources[0], target, groups))
            world = replace(world, groups=seen)
        return replace(situation, world=world)

    async def _results(self, situation: Situation) -> str | None:
        """Return the hash of the results that are published of streams which are followed.

        Copies are looked at every few seconds, for months. Now and then the ConfigMaps are read.
        """
        memory, now = situation.memory, time.monotonic()
        if memory.results is None or now - memory.results[1] >= BELIEVED_SECONDS:
            found = await results.read(self._api, situation.child)
            memory.results = None if found is None else (found, now)
        return None if memory.results is None else memory.results[0]

    async def _published(self, child: Child, world: World) -> World:
        """Add to the world what the ConfigMaps already publish: positions, or results."""
        if isinstance(world.answer, Complete):
            name = positions_name(child.name, child.uid)
            found = await self._api.get(CONFIG_MAP, child.namespace, name)
            return replace(world, positions=positions_of(found))
        if child.kind == SCOPE_COPY:  # results are published from the first plan on
            return replace(world, results=await results.read(self._api, child))
        return world

    async def _plan(
        self, namespace: str, seen: CopySeen, memory: CopyMemory, *, glance: bool
    ) -> tuple[PlanSeen | None, bool]:
        """Read the plan ConfigMap; return its plan, and whether it exists without a valid plan."""
        if memory.plan is not None:
            return memory.plan[0], False
        if (seen.done and seen.deleted is None) or (glance and seen.status.plan_hash is None):
            return None, False
        name = plan_name(seen.name, seen.uid)
        found = await self._api.get(CONFIG_MAP, namespace, name)
        if found is None:
            return None, False
        plan = believed_plan(found, seen.uid, seen.status.plan_digest)
        if plan is None:
            return None, True
        known = PlanSeen(plan=plan, name=name)
        kept = Kept(self._allowance, weight_of_json(plan.model_dump_json().encode()))
        if self._allowance.has_room:
            memory.plan = known, kept
        return known, False


def _told(situation: Situation) -> Recorded | None:
    """Return the last driver's report of an archive in a volume, if the status lacks it."""
    job = situation.world.job
    return None if job is None or recorded(situation.seen, job) else job.recorded


def _sources(copy: Copy, world: World) -> tuple[StoreSeen, ...] | None:
    """List the source stores, as the plan numbers them; None if one is unknown."""
    known = {
        source.store: store
        for (_, source), store in zip(origins_of(copy), world.sources, strict=True)
        if isinstance(store, StoreSeen)
    }
    names = source_stores(copy.spec)
    return tuple(known[name] for name in names) if set(names) <= set(known) else None
