"""Make the Jobs of hooks from CronJobs, as `kubectl create job --from=cronjob/NAME` does.

A copy names a CronJob, and brings no pod of its own: the right to make copies gives no pods.
The CronJob's author needs the right to make CronJobs, and agrees to its use by an annotation.
"""

from __future__ import annotations

import copy
from typing import TYPE_CHECKING, Final

from sluice.api.fields.common import GROUP
from sluice.core.reconcile.copies.hooks.standing import (
    JOB_PREFIX,
    needs_template,
    spec_of,
    under_way,
)
from sluice.core.reconcile.copies.world import HookSeen
from sluice.core.reconcile.shared.jobs import JobPhase
from sluice.core.values.trouble import Trouble
from sluice.errors import HookNotFound, HookRefused
from sluice.kube.api.kinds import CRON_JOB, JOB
from sluice.kube.api.names import UID_LABEL, is_child
from sluice.kube.jobs.jobs import ended_of, time_of

if TYPE_CHECKING:
    from collections.abc import Mapping

    from sluice.api.fields.hooks import HookSpec
    from sluice.core.reconcile.copies.hooks.standing import Point
    from sluice.core.reconcile.copies.seen import CopySeen
    from sluice.kube.api.client import Api
    from sluice.kube.api.kinds import Object
    from sluice.kube.api.names import Child

CONSENT: Final = f"{GROUP}/hook"
"""Annotation of a CronJob whose author lets copies of its namespace run it."""

_COMPONENT: Final = "hook"
"""What the labels of hooks' Jobs say instead of `driver`."""

_MOST_WORDS: Final = 500


def is_hook(job: Object) -> bool:
    """Tell whether a Job has the name of a hook's. Labels prove nothing."""
    return str(job["metadata"]["name"]).startswith(JOB_PREFIX)


async def look(
    api: Api, namespace: str, seen: CopySeen, *, at_work: bool
) -> Mapping[str, HookSeen | Trouble]:
    """Look at the Job of the hook that is under way, and at CronJobs of hooks that may begin.

    Args:
        api: the API server.
        namespace: the copy's namespace.
        seen: the copy.
        at_work: whether an attempt is at work.

    Returns:
        By hook, its Job, or why none can be made. Hooks without an entry have no Job.

    Raises:
        ApiUnavailable: the API server could not be asked.
    """
    if seen.done or seen.deleted is not None:
        return {}
    found: dict[str, HookSeen | Trouble] = {}
    begun = under_way(seen.status)
    if begun is not None:
        job = await own_job(api, namespace, begun[1].job, seen.uid)
        if job is not None:
            found[begun[0]] = hook_seen(job)
    for point in needs_template(seen, at_work=at_work):
        spec = spec_of(seen, point)
        if spec is None or point in found:
            continue
        try:
            await template(api, namespace, spec, point)
        except (HookNotFound, HookRefused) as error:
            found[point] = Trouble.of(error)
    return found


async def late(api: Api, namespace: str, seen: CopySeen, *, at_work: bool) -> tuple[str, ...]:
    """List the Jobs of hooks that run though one is to begin next.

    Only a lost status leaves some, or a person who made one. Arguments and errors as of `look`.
    """
    if seen.done or seen.deleted is not None or not needs_template(seen, at_work=at_work):
        return ()
    labels = f"{UID_LABEL}={seen.uid},app.kubernetes.io/component={_COMPONENT}"
    jobs = await api.list(JOB, namespace, labels=labels)
    return tuple(
        job["metadata"]["name"]
        for job in jobs
        if is_child(job, seen.uid)
        and is_hook(job)
        and "deletionTimestamp" not in job["metadata"]
        and hook_seen(job).active
    )


async def own_job(api: Api, namespace: str, name: str, uid: str) -> Object | None:
    """Return the Job of this name if the copy controls it and it is not being deleted."""
    jobs = await api.list(JOB, namespace, fields=f"metadata.name={name}")
    own = (job for job in jobs if is_child(job, uid))
    return next((job for job in own if "deletionTimestamp" not in job["metadata"]), None)


def hook_seen(job: Object) -> HookSeen:
    """Return a hook's Job as `reconcile` needs it."""
    meta, status = job["metadata"], job.get("status") or {}
    said = {
        one["type"]: one for one in status.get("conditions") or () if one.get("status") == "True"
    }
    failed = said.get("Failed")
    phase = JobPhase.RUNNING if status.get("active") else JobPhase.PENDING
    if failed is not None:
        phase = JobPhase.FAILED
    elif "Complete" in said:
        phase = JobPhase.SUCCEEDED
    words = "" if failed is None else f"{failed.get('reason')}: {failed.get('message') or 'failed'}"
    return HookSeen(
        name=meta["name"],
        phase=phase,
        made=time_of(meta["creationTimestamp"]),
        ended=ended_of(job),
        words=" ".join(words.split())[:_MOST_WORDS],
    )


async def template(api: Api, namespace: str, spec: HookSpec, point: Point) -> Object:
    """Return the template of the Job that a hook names.

    Raises:
        HookNotFound: there is no such CronJob.
        HookRefused: its author has not agreed.
    """
    name, field = spec.cron_job_ref.name, f"spec.hooks.{point}.cronJobRef.name"
    found = await api.get(CRON_JOB, namespace, name)
    if found is None or "deletionTimestamp" in found["metadata"]:
        raise HookNotFound(f"there is no CronJob {name!r}", field=field)
    if (found["metadata"].get("annotations") or {}).get(CONSENT) != "true":
        raise HookRefused(f'CronJob {name!r} has no annotation {CONSENT}: "true"', field=field)
    body: Object = found["spec"]["jobTemplate"]
    return body


async def start(
    api: Api, child: Child, seen: CopySeen, point: Point, name: str, *, keep: int
) -> bool:
    """Make the Job of a hook, or adopt the copy's Job of that name.

    Args:
        api: the API server.
        child: the copy.
        seen: the copy as it was seen.
        point: which hook.
        name: of the Job.
        keep: seconds for which the Job stays after its end.

    Returns:
        Whether the Job was made.

    Raises:
        HookNotFound, HookRefused: there is no template, or the Job's name is taken.
        ApiUnavailable: the API server refused, or could not be asked.
    """
    spec = spec_of(seen, point)
    if spec is None:
        return False
    body = hook_job(child, await template(api, child.namespace, spec, point), spec, point, name)
    body["spec"]["ttlSecondsAfterFinished"] = keep
    if await api.create(JOB, child.namespace, body) is not None:
        return True
    if await own_job(api, child.namespace, name, child.uid) is None:
        raise HookRefused(
            f"there is a Job {name!r} already that is not this copy's, or is being deleted",
            field=f"spec.hooks.{point}",
            remedy="Delete it, or wait until it is gone: the hook's Job has to have this name.",
        )
    return False


def hook_job(child: Child, made_from: Object, spec: HookSpec, point: Point, name: str) -> Object:
    """Build the Job of a hook: the template with the hook's own limits, owned by the copy.

    The pods keep the template's labels. They do not get those of drivers, by which network policies
    and the operator tell drivers.
    """
    meta, notes = made_from.get("metadata") or {}, {f"{GROUP}/copy": child.name, CONSENT: point}
    body = copy.deepcopy(made_from["spec"]) | {
        "suspend": False,
        "backoffLimit": spec.backoff_limit,
        "activeDeadlineSeconds": spec.timeout_seconds,
    }
    pod = body["template"].setdefault("metadata", {}) or {}
    body["template"]["metadata"] = pod | {"annotations": (pod.get("annotations") or {}) | notes}
    metadata = child.metadata(name, _COMPONENT)
    metadata["labels"] = (meta.get("labels") or {}) | metadata["labels"]
    metadata["annotations"] = (meta.get("annotations") or {}) | notes
    return {"apiVersion": "batch/v1", "kind": "Job", "metadata": metadata, "spec": body}
