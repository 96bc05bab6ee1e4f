"""Make what a first copy needs in a cluster, and change nothing that is there."""

from __future__ import annotations

import asyncio
import time
from typing import TYPE_CHECKING, Any, Final

from sluice.core.reconcile.shared.jobs import JobPhase
from sluice.core.values.trouble import Trouble
from sluice.errors import InfrastructureError, InvalidSpec, ResourceChanged
from sluice.kube.api.kinds import DEPLOYMENT, JOB, NAMESPACE, POD
from sluice.kube.api.responses import Refused
from sluice.kube.jobs.attempts import events_about
from sluice.kube.jobs.jobs import drivers_of, ended_of, job_seen
from sluice.kube.jobs.sample import DEADLINE, PodImage, added

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from sluice.kube.api.client import Api
    from sluice.kube.api.kinds import Kind, Object

LOOK: Final = 0.5
"""Seconds between two looks at a Job."""

_PATIENCE: Final = DEADLINE + 60.0
"""Seconds for which a Job is waited for; the cluster ends it earlier."""

_OPERATOR: Final = "app.kubernetes.io/name=sluice,app.kubernetes.io/component=operator"
_FOREIGN: Final = (
    "Another client has made this Job, and what it does is unknown: see kubectl describe job. "
    "Delete it, and run sluice init again."
)
_NOT_FOUND: Final = 404


async def ensure(api: Api, kind: Kind, namespace: str | None, body: Object) -> tuple[Object, bool]:
    """Make an object unless it is there with these fields.

    Args:
        api: the API server.
        kind: its kind.
        namespace: its namespace; None for kinds without.
        body: the object.

    Returns:
        The object as it is in the cluster, and whether it was made.

    Raises:
        InvalidSpec: it is there with another value of a field; or it is being deleted; or the
            cluster has no such kind, or no such namespace.
        ApiUnavailable: the API server cannot be asked, or refuses.
    """
    name = body["metadata"]["name"]
    try:
        found = await api.get(kind, namespace, name)
        if found is None and (made := await api.create(kind, namespace, body)) is not None:
            return made, True
        found = found or await api.get(kind, namespace, name)  # made at this moment
    except Refused as error:
        if error.status != _NOT_FOUND:
            raise
        raise _missing(error, kind, namespace) from error
    if found is None:
        raise ResourceChanged(
            f"{kind.name} {name} was deleted at this moment", remedy="Run sluice init again."
        )
    if found["metadata"].get("deletionTimestamp"):
        raise InvalidSpec(
            f"{kind.name} {name} is being deleted",
            remedy="Run sluice init again once it is gone, or take another name.",
        )
    for field, wanted, there in differences(body, found):
        raise InvalidSpec(
            f"{kind.name} {name} is there, with {there!r} in place of {wanted!r}",
            field=field,
            remedy="It is left as it is. Take another name, or change it yourself.",
        )
    return found, False


def _missing(error: Refused, kind: Kind, namespace: str | None) -> InvalidSpec:
    """Return the error of a call whose kind or namespace does not exist."""
    if error.why:  # of an object: the namespace
        return InvalidSpec(
            f"there is no namespace {namespace!r}",
            field="--namespace",
            remedy=f"Give --namespace {namespace}, which makes it.",
        )
    return InvalidSpec(
        f"this cluster knows no {kind.name}",
        remedy="Install Sluice first, with its definitions: manifests/crds.yaml, or the chart.",
    )


def differences(wanted: Any, found: Any, field: str = "") -> Iterator[tuple[str, Any, Any]]:
    """Yield the fields whose values differ, with the wanted value and the present one.

    The API server adds fields, and others may: fields that are not in `wanted` do not count.
    """
    if isinstance(wanted, dict) and isinstance(found, dict):
        for key, value in wanted.items():
            yield from differences(value, found.get(key), f"{field}.{key}" if field else key)
    elif isinstance(wanted, list) and isinstance(found, list) and len(wanted) == len(found):
        for number, (one, other) in enumerate(zip(wanted, found, strict=True)):
            yield from differences(one, other, f"{field}[{number}]")
    elif wanted != found:
        yield field, wanted, found


async def ensure_namespace(api: Api, name: str) -> bool:
    """Make a namespace unless it exists. Return whether it was made. Raises as `ensure`."""
    try:
        _, made = await ensure(api, NAMESPACE, None, namespace_body(name))
    except Refused as error:
        if not error.forbidden:
            raise
        return False  # users of one namespace may not look at it; the next call tells if it exists
    return made


def namespace_body(name: str) -> Object:
    """Return a namespace's object."""
    return {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": name}}


async def operators_image(api: Api, namespace: str) -> PodImage:
    """Return the image of the operator in a namespace.

    Only that namespace is looked at: an operator of a tenant's could have any image.

    Raises:
        InvalidSpec: there is no operator, or there are several.
        ApiUnavailable: the API server cannot be asked, or refuses.
    """
    try:
        found = await api.list(DEPLOYMENT, namespace, labels=_OPERATOR)
    except Refused as error:
        error.remedy = "Give --image, the image of Sluice's operator."
        raise
    pods = [one["spec"]["template"]["spec"] for one in found]
    operators = [
        (pod, one) for pod in pods for one in pod["containers"] if one["name"] == "operator"
    ]
    if len(operators) != 1:
        raise InvalidSpec(
            f"there are {len(operators)} operators in namespace {namespace!r}",
            field="--operator-namespace",
            remedy="Name the namespace of Sluice's operator, or give --image.",
        )
    ((pod, container),) = operators
    secrets = tuple(one["name"] for one in pod.get("imagePullSecrets") or [])
    return PodImage(container["image"], container["imagePullPolicy"], secrets)


async def run_job(api: Api, job: Object, say: Callable[[str], None]) -> Trouble | None:
    """Run a Job of one pod to its end. One that runs already is waited for.

    Args:
        api: the API server.
        job: the Job.
        say: callback for the reasons why its pod does not start yet.

    Returns:
        Why it failed; None when it succeeded.

    Raises:
        InvalidSpec: a Job of this name is there that does other work.
        ApiUnavailable: the API server cannot be asked, or refuses.
    """
    namespace, end = job["metadata"]["namespace"], time.monotonic() + _PATIENCE
    body = await _begun(api, job, end)
    said = ""
    while True:
        found = await api.list(POD, namespace, labels=f"job-name={body['metadata']['name']}")
        pods = drivers_of(body, found)
        seen = job_seen(body, pods, (), runtime=None)
        if seen.phase is JobPhase.PENDING:
            events = await events_about(api, namespace, [body, *pods])
            seen = job_seen(body, pods, events, runtime=None)
            words = seen.trouble.message if seen.trouble else ""
            if words and words != said:
                said = words
                say(words)
        if seen.phase is JobPhase.SUCCEEDED:
            return None
        if seen.phase is JobPhase.FAILED:
            return _late(said or f"it ran for {DEADLINE} s") if _was_late(body) else seen.trouble
        if time.monotonic() > end:
            return _late(said or "its pod runs still")
        await asyncio.sleep(LOOK)
        there = await api.get(JOB, namespace, body["metadata"]["name"])
        if there is None or there["metadata"]["uid"] != body["metadata"]["uid"]:
            return _late("it was deleted")
        body = there


async def _begun(api: Api, job: Object, end: float) -> Object:
    """Make a Job, or find it running. One that is over is deleted, and made anew.

    Raises:
        InvalidSpec: a Job of this name does other work.
    """
    namespace, name = job["metadata"]["namespace"], job["metadata"]["name"]
    while True:
        try:
            found, made = await ensure(api, JOB, namespace, job)
        except (InvalidSpec, ResourceChanged) as error:
            there = await api.get(JOB, namespace, name)
            if there is not None and not there["metadata"].get("deletionTimestamp"):
                error.remedy = _FOREIGN if isinstance(error, InvalidSpec) else error.remedy
                raise
            # An earlier one that is on its way out is none.
        else:
            for field in () if made else added(job, found):
                raise InvalidSpec(
                    f"Job {name} is there, with a field that this Job does not have",
                    field=field,
                    remedy=_FOREIGN,
                )
            if made or ended_of(found) is None:
                return found
            await api.delete(JOB, namespace, name, uid=found["metadata"]["uid"])
        if time.monotonic() > end:
            raise InvalidSpec(
                f"Job {name} of an earlier run is not gone yet", remedy="Delete it, and try again."
            )
        await asyncio.sleep(LOOK)


def _was_late(job: Object) -> bool:
    """Tell whether Kubernetes ended a Job at its deadline. It deletes the pod then."""
    conditions = job.get("status", {}).get("conditions") or []
    return any(one.get("reason") == "DeadlineExceeded" for one in conditions)


def _late(words: str) -> Trouble:
    return Trouble.of(
        InfrastructureError(
            f"the Job did not get to its end: {words}", remedy="Mend that, and try again."
        )
    )
