"""Find the drivers of a resource by their owners, and read their logs.

Tenants can write labels, so labels only narrow a search. An object counts as the resource's own if
its controller has the UID of the resource, or of one of the resource's own Jobs.
"""

from __future__ import annotations

import asyncio
import re
import time
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from sluice.administration.resources import LOOK, ended, gone, holds, may_pass
from sluice.api.status.common import ConditionType
from sluice.core.reconcile.copies.copy_status import job_name
from sluice.errors import ApiUnavailable, InvalidSpec
from sluice.kube.api.kinds import JOB, POD
from sluice.kube.api.names import UID_LABEL, is_child
from sluice.kube.api.responses import Refused
from sluice.kube.jobs.jobs import is_gone

if TYPE_CHECKING:
    from collections.abc import AsyncIterator

    from sluice.administration.naming import Named
    from sluice.kube.api.client import Api
    from sluice.kube.api.kinds import Object

CONTAINER: Final = "driver"
"""The driver's container in its pod."""

SILENCE: Final = 60.0
"""Seconds without a line after which a followed log is opened again."""

PATIENCE: Final = 300.0
"""Seconds for which a followed log may be out of reach."""

_STAMP: Final = re.compile(r"\d{4}-\d\d-\d\dT[\d:.]+(?:Z|[+-]\d\d:\d\d) ")
"""The time before a line, as the kubelet writes it; always as long in one log."""


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


@dataclass(frozen=True, slots=True)
class Line:
    """A line of a log.

    Attributes:
        attempt: the number of the attempt.
        pod: the pod's name.
        text: the line.
    """

    attempt: int
    pod: str
    text: str


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
    number = str(job["metadata"]["name"]).rpartition("-")[2]
    if not number.isdecimal() or job["metadata"]["name"] != job_name(uid, int(number)):
        return None
    return int(number)


async def log(
    api: Api, resource: Named, *, attempt: int | None = None, follow: bool = False
) -> AsyncIterator[Line]:
    """Read the log of a resource's driver.

    Args:
        api: the API server.
        resource: the resource.
        attempt: the attempt; None for the last one, and with `follow` also those after it.
        follow: go on until the resource, or the named attempt, is at rest.

    Raises:
        InvalidSpec: the resource is gone, or no pod with such a log exists.
        ApiUnavailable: the API server or the pod's node cannot be asked, or refuses.
    """
    read: set[str] = set()
    least = 0
    while True:
        body = await _body(api, resource)
        rests = _rests(body, resource)  # looked at first: no pod comes after it
        found = await attempts(api, resource.namespace, body["metadata"]["uid"])
        if attempt is not None:
            found = [one for one in found if one.number == attempt]
        elif not read:
            found = [one for one in found if one.pods][-1:]
        for one in (one for one in found if one.number >= least):
            for pod in one.pods:
                if pod["metadata"]["uid"] in read or _waits(pod):
                    continue
                read.add(pod["metadata"]["uid"])
                least = one.number
                async for text in _lines(api, pod, follow=follow):
                    yield Line(one.number, pod["metadata"]["name"], text)
        if not follow or rests or (attempt is not None and read):
            break
        await asyncio.sleep(LOOK)
    if not read:
        raise _without_log(resource, found, attempt)


async def _body(api: Api, resource: Named) -> Object:
    body = await api.get(resource.kind, resource.namespace, resource.name)
    if body is None:
        raise gone(resource)
    return body


def _rests(body: Object, resource: Named) -> bool:
    """Tell whether the operator does nothing for a resource until a person acts."""
    suspended = holds(body, resource, ConditionType.SUSPENDED) is not None
    return suspended or ended(body, resource, ConditionType.READY) is not None


def _waits(pod: Object) -> bool:
    """Tell whether a pod's containers have not started, so that they have no log."""
    return pod.get("status", {}).get("phase", "Pending") == "Pending"


def _without_log(resource: Named, found: list[Attempt], attempt: int | None) -> InvalidSpec:
    which = "" if attempt is None else f" of attempt {attempt}"
    waiting = [pod["metadata"]["name"] for one in found for pod in one.pods]
    if waiting:
        message = f"{resource}: the driver's pod{which} has not started ({', '.join(waiting)})"
        remedy = f"See why with sluice describe {resource}, or wait for it with --follow."
    else:
        message = f"{resource} has no driver's pod{which}"
        remedy = (
            "It has not begun, or Kubernetes has deleted the pods of its Jobs: sluice describe "
            f"{resource} shows its attempts and how they ended."
        )
    return InvalidSpec(message, field="NAME" if attempt is None else "--attempt", remedy=remedy)


async def _lines(api: Api, pod: Object, *, follow: bool) -> AsyncIterator[str]:
    """Read the lines of a pod's driver, each once, although connections break."""
    meta = pod["metadata"]
    last, same, heard = "", 0, time.monotonic()
    while True:
        skipped, stamp = 0, ""
        try:
            async with api.log(
                meta["namespace"],
                meta["name"],
                CONTAINER,
                since=last or None,
                follow=follow,
                silence=SILENCE,
            ) as lines:
                async for data in lines:
                    heard = time.monotonic()
                    stamp, text = _parts(data, stamp)
                    if stamp < last:
                        continue
                    if stamp == last and skipped < same:
                        skipped += 1  # since counts whole seconds, so lines come again
                        continue
                    same = same + 1 if stamp == last else 1
                    skipped = same
                    last = stamp
                    yield text
        except ApiUnavailable as error:
            if follow and isinstance(error, Refused) and error.why == "NotFound":
                return  # the pod was deleted
            if not follow or (isinstance(error, Refused) and not may_pass(error)):
                raise
            if time.monotonic() > heard + PATIENCE and await _is_over(api, pod) is None:
                raise
        else:  # after an error, there may be lines left
            if not follow or await _is_over(api, pod):
                return
        await asyncio.sleep(LOOK)


def _parts(data: bytes, before: str) -> tuple[str, str]:
    """Split a line into its time and its text. A part of a long line has the time before it."""
    text = data.decode(errors="replace")
    stamp = _STAMP.match(text)
    return (stamp[0].strip(), text[stamp.end() :]) if stamp else (before, text)


async def _is_over(api: Api, pod: Object) -> bool | None:
    """Tell whether a pod's containers have ended, or the pod is gone; None if that is unknown."""
    meta = pod["metadata"]
    try:
        found = await api.get(POD, meta["namespace"], meta["name"])
    except ApiUnavailable as error:
        if isinstance(error, Refused) and not may_pass(error):
            raise
        return None
    return found is None or found["metadata"]["uid"] != meta["uid"] or is_gone(found)
