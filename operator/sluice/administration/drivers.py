"""Find the drivers of a resource by their owners.

Tenants can write labels, so labels only narrow a search. An object counts as the resource's own if
its controller has the UID of the resource, or of one of the resource's own Jobs.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from sluice.core.reconcile.copies.statuses.base import job_prefix
from sluice.kube.api.kinds import JOB, POD
from sluice.kube.api.names import UID_LABEL, is_child

if TYPE_CHECKING:
    from sluice.kube.api.client import Api
    from sluice.kube.api.kinds import Object

_NUMBER: Final = re.compile("[0-9]{1,9}")


@dataclass(frozen=True, slots=True)
class Attempt:
    """An attempt of a resource, with its Job and the Job's pods.

    Attributes:
        number: its number, from 1.
        job: the Job.
        pods: the pods of the driver, the oldest first.
    """

    number: int
    job: Object
    pods: tuple[Object, ...]


async def attempts(api: Api, namespace: str, uid: str) -> list[Attempt]:
    """Return the attempts of a resource whose Jobs still exist, the oldest first.

    Args:
        api: the API server.
        namespace: the resource's namespace.
        uid: the resource's UID.

    Raises:
        ApiUnavailable: the API server cannot be asked, or refuses.
    """
    label = f"{UID_LABEL}={uid}"
    jobs = [job for job in await api.list(JOB, namespace, labels=label) if is_child(job, uid)]
    pods = await api.list(POD, namespace, labels=label) if jobs else []
    pods.sort(key=lambda pod: str(pod["metadata"].get("creationTimestamp")))
    found = []
    for job in jobs:
        number = _number(job, uid)
        if number is not None:
            own = tuple(pod for pod in pods if is_child(pod, job["metadata"]["uid"]))
            found.append(Attempt(number, job, own))
    return sorted(found, key=lambda attempt: attempt.number)


def _number(job: Object, uid: str) -> int | None:
    """Return the number of a Job's attempt by its name; None if the operator names none so."""
    name, begin = str(job["metadata"]["name"]), job_prefix(uid)
    number = name.removeprefix(begin)
    return int(number) if name.startswith(begin) and _NUMBER.fullmatch(number) else None
