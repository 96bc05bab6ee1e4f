"""Carry out what `reconcile` decided about a copy.

Every action may be done twice, by one operator or by two at once. The names of objects follow from
the copy, and objects that exist already are adopted.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, assert_never

import structlog

from sluice import tracing
from sluice.api.kinds.scopecopy import ScopeCopy
from sluice.api.kinds.streamarchive import StreamArchive
from sluice.core.reconcile.copies.actions import (
    Abandon,
    AddFinalizer,
    DeleteDrill,
    DeleteJob,
    DropControls,
    DropPlan,
    DropScratch,
    Erase,
    Expire,
    HoldStores,
    LeaveScratch,
    MakeGroup,
    Orphan,
    PauseDrill,
    RecordScopeRun,
    RemoveFinalizer,
    StartDrill,
    StartHook,
    StartJob,
    TellDrill,
    TellStreams,
    WriteControls,
    WritePlan,
    WritePositions,
    WriteResults,
    WriteWish,
)
from sluice.core.reconcile.copies.object_names import plan_name
from sluice.core.reconcile.copies.seen import behind, running_job
from sluice.core.reconcile.shared.conditions import Saying
from sluice.core.reconcile.shared.jobs import job_name
from sluice.core.reconcile.shared.store_seen import StoreSeen
from sluice.core.workloads.request import retention_of
from sluice.engine.workloads.scope import record_run
from sluice.errors import CopyAborted, HookRefused
from sluice.kube.api import finalizers, names
from sluice.kube.api.kinds import CONFIG_MAP, POD
from sluice.kube.api.objects import STAGING_FINALIZER, driver_namespace, goal_of, wants_orphan
from sluice.kube.api.responses import Refused
from sluice.kube.copies import cutover
from sluice.kube.copies.drills import held, scratch_of
from sluice.kube.jobs import away, hooks, manifests, results, starting
from sluice.kube.jobs.jobs import attempt_of
from sluice.kube.jobs.pods import JobRequest
from sluice.kube.loop.settings import Profile
from sluice.kube.stores.protection import hold

if TYPE_CHECKING:
    from sluice.core.reconcile.copies.actions import Action
    from sluice.core.reconcile.copies.hooks.standing import Point
    from sluice.core.workloads.answers import ScopeEnded
    from sluice.core.workloads.plan import Plan
    from sluice.kube.api.client import Api
    from sluice.kube.api.events import Recorder
    from sluice.kube.api.kinds import Kind, Object
    from sluice.kube.copies.observer import CopyObserver
    from sluice.kube.copies.situation import Situation
    from sluice.kube.loop.settings import OperatorSettings
    from sluice.metrics import Metrics

_log = structlog.get_logger()


class Performer:
    """Performer of actions on copies.

    Args:
        api: the API server.
        observer: connects to the stores.
        recorder: writes events.
        metrics: counts orphaned copies.
        settings: the operator's settings.
    """

    def __init__(
        self,
        api: Api,
        observer: CopyObserver,
        recorder: Recorder,
        metrics: Metrics,
        settings: OperatorSettings,
    ) -> None:
        self._api = api
        self._observer = observer
        self._recorder = recorder
        self._metrics = metrics
        self._settings = settings

    async def perform(  # noqa: C901, PLR0912, PLR0915 - a flat table of the actions
        self, situation: Situation, action: Action
    ) -> None:
        """Carry out one action.

        Raises:
            SluiceError: it failed; parts of it may be done.
        """
        namespace, name, uid = situation.namespace, situation.seen.name, situation.seen.uid
        match action:
            case AddFinalizer():
                await self._protect(situation)
            case RemoveFinalizer():
                await self._let_go(situation)
            case HoldStores():
                await self._hold_stores(situation)
            case WritePlan(plan):
                await self._write_plan(situation, plan)
            case DropPlan():
                situation.memory.plan = None
                await self._api.delete(CONFIG_MAP, namespace, plan_name(name, uid))
            case WriteControls():
                await self._write_controls(situation)
            case DropControls():
                await self._drop_controls(situation)
            case WritePositions(positions):
                body = manifests.positions_config_map(situation.child, positions)
                await self._api.apply(CONFIG_MAP, namespace, body)
            case WriteResults(found):
                situation.memory.results = None  # the next look reads what is there
                await results.write(self._api, situation.child, found)
            case RecordScopeRun(ended):
                await self._record(situation, ended)
            case WriteWish():
                await cutover.write_wish_of(situation, self._observer)
            case MakeGroup(group):
                await cutover.make_group_of(situation, self._observer, group)
            case StartJob(attempt, plan, follower):
                await self._start_job(situation, attempt, plan, follower=follower)
            case StartHook(point, job):
                await self._start_hook(situation, point, job)
            case DeleteJob(job):
                await self._delete_job(situation, job)
            case Abandon():
                await self._abandon(situation)
            case Erase():
                await self._erase(situation)
            case Expire():
                await self._expire(situation)
            case StartDrill() | PauseDrill() | DeleteDrill() | DropScratch():
                await self._observer.drills.perform(situation, action)
            case TellDrill(saying) | TellStreams(saying):
                what = "Drill" if isinstance(action, TellDrill) else "Follow"
                _log.info("told", about=what, reason=saying.reason, message=saying.message)
                await self._recorder.say(situation.body, saying, action=what)
            case LeaveScratch(why):
                await self._orphan(situation, scratch_of(situation), why)
            case Orphan(why):
                await self._orphan(situation, _left(situation), why)
            case _:
                assert_never(action)

    async def _protect(self, situation: Situation) -> None:
        """Set the copy's finalizer, which keeps it while it has something in a store."""
        seen, kind, namespace = situation.seen, situation.kind, situation.namespace
        if not await finalizers.add(
            self._api,
            kind,
            namespace,
            seen.name,
            STAGING_FINALIZER,
            uid=seen.uid,
            known=situation.body,
        ):
            raise CopyAborted(f"{kind.name} {seen.name!r} was deleted before its driver started")

    async def _hold_stores(self, situation: Situation) -> None:
        """Set the finalizers that keep the stores and their Secrets while the copy needs them."""
        secrets = self._settings.stores.hold_secrets
        for field, store in (*situation.unheld, *held(situation)):
            await hold(self._api, store, field=field, hold_secrets=secrets)

    def _request(
        self, situation: Situation, plan: Plan, attempt: int = 0, *, follower: bool = False
    ) -> JobRequest:
        spec = situation.resource.spec
        return JobRequest(
            child=situation.child.at(situation.world.host),
            attempt=attempt,
            spec=spec,
            plan=plan,
            profile=self._settings.profiles[spec.runtime.profile],
            settings=self._settings,
            follower=follower,
            behind=behind(situation.seen),
            trace=tracing.current(),
        )

    async def _write_plan(self, situation: Situation, plan: Plan) -> None:
        """Write the plan's ConfigMap, unless another operator has just written it."""
        body = manifests.plan_config_map(situation.child, plan)
        await self._api.create(CONFIG_MAP, situation.namespace, body)

    async def _write_controls(self, situation: Situation) -> None:
        """Write the limits, and have the kubelet update a running driver's volume at once."""
        spec, child = situation.resource.spec, situation.child.at(situation.host)
        namespace = child.place
        running = running_job(situation.seen, situation.world)
        attempt = situation.seen.status.attempts + 1 if running is None else running.attempt
        request = manifests.controls_config_map(child, spec, attempt)
        name = job_name(child.uid, attempt)
        with away.quietly(child, name):
            if child.host is not None:
                job = await starting.job_of(self._api, child, namespace, name)
                if job is None:  # without it nothing of the copy is there
                    return
                request = names.owned(request, job)
            await starting.write_controls(self._api, child, request)
        situation.memory.controls = manifests.controls_data(spec)
        if running is None:
            return  # there is no pod that has mounted it
        label = f"{names.UID_LABEL}={situation.seen.uid},app.kubernetes.io/component=driver"
        pods = await self._api.list(POD, namespace, labels=label)
        # A changed pod makes its kubelet refresh the mounted ConfigMaps at once.
        for pod in (one for one in pods if names.is_pod_of(one, situation.seen.uid)):
            version = str(situation.seen.generation)
            note = {"metadata": {"annotations": {names.CONTROLS_ANNOTATION: version}}}
            await self._api.patch(POD, namespace, pod["metadata"]["name"], note)

    async def _drop_controls(self, situation: Situation) -> None:
        """Delete the limits. Another operator may have written them anew for a later attempt."""
        seen, name = situation.seen, names.controls_name(situation.seen.name, situation.seen.uid)
        for place in situation.places:
            found = await self._api.get(CONFIG_MAP, place, name)
            if found is None or not situation.child.has(found):
                continue
            if attempt_of(found) > seen.status.attempts:
                continue
            situation.memory.controls = None
            meta = found["metadata"]
            await self._api.delete(
                CONFIG_MAP, place, name, uid=meta["uid"], version=meta["resourceVersion"]
            )

    async def _start_job(
        self, situation: Situation, attempt: int, plan: Plan, *, follower: bool
    ) -> None:
        """Make the Job and its ConfigMap, or adopt the copy's Job of that name.

        Raises:
            QuotaExceeded: a quota forbids the Job.
            PodRefused: the API server refuses the Job, or its name is taken.
        """
        request = self._request(situation, plan, attempt, follower=follower)
        if request.child.host is not None:
            away.check_addresses(plan, situation.world.stores)
        made = await starting.start(self._api, request)
        if request.child.host is not None:
            situation.memory.controls = manifests.controls_data(request.spec)
        _log.info("driver started" if made else "driver adopted", attempt=attempt)

    async def _start_hook(self, situation: Situation, point: Point, name: str) -> None:
        """Make the Job of a hook, or adopt it.

        Raises:
            QuotaExceeded: a quota forbids the Job.
            HookNotFound, HookRefused: there is no template, or the API server refuses the Job.
        """
        profile = self._settings.profiles.get(situation.resource.spec.runtime.profile, Profile())
        # The operator deletes the Jobs of a copy that has succeeded earlier; see `finished`.
        keep = profile.failed_ttl_seconds_after_finished
        with starting.refusals(HookRefused):
            made = await hooks.start(
                self._api, situation.child, situation.seen, point, name, keep=keep
            )
        _log.info("hook started" if made else "hook adopted", hook=point, job=name)

    async def _delete_job(self, situation: Situation, name: str) -> None:
        """Delete a Job of the copy and its driver's ConfigMap."""
        for namespace in situation.places:
            await starting.stop(self._api, situation.child, namespace, name)

    async def _let_go(self, situation: Situation) -> None:
        """Remove the finalizer. First delete what works for the copy in another namespace.

        A user who insists on an orphan gets one, even if the operator has lost its rights there.
        """
        seen, kind, namespace = situation.seen, situation.kind, situation.namespace
        for place in situation.places:
            if place != namespace:
                await self._leave(situation.child.at(place), orphan=seen.force_orphan)
        await finalizers.remove(
            self._api, kind, namespace, seen.name, STAGING_FINALIZER, uid=seen.uid
        )

    async def stop_unreadable(self, kind: Kind, body: Object) -> None:
        """Clear another namespace of what works for a copy whose spec cannot be read any more.

        Its users write the spec. They must not keep a driver there without an operator's care.
        """
        host = driver_namespace(body)
        if host is not None and self._settings.served.include(host):
            child = names.Child.of(kind, body, host=host)
            await self._leave(child, orphan=wants_orphan(body))

    async def _leave(self, child: names.Child, *, orphan: bool) -> None:
        """Delete what works for a copy in another namespace.

        Args:
            child: the copy, with that namespace as its host.
            orphan: whether to go on if the operator has no rights there.
        """
        try:
            await away.clear(self._api, child)
        except Refused as error:
            if not orphan:
                raise
            _log.error("orphaned", left=f"objects in namespace {child.place}: {error}")

    async def _record(self, situation: Situation, ended: ScopeEnded) -> None:
        """Record the run of a scope in the folder of its archives."""
        _, target = await self._observer.stores(situation)
        workload, retention = situation.workload, retention_of(situation.resource.spec)
        number = await self._observer.blocking(
            lambda: record_run(workload, target, ended, retention)
        )
        _log.info("run of the scope recorded", run=number)

    async def _abandon(self, situation: Situation) -> None:
        """End the copy's work in the stores, so that nothing unpublished stays."""
        sources, target = await self._observer.stores(situation)
        workload, seen = situation.workload, situation.world.plan
        known = None if seen is None else seen.plan
        done = await self._observer.blocking(lambda: workload.abandon(sources, target, known=known))
        _log.info("abandoned", done=done)

    async def _erase(self, situation: Situation) -> None:
        """Delete the archive of a resource, and report by an event what stays of it, and why.

        Objects that others put there stay, and the resource does not wait for them.
        """
        seen = situation.world.target
        refused = seen.refused if isinstance(seen, StoreSeen) else None
        if refused is None:
            _, target = await self._observer.stores(situation)
            said = (await self._observer.blocking(lambda: situation.workload.erase(target))).said
        else:
            said = f"stays: {refused.message}"
        if not said:
            return
        store = f"StreamStore {goal_of(situation.resource)[1].store!r}"
        message = f"The archive in {store} {said}."
        await self._recorder.say(situation.body, Saying("ArchiveKept", message), action="Delete")

    async def _expire(self, situation: Situation) -> None:
        """Delete the resource, unless it was changed, or asked to run again, since this look."""
        meta = situation.body["metadata"]
        name, version = meta["name"], meta["resourceVersion"]
        gone = await self._api.delete(
            situation.kind, situation.namespace, name, uid=meta["uid"], version=version
        )
        _log.info("expired" if gone else "changed, and not expired", completed=True)

    async def _orphan(self, situation: Situation, left: str, why: str) -> None:
        """Report by log, metric and event what the copy leaves behind."""
        message = f"{left} of the copy {situation.seen.copy_id}: {why}"
        _log.error("orphaned", left=message)
        self._metrics.count("sluice_orphaned_total", kind=situation.kind.name)
        await self._recorder.say(situation.body, Saying("Orphaned", message), action="Delete")


def _left(situation: Situation) -> str:
    """Describe what a copy may leave behind, and where."""
    resource = situation.resource
    store = f"StreamStore {goal_of(resource)[1].store!r}"
    if isinstance(resource, StreamArchive):
        path = resource.spec.destination.path
        left = f"the archive {path} in {store} may hold runs, and what is left of one"
        scratch = scratch_of(situation)
        return f"{left}, and {scratch}" if scratch else left
    if isinstance(resource, ScopeCopy):
        target = resource.spec.target
        if target.archive is not None:
            folder = f"the archives in {target.archive.path}"
            return f"{folder} in {store} may hold what is left of runs that are not recorded"
        return (
            f"the scope {target.scope} in {store} may hold staging segments or unpublished streams"
        )
    stream = f"{resource.spec.target.scope}/{resource.spec.target.stream}"
    return f"{stream} in {store} may hold staging segments or an unpublished stream"
