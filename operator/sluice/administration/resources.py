"""Change resources, and wait for them."""

from __future__ import annotations

import asyncio
import time
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Final, NamedTuple

from sluice.api.status.common import ConditionType
from sluice.errors import ApiUnavailable, InvalidSpec
from sluice.kube.api.objects import REQUESTED_AT, requested_at
from sluice.kube.api.responses import Refused

if TYPE_CHECKING:
    from collections.abc import AsyncIterator

    from sluice.administration.naming import Named
    from sluice.api.status.common import Condition
    from sluice.kube.api.client import Api
    from sluice.kube.api.kinds import Object

_TOO_MANY, _SERVERS_FAULT = 429, 500
"""Statuses of HTTP; from the last one on they are not about the call."""

LOOK: Final = 1.0
"""Seconds between two looks at a resource that is waited for."""


class Awaited(NamedTuple):
    """The end of a wait.

    Attributes:
        resource: the resource.
        condition: the condition that was waited for, or Stalled; None if the time was over first.
        met: whether the condition that was waited for is True.
        message: the sentence about the state. Mostly the condition Ready has it.
    """

    resource: Named
    condition: Condition | None
    met: bool
    message: str | None = None


async def suspend(api: Api, resource: Named, *, suspended: bool) -> Object:
    """Set `spec.suspend`, and return the resource.

    Raises:
        InvalidSpec: the resource is gone.
    """
    return await _patch(api, resource, {"spec": {"suspend": suspended}})


async def retry(api: Api, resource: Named) -> Object:
    """Ask the operator to act on a resource again at once, by an annotation with the time.

    The resource is returned.

    Raises:
        InvalidSpec: the resource is gone.
    """
    return await request(api, resource, REQUESTED_AT)


async def request(api: Api, resource: Named, annotation: str) -> Object:
    """Set an annotation to the time. Return the resource. Raises as `retry`."""
    now = datetime.now(UTC).isoformat(timespec="milliseconds")
    return await _patch(api, resource, {"metadata": {"annotations": {annotation: now}}})


async def _patch(api: Api, resource: Named, body: Object) -> Object:
    found = await api.patch(resource.kind, resource.namespace, resource.name, body)
    if found is None:
        raise gone(resource)
    return found


async def until(
    api: Api,
    resource: Named,
    wanted: ConditionType,
    *,
    seconds: float | None,
) -> Awaited:
    """Wait until a condition is True, or the resource is stalled.

    Conditions from before the last change of the spec, or the last request, do not count.

    Args:
        api: the API server.
        resource: the resource.
        wanted: the condition.
        seconds: the longest wait; None for no limit.

    Raises:
        InvalidSpec: the resource is gone.
        Refused: the API server refuses.
    """
    async for body in looks(api, resource, seconds=seconds):
        found = ended(body, resource, wanted)
        if found is not None:
            return found
    return Awaited(resource, None, met=False)


async def looks(api: Api, resource: Named, *, seconds: float | None) -> AsyncIterator[Object]:
    """Yield a resource again and again, until the time is over.

    An API server that is away for a while does not end this.

    Args:
        api: the API server.
        resource: the resource.
        seconds: the time; None for no limit.

    Raises:
        InvalidSpec: the resource is gone.
        Refused: the API server refuses.
    """
    end = None if seconds is None else time.monotonic() + seconds
    while True:
        try:
            body = await api.get(resource.kind, resource.namespace, resource.name)
        except ApiUnavailable as error:
            if isinstance(error, Refused) and not may_pass(error):
                raise
        else:
            if body is None:
                raise gone(resource)
            yield body
        if end is not None and time.monotonic() >= end:
            return
        await asyncio.sleep(LOOK)


def ended(body: Object, resource: Named, wanted: ConditionType) -> Awaited | None:
    """Return how the wait for a resource ends; None if it goes on.

    Conditions from before the last change of the spec, or the last request, do not count.
    """
    for kind in (wanted, ConditionType.STALLED):
        condition = holds(body, resource, kind)
        if condition is not None:
            message = _message(body, resource, condition)
            return Awaited(resource, condition, met=kind is wanted, message=message)
    return None


def may_pass(error: Refused) -> bool:
    """Tell whether a refusal is about the API server's state, and not about the call."""
    return error.status == _TOO_MANY or error.status >= _SERVERS_FAULT


def holds(body: Object, resource: Named, kind: ConditionType) -> Condition | None:
    """Return a condition that is True, and that the operator has set since the last change.

    A change is a new generation of the spec, or a new request to act again.
    """
    status = resource.spec.status.read(body.get("status"))
    condition = status.condition(kind)
    if condition is None or condition.status != "True":
        return None
    meta = body["metadata"]
    requested = requested_at(body)
    handled = getattr(status, "last_handled_requested_at", requested)
    is_new = condition.observed_generation >= meta.get("generation", 0)
    return condition if is_new and requested in {None, handled} else None


def _message(body: Object, resource: Named, condition: Condition) -> str:
    """Return the sentence about a resource's state."""
    ready = resource.spec.status.read(body.get("status")).condition(ConditionType.READY)
    own = condition.type in {ConditionType.VERIFIED, ConditionType.DRIFTED}
    return condition.message if own or ready is None else ready.message


def gone(resource: Named) -> InvalidSpec:
    """Return the error about a resource that was there a moment ago."""
    return InvalidSpec(
        f"{resource} was deleted, or changed at this moment, in namespace {resource.namespace!r}",
        field="NAME",
        remedy="Look for it with sluice get, and try again.",
    )
