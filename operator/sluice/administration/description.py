"""Gather all that a person may want to know about a resource, and tell the next step."""

from __future__ import annotations

from dataclasses import dataclass, field
from datetime import datetime
from typing import TYPE_CHECKING, Final, NamedTuple, TypeVar

from sluice.administration.drivers import attempts
from sluice.administration.resources import gone
from sluice.api.registry import WITH_JOBS
from sluice.api.status.common import ConditionType, CopyingStatus
from sluice.api.status.query_status import StreamQueryStatus
from sluice.core.catalogue import NORMAL, failures
from sluice.kube.api.kinds import EVENT
from sluice.kube.api.objects import driver_namespace, is_deleting
from sluice.kube.api.responses import Refused

if TYPE_CHECKING:
    from collections.abc import Awaitable

    from sluice.administration.drivers import JobAttempt
    from sluice.administration.naming import Named
    from sluice.api.status.common import ResourceStatus
    from sluice.kube.api.client import Api
    from sluice.kube.api.kinds import Object

MOST_EVENTS: Final = 20
"""The most events that are told, the latest ones."""

_MOST_PAGES: Final = 10
"""Pages of events that are read. Tenants may write events without end."""

_T = TypeVar("_T")


class Happening(NamedTuple):
    """An event, as far as people read it.

    Attributes:
        time: when it was last seen; None if it does not tell.
        type: Normal or Warning.
        reason: its reason in one word.
        times: how often it was seen.
        message: its message.
    """

    time: datetime | None
    type: str
    reason: str
    times: int
    message: str


@dataclass(slots=True)
class Description:
    """A resource, with all that belongs to it.

    Attributes:
        resource: the resource.
        body: the resource, as the API server has it.
        status: its status.
        attempts: the attempts whose Jobs exist, the oldest first.
        events: its last events, the oldest first.
        forbidden: the parts that the user may not read.
    """

    resource: Named
    body: Object
    status: ResourceStatus
    attempts: list[JobAttempt] = field(default_factory=list)
    events: list[Object] = field(default_factory=list)
    forbidden: list[str] = field(default_factory=list)

    @property
    def deleting(self) -> bool:
        """Whether the resource was deleted, and only its finalizers keep it."""
        return is_deleting(self.body)

    @property
    def happenings(self) -> list[Happening]:
        """The events, as far as people read them."""
        return [_happening(event) for event in self.events]

    @property
    def next_step(self) -> str:
        """What a person can do next about the resource."""
        return next_step(self)


async def describe(api: Api, resource: Named) -> Description:
    """Read a resource with its Jobs, pods and events. Parts that are forbidden are left out.

    Raises:
        InvalidSpec: the resource is gone.
        ApiUnavailable: the API server cannot be asked, or refuses the resource itself.
    """
    body = await api.get(resource.kind, resource.namespace, resource.name)
    if body is None:
        raise gone(resource)
    uid = str(body["metadata"]["uid"])
    found = Description(resource, body, resource.spec.status.read(body.get("status")))
    if resource.spec in WITH_JOBS:
        jobs, host = attempts(api, resource.kind, body), driver_namespace(body)
        where = f" in namespace {host}" if host else ""
        found.attempts = await _allowed(jobs, found, f"Jobs and pods{where}") or []
    found.events = await _allowed(_events(api, resource.namespace, uid), found, "events") or []
    return found


async def _allowed(part: Awaitable[_T], found: Description, name: str) -> _T | None:
    """Return a part; None if the user may not read it, which is noted."""
    try:
        return await part
    except Refused as error:
        if not error.forbidden:
            raise
        found.forbidden.append(name)
        return None


async def _events(api: Api, namespace: str, uid: str) -> list[Object]:
    """Return the last events about an object, the oldest first."""
    events: list[Object] = []
    number = 0
    async for page in api.pages(EVENT, namespace, fields=f"involvedObject.uid={uid}"):
        number += 1
        events = sorted([*events, *page], key=_stamp)[-MOST_EVENTS:]
        if number == _MOST_PAGES:
            break
    return events


def _stamp(event: Object) -> str:
    return str(event.get("lastTimestamp") or event.get("eventTime") or "")


def _happening(event: Object) -> Happening:
    """Read an event. Any client may have written it."""
    try:
        time = datetime.fromisoformat(_stamp(event))
    except ValueError:
        time = None
    count = event.get("count")
    return Happening(
        time=time if time is not None and time.tzinfo is not None else None,
        type=str(event.get("type") or ""),
        reason=str(event.get("reason") or ""),
        times=count if isinstance(count, int) else 1,
        message=str(event.get("message") or ""),
    )


def next_step(found: Description) -> str:
    """Return what a person can do next about a resource."""
    resource, status = found.resource, found.status
    ready = status.condition(ConditionType.READY)
    if found.deleting:
        return f"Wait until it is gone: kubectl wait --for=delete {resource}."
    if ready is None:
        return (
            "Wait: the operator has not looked at it. If that lasts, check that the operator runs: "
            "kubectl get pods --all-namespaces -l app.kubernetes.io/name=sluice."
        )
    if _is_true(status, ConditionType.SUSPENDED):
        return f"sluice resume {resource} goes on with it."
    remedy = _remedy(found, ready.reason)
    if ready.status == "Unknown":
        waits = f"sluice watch {resource} shows how it goes on."
        return waits if remedy.startswith("Nothing") else f"{remedy} {waits}"
    stalled = _is_true(status, ConditionType.STALLED) and resource.spec.uses_stores
    return f"{remedy} Then: sluice retry {resource}." if stalled else remedy


def _is_true(status: ResourceStatus, kind: ConditionType) -> bool:
    condition = status.condition(kind)
    return condition is not None and condition.status == "True"


def _remedy(found: Description, reason: str) -> str:
    """Return the remedy of the last failure, if the reason is about it, or the catalogue's."""
    status = found.status
    failure = status.last_failure if isinstance(status, CopyingStatus | StreamQueryStatus) else None
    if failure is not None and failure.reason == reason and failure.remedy:
        return failure.remedy
    remedies = {one.name: one.remedy for one in NORMAL}
    remedies |= {one.name: one.remedy for one in failures()}
    return remedies.get(reason, "See docs/conditions.md.")
