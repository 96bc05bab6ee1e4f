"""Read the logs of a resource's drivers, while connections break and attempts follow each other."""

from __future__ import annotations

import asyncio
import re
import time
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from sluice.administration.drivers import attempts
from sluice.administration.resources import LOOK, ended, gone, holds, may_pass
from sluice.api.status.common import ConditionType
from sluice.errors import ApiUnavailable, InvalidSpec
from sluice.kube.api.kinds import POD
from sluice.kube.api.responses import Refused
from sluice.kube.jobs.jobs import is_gone

if TYPE_CHECKING:
    from collections.abc import AsyncIterator

    from sluice.administration.drivers import JobAttempt
    from sluice.administration.naming import Named
    from sluice.kube.api.client import Api
    from sluice.kube.api.kinds import Object

CONTAINER: Final = "driver"
"""The driver's container in its pod."""

SILENCE: Final = 60.0
"""Seconds without a line after which a followed log is opened again."""

PATIENCE: Final = 300.0
"""Seconds for which a followed log may not be opened."""

_STAMP: Final = re.compile(r"\d{4}-\d\d-\d\dT[\d:.]+(?:Z|[+-]\d\d:\d\d) ")
"""The time before a line, as the kubelet writes it; always as long in one log."""


@dataclass(frozen=True, slots=True)
class LogLine:
    """A line of a log.

    Attributes:
        attempt: the number of the attempt.
        pod: the pod's name.
        text: the line.
    """

    attempt: int
    pod: str
    text: str


async def log(
    api: Api, resource: Named, *, attempt: int | None = None, follow: bool = False
) -> AsyncIterator[LogLine]:
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
    least = attempt or 0
    while True:
        rests, found = await _look(api, resource, patience=PATIENCE if follow else 0.0)
        if attempt is not None:
            found = [one for one in found if one.number == attempt]
        least = least or max((one.number for one in found if one.pods), default=0)
        for one in found:
            for pod in one.pods:
                if one.number < least or pod["metadata"]["uid"] in read or _waits(pod):
                    continue
                read.add(pod["metadata"]["uid"])
                async for text in _lines(api, pod, follow=follow):
                    yield LogLine(one.number, pod["metadata"]["name"], text)
        if not follow or rests or (attempt is not None and read):
            break
        await asyncio.sleep(LOOK)
    if not read:
        raise _without_log(resource, found, attempt)


async def _look(api: Api, resource: Named, *, patience: float) -> tuple[bool, list[JobAttempt]]:
    """Return whether a resource rests, and its attempts. No pod comes after it rests.

    Args:
        api: the API server.
        resource: the resource.
        patience: seconds for which the API server may be away.
    """
    end = time.monotonic() + patience
    while True:
        try:
            body = await api.get(resource.kind, resource.namespace, resource.name)
            if body is None:
                raise gone(resource)
            found = await attempts(api, resource.kind, body)
        except ApiUnavailable as error:
            if not _passes(error) or time.monotonic() >= end:
                raise
            await asyncio.sleep(LOOK)
        else:
            return _rests(body, resource), found


def _rests(body: Object, resource: Named) -> bool:
    """Tell whether the operator does nothing for a resource until a person acts."""
    suspended = holds(body, resource, ConditionType.SUSPENDED) is not None
    return suspended or ended(body, resource, ConditionType.READY) is not None


def _waits(pod: Object) -> bool:
    """Tell whether a pod's containers have not started, so that they have no log."""
    return str(pod.get("status", {}).get("phase", "Pending")) == "Pending"


def _without_log(resource: Named, found: list[JobAttempt], attempt: int | None) -> InvalidSpec:
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


class _Once:
    """The lines of a log that is opened again and again, each once.

    Attributes:
        last: the time of the last line; empty before any. A log that is opened again begins with
            the second of this time.
    """

    def __init__(self) -> None:
        self.last = ""
        self._same = 0  # lines of this time
        self._again = 0  # those of them that the present opening has given
        self._stamp = ""

    def opened(self) -> None:
        """Begin anew: lines that are known come again."""
        self._again, self._stamp = 0, ""

    def take(self, data: bytes) -> str | None:
        """Return the text of a line; None if it is known."""
        line = data.decode(errors="replace")
        stamp = _STAMP.match(line)
        if stamp is not None:  # a part of a long line has the time of the part before it
            self._stamp, line = stamp[0].strip(), line[stamp.end() :]
        if self._stamp < self.last:
            return None
        if self._stamp == self.last:
            self._again += 1
            if self._again <= self._same:
                return None
            self._same += 1
        else:
            self.last, self._same, self._again = self._stamp, 1, 1
        return line


async def _lines(api: Api, pod: Object, *, follow: bool) -> AsyncIterator[str]:
    """Read the lines of a pod's driver, each once, although connections break."""
    meta = pod["metadata"]
    once, reached = _Once(), time.monotonic()
    while True:
        once.opened()
        try:
            async with api.log(
                meta["namespace"],
                meta["name"],
                CONTAINER,
                since=once.last or None,
                follow=follow,
                silence=SILENCE,
            ) as lines:
                reached = time.monotonic()
                async for data in lines:
                    reached = time.monotonic()
                    text = once.take(data)
                    if text is not None:
                        yield text
        except ApiUnavailable as error:
            if follow and isinstance(error, Refused) and error.why == "NotFound":
                return  # the pod was deleted
            if not (follow and _passes(error) and time.monotonic() < reached + PATIENCE):
                raise
        else:  # after an error, there may be lines left
            if not follow or await _is_over(api, pod):
                return
        await asyncio.sleep(LOOK)


def _passes(error: ApiUnavailable) -> bool:
    """Tell whether an error is about the connection or the API server, and not about the call."""
    return not isinstance(error, Refused) or may_pass(error)


async def _is_over(api: Api, pod: Object) -> bool:
    """Tell whether a pod's containers have ended, or the pod is gone. Unknown counts as no."""
    meta = pod["metadata"]
    try:
        found = await api.get(POD, meta["namespace"], meta["name"])
    except ApiUnavailable as error:
        if not _passes(error):
            raise
        return False
    return found is None or found["metadata"]["uid"] != meta["uid"] or is_gone(found)
