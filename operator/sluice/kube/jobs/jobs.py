"""Read Jobs and their pods: how far an attempt is, and why it does not go on."""

from __future__ import annotations

import json
import re
from datetime import datetime
from typing import TYPE_CHECKING, Final, TypeVar

from pydantic import ValidationError

from sluice.core.archive.recorded import Recorded
from sluice.core.query.recount import Recount
from sluice.core.reconcile.shared.jobs import JobPhase, JobSeen
from sluice.core.values.model import Frozen
from sluice.core.values.trouble import Trouble
from sluice.errors import (
    DriverEvicted,
    DriverLost,
    DriverOutOfMemory,
    ImagePullFailed,
    PodRefused,
    QuotaExceeded,
    SecretNotFound,
    Unschedulable,
)
from sluice.kube.api.names import (
    ATTEMPT_LABEL,
    FOLLOWS_ANNOTATION,
    RUNTIME_ANNOTATION,
    uid_of,
)

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from sluice.kube.api.kinds import Object

M = TypeVar("M", bound=Frozen)

_NUMBER: Final = re.compile("[0-9]{1,9}")

_NO_IMAGE: Final = frozenset(
    {"ErrImagePull", "ImagePullBackOff", "InvalidImageName", "ErrImageNeverPull"}
)
_NO_SECRET: Final = re.compile(r'\bsecret "[^"]*" not found|non-existent secret key')
"""The kubelet's message when a Secret or one of its keys is missing."""

_SLOW_NODE: Final = re.compile(r"failed to sync (configmap|secret) cache: timed out")
"""The kubelet's message when reading one of them timed out. It tries again within a second."""

_QUOTA_ASKS: Final = re.compile(r"failed quota: (?P<quota>[a-z0-9.-]+): must specify (?P<sizes>.*)")
"""The API server's message when a quota on a size meets a pod that does not state the size."""

_SIZE: Final = re.compile(r"\b(?:limits|requests)\.[a-z-]+")

_NO_CONTAINER: Final = frozenset(
    {"CreateContainerConfigError", "CreateContainerError", "RunContainerError"}
)


def attempt_of(labelled: Object) -> int:
    """Return the number of the attempt that a Job or pod belongs to; 0 if its label is damaged.

    Users may have written the label. A status takes no number with more than nine digits.
    """
    text = (labelled["metadata"].get("labels") or {}).get(ATTEMPT_LABEL, "")
    return int(text) if _NUMBER.fullmatch(text) else 0


def drivers_of(job: Object, pods: Iterable[Object]) -> list[Object]:
    """Return the pods that a Job has made.

    They are matched by the Job's UID. A Job that is made again has the name of the former Job,
    whose pod may still exist. In another namespace, a pod with that owner is forged.
    """
    place, uid = uid_of(job)
    return [
        pod
        for pod in pods
        if pod["metadata"]["namespace"] == place
        and any(owner["uid"] == uid for owner in pod["metadata"].get("ownerReferences") or [])
    ]


def is_gone(pod: Object) -> bool:
    """Tell whether a pod's containers have ended."""
    return pod.get("status", {}).get("phase") in {"Succeeded", "Failed"}


def job_seen(
    job: Object, pods: Sequence[Object], events: Sequence[Object], *, runtime: str | None
) -> JobSeen:
    """Return a Job as `reconcile` needs it.

    Args:
        job: the Job.
        pods: the pods of its driver.
        events: events about the Job and its pods, if no pod has started; the latest last.
        runtime: hash of the runtime that the spec asks for now; None when it is unknown.
    """
    meta, status = job["metadata"], job.get("status", {})
    pods = sorted(pods, key=_made)
    phase = _phase(job, pods)
    newest = pods[-1] if pods else None
    started = newest is not None and newest.get("status", {}).get("phase") != "Pending"
    trouble, words = None, ""
    if phase is JobPhase.PENDING:
        trouble, words = _not_starting(pods, events), _pending(pods)
    elif phase is JobPhase.FAILED:
        trouble = _timed_out(job) or _why_failed(pods)
    notes = meta.get("annotations", {})
    made_for = notes.get(RUNTIME_ANNOTATION)
    return JobSeen(
        name=meta["name"],
        attempt=attempt_of(job),
        phase=phase,
        started=time_of(status.get("startTime") or meta["creationTimestamp"]),
        ended=ended_of(job),
        trouble=trouble,
        words=words,
        deleting="deletionTimestamp" in meta,
        outdated=runtime is not None and made_for != runtime,
        recorded=_told(pods, "recorded", Recorded) if phase is JobPhase.SUCCEEDED else None,
        recount=_told(pods, "recount", Recount) if phase is JobPhase.SUCCEEDED else None,
        follower=FOLLOWS_ANNOTATION in notes,
        pod=newest["metadata"]["name"] if newest is not None and started else None,
        waiting=None if newest is None or started else time_of(_made(newest)),
    )


def _made(pod: Object) -> str:
    """Return when a pod was made, as the API server writes it."""
    return str(pod["metadata"].get("creationTimestamp") or "1970-01-01T00:00:00Z")


def time_of(text: str) -> datetime:
    """Parse a point in time, as Kubernetes writes it."""
    return datetime.fromisoformat(text)


def _condition(job: Object, kind: str) -> Object | None:
    found = job.get("status", {}).get("conditions") or []
    return next((c for c in found if c["type"] == kind and c["status"] == "True"), None)


def _phase(job: Object, pods: Sequence[Object]) -> JobPhase:
    if _condition(job, "Complete"):
        return JobPhase.SUCCEEDED
    if _condition(job, "Failed"):
        return JobPhase.FAILED
    if any(pod.get("status", {}).get("phase") == "Succeeded" for pod in pods):
        return JobPhase.SUCCEEDED  # the Job's own condition follows a second later
    started = {"Running", "Succeeded", "Failed"}
    if any(pod.get("status", {}).get("phase") in started for pod in pods):
        return JobPhase.RUNNING
    if not pods and job.get("status", {}).get("failed"):
        return JobPhase.RUNNING  # its pod was deleted; the Job's condition Failed follows
    return JobPhase.PENDING


def is_over(job: Object) -> bool:
    """Tell whether a Job has succeeded or failed, so that no pod of it runs."""
    return bool(_condition(job, "Complete") or _condition(job, "Failed"))


def ended_of(job: Object) -> datetime | None:
    """Return when a Job succeeded or failed; None if it has not ended."""
    found = _condition(job, "Complete") or _condition(job, "Failed")
    return time_of(found["lastTransitionTime"]) if found else None


def _not_starting(pods: Sequence[Object], events: Sequence[Object]) -> Trouble | None:
    """Tell why the driver's pod does not start; None if it may still start by itself."""
    for pod in pods:
        trouble = _pod_trouble(pod)
        if trouble is not None:
            return trouble
    for event in reversed(events):
        message = str(event.get("message", ""))
        match event.get("reason"):
            case "FailedCreate" if "exceeded quota" in message:
                return Trouble.of(QuotaExceeded(_short(message)))
            case "FailedCreate":
                return Trouble.of(pod_refused(message))
            case "FailedMount" if _NO_SECRET.search(message):
                error = SecretNotFound(
                    _short(message),
                    remedy="Create the Secret again: the pod starts when it is there.",
                )
                return Trouble.of(error)
            case "FailedMount" if pods and not _SLOW_NODE.search(message):
                return Trouble.of(PodRefused(_short(message)))
            case _:
                continue
    return None


def pod_refused(message: str) -> PodRefused:
    """Return the error of a driver's pod that the API server refuses.

    A quota on a size refuses each pod that does not state this size. The namespace's users can
    mend that: by the resource, or by defaults for the namespace's pods.

    Args:
        message: the API server's.
    """
    asked = _QUOTA_ASKS.search(message)
    if asked is None:
        return PodRefused(_short(message))
    sizes = sorted(set(_SIZE.findall(asked["sizes"])))
    wanted = " and ".join(sizes)
    ways = [
        f"apply a LimitRange to the namespace that gives containers a default for {wanted}",
        "ask the administrator to set it in the runtime profile",
    ]
    if sizes == ["limits.cpu"]:
        of_resource = "set cpu and cpuLimit in resources of spec.runtime.driver, and of executor"
        ways.insert(0, of_resource)
    remedy = "; or ".join(ways)
    return PodRefused(
        f"the ResourceQuota {asked['quota']!r} asks each pod to state {wanted}, and the driver's "
        f"does not: {_short(message)}",
        remedy=f"{remedy[0].upper()}{remedy[1:]}.",
    )


def _pod_trouble(pod: Object) -> Trouble | None:
    """Tell why a pending pod does not start, by its status; None if that has no reason."""
    status = pod.get("status", {})
    for condition in status.get("conditions") or []:
        if condition["type"] == "PodScheduled" and condition["status"] == "False":
            return Trouble.of(Unschedulable(_short(condition.get("message", "no node takes it"))))
    for container in status.get("containerStatuses") or []:
        waiting = container.get("state", {}).get("waiting") or {}
        said = f"{waiting.get('reason')}: {waiting.get('message', '')} ({container['image']})"
        if waiting.get("reason") in _NO_IMAGE:
            return Trouble.of(ImagePullFailed(_short(said)))
        if waiting.get("reason") in _NO_CONTAINER:
            return Trouble.of(PodRefused(_short(said)))
    return None


def _pending(pods: Sequence[Object]) -> str:
    """Describe the state of a pod that has not started, for the copy's status."""
    if not pods:
        return "its Job has made no pod"
    pod = pods[-1]
    name, status = pod["metadata"]["name"], pod.get("status", {})
    containers = [
        *(status.get("initContainerStatuses") or []),
        *(status.get("containerStatuses") or []),
    ]
    said = [
        ": ".join(part for part in (waiting.get("reason"), waiting.get("message")) if part)
        for container in containers
        if (waiting := container.get("state", {}).get("waiting"))
    ]
    if not said:
        node = pod.get("spec", {}).get("nodeName")
        said = [f"on node {node}, without containers" if node else "no scheduler has taken it up"]
    return _short(f"pod {name} is {status.get('phase', 'new')}: {'; '.join(said)}")


def _timed_out(job: Object) -> Trouble | None:
    """Tell that a Job had too little time; None if that is not why it failed."""
    failed = _condition(job, "Failed") or {}
    if failed.get("reason") != "DeadlineExceeded":
        return None
    said = _short(failed.get("message") or "it was not done in time")
    return Trouble.of(
        DriverLost(
            f"Kubernetes ended the Job: {said}",
            remedy="Give it more time: that of a verification is spec.verify.timeoutSeconds.",
        )
    )


def _why_failed(pods: Sequence[Object]) -> Trouble:
    """Tell why an attempt failed: by the driver's termination message, or by its pod's status."""
    for pod in reversed(pods):  # of a follower's pods the last one tells
        status = pod.get("status", {})
        name = pod["metadata"]["name"]
        if status.get("reason") == "Evicted":
            return Trouble.of(DriverEvicted(_short(status.get("message", f"{name} was evicted"))))
        containers = status.get("containerStatuses") or []
        # The driver's container first: the cluster may have injected others.
        for container in sorted(containers, key=lambda found: found.get("name") != "driver"):
            ended = container.get("state", {}).get("terminated") or {}
            said = termination(ended.get("message"))
            if said is not None:
                return said
            if ended.get("reason") == "OOMKilled":
                return Trouble.of(DriverOutOfMemory(f"{name} used more memory than its limit"))
            if ended:
                code = ended.get("exitCode")
                return Trouble.of(DriverLost(f"{name} ended with exit code {code} and no word"))
        if status.get("reason"):
            befell = f"{name}: {status['reason']}: {status.get('message', '')}"
            return Trouble.of(DriverLost(_short(befell)))
    return Trouble.of(DriverLost("the driver's pod is gone"))


def _told(pods: Sequence[Object], key: str, model: type[M]) -> M | None:
    """Return the report in a successful pod's message; None if it has none that can be read."""
    for pod in pods:
        for container in pod.get("status", {}).get("containerStatuses") or []:
            ended = container.get("state", {}).get("terminated") or {}
            try:
                said = json.loads(ended.get("message") or "")
                return model.model_validate(said[key])
            except (ValueError, RecursionError, TypeError, LookupError):  # also pydantic's
                continue
    return None


def termination(message: str | None) -> Trouble | None:
    """Parse the failure in a driver's termination message; None if the message has no failure."""
    try:
        said = json.loads(message or "")
        if not isinstance(said, dict) or said.pop("outcome", None) != "Failed":
            return None
        return Trouble.model_validate(said)
    except (ValueError, RecursionError, ValidationError):
        return None


def _short(message: str, most: int = 1000) -> str:
    """Shorten a message of the cluster to one line of at most `most` characters."""
    line = " ".join(message.split())
    return line if len(line) <= most else line[: most - 3] + "..."
