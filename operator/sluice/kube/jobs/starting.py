"""Make the Job of an attempt, and the ConfigMaps that its driver mounts."""

from __future__ import annotations

from contextlib import contextmanager, suppress
from typing import TYPE_CHECKING

from sluice.errors import ApiUnavailable, HookRefused, PodRefused, QuotaExceeded
from sluice.kube.api.kinds import CONFIG_MAP, JOB
from sluice.kube.api.names import owned, run_name
from sluice.kube.api.responses import Refused
from sluice.kube.jobs import away, manifests

if TYPE_CHECKING:
    from collections.abc import Iterator

    from sluice.kube.api.client import Api
    from sluice.kube.api.kinds import Object
    from sluice.kube.api.names import Child
    from sluice.kube.jobs.pods import JobRequest


async def start(api: Api, request: JobRequest) -> bool:
    """Make the Job of an attempt and its ConfigMap, or adopt the copy's Job of that name.

    Returns:
        Whether the Job is new.

    Raises:
        QuotaExceeded: a quota forbids the Job, or a ConfigMap beside it.
        PodRefused: the API server refuses the Job, or its name is taken.
    """
    child, job = request.child, manifests.job(request)
    with away.quietly(child, job["metadata"]["name"]):
        if child.host is not None:
            return await _start_away(api, request, job)
        return await start_here(api, child, job, manifests.run_config_map(request))


async def start_here(api: Api, child: Child, job: Object, run: Object) -> bool:
    """Make a Job and its ConfigMap in the namespace of their resource, or adopt the Job.

    Args:
        api: the API server.
        child: the resource.
        job: the Job.
        run: the ConfigMap that its pods mount.

    Returns:
        Whether the Job is new.

    Raises:
        QuotaExceeded, PodRefused: see `start`.
    """
    await _write_run(api, child, run)
    return (await _make(api, child, job))[1]


async def stop(api: Api, child: Child, namespace: str, name: str) -> None:
    """Delete a Job of a resource and its driver's ConfigMap, but no foreign ones of that name."""
    run = run_name(name)
    job = await job_of(api, child, namespace, name)
    if job is not None:
        await api.delete(JOB, namespace, name, uid=job["metadata"]["uid"])
    found = await api.get(CONFIG_MAP, namespace, run)
    if found is not None and child.has(found):
        await api.delete(CONFIG_MAP, namespace, run, uid=found["metadata"]["uid"])


async def _start_away(api: Api, request: JobRequest, job: Object) -> bool:
    """Make a Job in the namespace of a StreamStore: first the Job, then all that its pod mounts.

    The Job owns that, so nothing is ever there without a Job, whatever becomes of the copy. The
    kubelet waits for the ConfigMaps. If the operator is killed in between, it makes them later.
    """
    child = request.child
    found, made = await _make(api, child, job)
    controls = manifests.controls_config_map(child, request.spec, request.attempt)
    try:
        await _write_run(api, child, owned(manifests.run_config_map(request), found))
        await write_controls(api, child, owned(controls, found))
    except (Refused, PodRefused):
        if made:
            meta = found["metadata"]
            with suppress(ApiUnavailable):  # a later look goes on with it, or ends it by its age
                await api.delete(JOB, child.place, meta["name"], uid=meta["uid"])
        raise
    return made


async def _make(api: Api, child: Child, job: Object) -> tuple[Object, bool]:
    """Make a Job or adopt it; return it, and whether it is new."""
    name = job["metadata"]["name"]
    with refusals(PodRefused):
        made = await api.create(JOB, child.place, job)
    if made is not None:
        return made, True
    found = await job_of(api, child, child.place, name)
    if found is None:
        raise PodRefused(
            f"there is a Job {name!r} already that is not this copy's",
            remedy="Delete it: the driver's Job has to have this name.",
        )
    return found, False


async def job_of(api: Api, child: Child, namespace: str, name: str) -> Object | None:
    """Return the Job of the copy with this name, if there is one."""
    found = await api.list(JOB, namespace, fields=f"metadata.name={name}")
    return next((job for job in found if child.has(job)), None)


async def write_controls(api: Api, child: Child, body: Object) -> None:
    """Write the limits.

    Raises:
        PodRefused: another object has their name, in a namespace that is not the copy's.
    """
    if child.host is not None:
        name = body["metadata"]["name"]
        _check_own(child, await api.get(CONFIG_MAP, child.place, name), name)
    await api.apply(CONFIG_MAP, child.place, body)


async def _write_run(api: Api, child: Child, run: Object) -> None:
    """Make the ConfigMap that a driver runs from, adopt the same, or replace any other.

    It may come from another operator, or from another client. In the copy's namespace the name is
    this copy's.
    """
    namespace, name = child.place, run["metadata"]["name"]
    if await api.create(CONFIG_MAP, namespace, run) is not None:
        return
    found = await api.get(CONFIG_MAP, namespace, name)
    if found is not None:
        if child.host is not None:
            _check_own(child, found, name)
        if _content(found) == _content(run) and (child.host is None or _same_owner(found, run)):
            return
        await api.delete(CONFIG_MAP, namespace, name, uid=found["metadata"]["uid"])
    if await api.create(CONFIG_MAP, namespace, run) is None:
        raise PodRefused(
            f"another client keeps making a ConfigMap {name!r} that is not this copy's",
            remedy="Find out who makes it: the driver's ConfigMap has to have this name.",
        )


def _content(config_map: Object) -> list[object]:
    return [config_map.get(part) for part in ("immutable", "data", "binaryData")]


def _same_owner(found: Object, wanted: Object) -> bool:
    """Tell whether the same Job owns two objects. One of that name may have been there before."""
    own, other = (one["metadata"].get("ownerReferences") or [{}] for one in (found, wanted))
    return bool(own[0].get("uid") == other[0].get("uid"))


def _check_own(child: Child, found: Object | None, name: str) -> None:
    """Check that an object of a StreamStore's namespace is the copy's, if it is there."""
    if found is not None and not child.has(found):
        raise PodRefused(f"there is a ConfigMap {name!r} already that is not this copy's")


@contextmanager
def refusals(refused: type[PodRefused | HookRefused]) -> Iterator[None]:
    """Raise errors that tell why the API server refuses a Job: a quota, or `refused`."""
    try:
        yield
    except Refused as error:
        if "exceeded quota" in error.message:
            raise QuotaExceeded(error.message) from error
        if error.status in away.REFUSALS:
            raise refused(error.message) from error
        raise
