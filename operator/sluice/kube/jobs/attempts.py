"""Observe a copy's attempts: its Jobs and their pods."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from sluice.core.reconcile.shared.jobs import VERIFIER_PREFIX
from sluice.kube.api.kinds import EVENT, JOB, POD
from sluice.kube.api.names import UID_LABEL, copy_of, is_child, is_pod_of
from sluice.kube.api.slim import slim
from sluice.kube.jobs.away import hushed
from sluice.kube.jobs.hooks import is_hook
from sluice.kube.jobs.jobs import attempt_of, drivers_of, ended_of, is_gone, job_seen

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from sluice.core.reconcile.copies.seen import CopySeen
    from sluice.core.reconcile.shared.jobs import JobSeen
    from sluice.kube.api.cache import Mirror
    from sluice.kube.api.client import Api
    from sluice.kube.api.kinds import Kind, Object
    from sluice.kube.api.names import Child


class Attempts:
    """The observer of attempts.

    Args:
        api: the API server.
        mirror: the objects that the watches have shown.
    """

    def __init__(self, api: Api, mirror: Mirror) -> None:
        self._api = api
        self._mirror = mirror

    async def jobs(
        self,
        child: Child,
        places: Sequence[str],
        seen: CopySeen,
        *,
        runtime: str | None,
        host: str | None = None,
        glance: bool = False,
    ) -> tuple[JobSeen, ...]:
        """Return a copy's Jobs, the latest last.

        The mirror may lag, so it is trusted only while a pod of the latest attempt runs, and for a
        glance. Otherwise the API server lists Jobs and pods.

        Args:
            child: the copy, as its objects name it.
            places: the namespaces in which it may have Jobs.
            seen: the copy.
            runtime: hash of the runtime that the spec asks for now; None when it is unknown.
            host: the namespace in which drivers have to run, if that is not the copy's. Users of
                the copy's namespace can make Jobs there that are like its attempts.
            glance: whether nothing is done by what is seen.
        """
        # A complete copy is tidied once its last driver has ended; afterwards no Job matters. If
        # the finalizer stays, a driver may still run until its Job is deleted.
        tidied = not seen.finalizer or (seen.keeps and seen.status.job_ref is None)
        if seen.done and seen.deleted is None and tidied:
            return ()
        return await self.of(
            child, places, seen.status.attempts, runtime=runtime, host=host, glance=glance
        )

    async def of(
        self,
        child: Child,
        places: Sequence[str],
        attempts: int,
        *,
        runtime: str | None,
        host: str | None = None,
        glance: bool = False,
    ) -> tuple[JobSeen, ...]:
        """Return the Jobs of a resource, the latest last.

        Args:
            child: the resource, as its objects name it.
            places: the namespaces in which it may have Jobs.
            attempts: how many have begun, by the status.
            runtime: see `jobs`.
            host: see `jobs`.
            glance: see `jobs`.
        """
        uid = child.uid
        found = self._seen(JOB, places, uid)
        pods = self._seen(POD, places, uid)
        latest = _latest(found, child, host)
        running = latest is not None and any(map(_is_running, drivers_of(latest, pods)))
        lags = latest is None or not running or attempt_of(latest) < attempts
        if lags and not glance:
            found = await self._listed(JOB, places, uid)
            pods = await self._listed(POD, places, uid)
            latest = _latest(found, child, host)
        jobs = []
        for job in sorted((one for one in found if _is_attempt(one, child)), key=attempt_of):
            place = job["metadata"]["namespace"]
            # Of all others than the latest it only counts that they are there.
            state = await self._job_seen(job, pods, runtime=runtime, asks=job is latest)
            if place != child.namespace:
                trouble = hushed(state.trouble, state.name, place)
                state = replace(state, away=place, trouble=trouble, words="")
            jobs.append(replace(state, stray=_is_stray(job, child, host)))
        return tuple(jobs)

    async def verifiers(self, child: Child, current: str, *, glance: bool) -> tuple[JobSeen, ...]:
        """Return the Jobs that verify the results of a query, by number.

        Args:
            child: the query, as its objects name it.
            current: the name of the Job of the last verification. Of all others it only counts that
                they are there: users may have made them.
            glance: whether what the watches have shown is enough.
        """
        place, uid = child.namespace, child.uid
        found = self._seen(JOB, [place], uid) if glance else await self._listed(JOB, [place], uid)
        own = [job for job in found if is_verifier(job) and child.has(job)]
        if not own:
            return ()
        pods = self._seen(POD, [place], uid) if glance else await self._listed(POD, [place], uid)
        return tuple(
            [
                await self._job_seen(job, pods, runtime=None, asks=not glance and name == current)
                for name, job in sorted((one["metadata"]["name"], one) for one in own)
            ]
        )

    async def _job_seen(
        self, job: Object, pods: Iterable[Object], *, runtime: str | None, asks: bool
    ) -> JobSeen:
        """Return a Job; with `asks`, with the events that tell why no pod of it starts."""
        own = drivers_of(job, pods)
        state = job_seen(job, own, (), runtime=runtime)
        if asks and state.active and state.trouble is None and not _any_started(own):
            events = await events_about(self._api, job["metadata"]["namespace"], [job, *own])
            state = job_seen(job, own, events, runtime=runtime)
        return state

    async def pods(self, places: Sequence[str], seen: CopySeen, *, glance: bool = False) -> int:
        """Count a copy's driver and executor pods that are not gone.

        The count matters only while the copy is suspended or deleted, or while the rest of a run
        is deleted. Otherwise it is 0, and the API server is not asked. It is not for a glance,
        either: see `jobs`.
        """
        suspended = seen.spec.suspend and not seen.done
        if seen.deleted is None and not (suspended or seen.waits_for_rest):
            return 0
        return await self.alive(places, seen.uid, glance=glance)

    async def alive(self, places: Sequence[str], uid: str, *, glance: bool = False) -> int:
        """Count the pods of a resource that are not gone.

        Args:
            places: the namespaces in which it may have pods.
            uid: the resource's UID.
            glance: see `jobs`.
        """
        pods = self._seen(POD, places, uid) if glance else await self._listed(POD, places, uid)
        return sum(is_pod_of(pod, uid) and not is_gone(pod) for pod in pods)

    def are_shown(self, namespace: str, uid: str) -> bool:
        """Tell whether the watches have shown a Job or a pod of a copy in a namespace."""
        return any(self._mirror.where(kind, copy_of, (namespace, uid)) for kind in (JOB, POD))

    def _seen(self, kind: Kind, places: Sequence[str], uid: str) -> list[Object]:
        """Return the objects of a copy that the watches have shown."""
        return [
            body for place in places for body in self._mirror.where(kind, copy_of, (place, uid))
        ]

    async def _listed(self, kind: Kind, places: Sequence[str], uid: str) -> list[Object]:
        """Return the objects of a copy that the API server lists, as the mirror keeps them.

        Users may make many of them, as large as they like. So they come by the page.
        """
        label = f"{UID_LABEL}={uid}"
        return [
            slim(kind, body)
            for place in places
            async for page in self._api.pages(kind, place, labels=label)
            for body in page
        ]

    async def at_work(self, namespace: str, uid: str) -> bool:
        """Tell whether a Job of a copy has not ended, or a driver or executor of it is not gone.

        The mirror may lag, so it is trusted only while it shows a pod that runs.

        Args:
            namespace: the copy's namespace.
            uid: the copy's UID.
        """
        known = self._mirror.where(POD, copy_of, (namespace, uid))
        if any(is_pod_of(pod, uid) and _is_running(pod) for pod in known):
            return True
        jobs = await self._listed(JOB, [namespace], uid)
        if any(is_child(job, uid) and ended_of(job) is None for job in jobs):
            return True
        pods = await self._listed(POD, [namespace], uid)
        return any(is_pod_of(pod, uid) and not is_gone(pod) for pod in pods)


async def events_about(api: Api, namespace: str, about: list[Object]) -> list[Object]:
    """Return the events about objects, the latest last."""
    events = []
    for body in about:
        uid = body["metadata"]["uid"]
        events += await api.list(EVENT, namespace, fields=f"involvedObject.uid={uid}")
    return sorted(events, key=lambda event: str(event.get("lastTimestamp") or ""))


def _is_attempt(job: Object, child: Child) -> bool:
    """Tell whether a Job is an attempt, and no hook or verification."""
    return child.has(job) and not is_hook(job) and not is_verifier(job)


def is_verifier(job: Object) -> bool:
    """Tell whether a Job has the name of one that verifies results. Labels prove nothing."""
    return str(job["metadata"]["name"]).startswith(VERIFIER_PREFIX)


def _latest(jobs: Iterable[Object], child: Child, host: str | None) -> Object | None:
    """Return the Job of the latest attempt; None if there is none."""
    placed = [job for job in jobs if _is_attempt(job, child) and not _is_stray(job, child, host)]
    return max(reversed(placed), key=attempt_of, default=None)


def _is_stray(job: Object, child: Child, host: str | None) -> bool:
    """Tell whether a Job is in the copy's namespace though its drivers have to run elsewhere."""
    return host is not None and bool(job["metadata"]["namespace"] == child.namespace)


def _is_running(pod: Object) -> bool:
    return bool(pod.get("status", {}).get("phase") == "Running")


def _any_started(pods: list[Object]) -> bool:
    return any(pod.get("status", {}).get("phase") not in {None, "Pending"} for pod in pods)
