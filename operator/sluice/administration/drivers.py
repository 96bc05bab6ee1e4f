"""Find the drivers of a resource by their owners.

Tenants can write labels, so labels only narrow a search. An object counts as the resource's own if
its controller has the UID of the resource, or of one of the resource's own Jobs. A Job in another
namespace names the resource by an annotation.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from sluice.core.reconcile.shared.jobs import job_prefix
from sluice.kube.api.kinds import JOB, POD
from sluice.kube.api.names import UID_LABEL, Child, is_child
from sluice.kube.api.objects import driver_namespace

if TYPE_CHECKING:
    from sluice.kube.api.client import Api
    from sluice.kube.api.kinds import Kind, Object

_NUMBER: Final = re.compile("[0-9]{1,9}")


@dataclass(frozen=True, slots=True)
class JobAttempt:
    """An attempt of a resource, with its Job and the Job's pods.

    Attributes:
        number: its number, from 1.
        job: the Job.
        pods: the pods of the driver, the oldest first.
    """

    number: int
    job: Object
    pods: tuple[Object, ...]


async def attempts(api: Api, kind: Kind, body: Object) -> list[JobAttempt]:
    """Return the attempts of a resource whose Jobs still exist, the oldest first.

    They are in the namespace of the resource, or in that of a StreamStore, as its status says. A
    user sees them there only with rights in that namespace.

    Args:
        api: the API server.
        kind: the resource's kind.
        body: the resource.

    Raises:
        ApiUnavailable: the API server cannot be asked, or refuses.
    """
    meta, host = body["metadata"], driver_namespace(body)
    child = Child(kind=kind, namespace=meta["namespace"], name=meta["name"], uid=meta["uid"])
    label = f"{UID_LABEL}={child.uid}"
    jobs: list[Object] = []
    pods: list[Object] = []
    for place in dict.fromkeys((child.namespace, host or child.namespace)):
        there = [job for job in await api.list(JOB, place, labels=label) if child.has(job)]
        jobs += there
        pods += await api.list(POD, place, labels=label) if there else []
    pods.sort(key=lambda pod: str(pod["metadata"].get("creationTimestamp")))
    found = []
    for job in jobs:
        number = _number(job, child.uid)
        if number is not None:
            own = tuple(pod for pod in pods if is_child(pod, job["metadata"]["uid"]))
            found.append(JobAttempt(number, job, own))
    return sorted(found, key=lambda attempt: attempt.number)


def _number(job: Object, uid: str) -> int | None:
    """Return the number of a Job's attempt by its name; None if the operator names none so."""
    name, begin = str(job["metadata"]["name"]), job_prefix(uid)
    number = name.removeprefix(begin)
    return int(number) if name.startswith(begin) and _NUMBER.fullmatch(number) else None
