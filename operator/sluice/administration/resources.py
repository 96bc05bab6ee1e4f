"""Find resources by the names that people type, change them, and wait for them."""

from __future__ import annotations

import asyncio
import time
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Final, NamedTuple

from sluice.api.registry import KINDS
from sluice.api.status.common import MOST_TOKEN, ConditionType
from sluice.errors import ApiUnavailable, InvalidSpec
from sluice.kube.api.kinds import OWN
from sluice.kube.api.objects import REQUESTED_AT
from sluice.kube.api.responses import Refused

if TYPE_CHECKING:
    from collections.abc import Sequence

    from sluice.api.registry import KindSpec
    from sluice.api.status.common import Condition
    from sluice.kube.api.client import Api
    from sluice.kube.api.kinds import Kind, Object

_FORBIDDEN, _TOO_MANY, _SERVERS_FAULT = 403, 429, 500
"""Statuses of HTTP; from the last one on they are not about the call."""

LOOK: Final = 1.0
"""Seconds between two looks at a resource that is waited for."""


@dataclass(frozen=True, slots=True)
class Named:
    """A resource in a cluster.

    Attributes:
        spec: the record of its kind.
        namespace: its namespace.
        name: its name.
    """

    spec: KindSpec
    namespace: str
    name: str

    def __str__(self) -> str:
        """Return the resource as kubectl names it."""
        return f"{self.spec.name.lower()}/{self.name}"

    @property
    def kind(self) -> Kind:
        """The kind, for calls of the API."""
        return OWN[self.spec.name]


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


async def find(api: Api, namespace: str, text: str, *, kinds: Sequence[KindSpec] = KINDS) -> Named:
    """Find a resource by `NAME`, or by `KIND/NAME` with any name of the kind.

    Args:
        api: the API server.
        namespace: the namespace.
        text: the name as it was typed.
        kinds: the kinds that are meant.

    Raises:
        InvalidSpec: there is no such resource, or a name without a kind means several.
        ApiUnavailable: the API server cannot be asked, or refuses.
    """
    word, slash, name = text.rpartition("/")
    meant = [kind for kind in kinds if not slash or word.lower() in _words(kind)]
    if not meant:
        known = ", ".join(kind.name.lower() for kind in kinds)
        raise InvalidSpec(
            f"{word!r} is no kind that this command knows", field="NAME", remedy=f"Take {known}."
        )
    found, forbidden = [], None
    for kind in meant:
        try:
            if await api.get(OWN[kind.name], namespace, name) is not None:
                found.append(Named(kind, namespace, name))
        except Refused as error:
            if error.status != _FORBIDDEN:
                raise
            forbidden = error  # a user may have rights on some kinds only
    if not found and forbidden is not None:
        raise forbidden
    if not found:
        what = meant[0].name if slash else "resource"
        raise InvalidSpec(
            f"there is no {what} {name!r} in namespace {namespace!r}",
            field="NAME",
            remedy="Name one that sluice status --all-namespaces shows, with its --namespace.",
        )
    if len(found) > 1:
        raise InvalidSpec(
            f"{name!r} may be {' or '.join(map(str, found))}",
            field="NAME",
            remedy="Write the kind before the name.",
        )
    return found[0]


def _words(kind: KindSpec) -> set[str]:
    return {kind.name.lower(), kind.plural, kind.short}


async def suspend(api: Api, resource: Named, *, suspended: bool) -> None:
    """Set `spec.suspend`.

    Raises:
        InvalidSpec: the resource is gone.
    """
    await _patch(api, resource, {"spec": {"suspend": suspended}})


async def retry(api: Api, resource: Named) -> None:
    """Ask the operator to act on a resource again at once, by an annotation with the time.

    Raises:
        InvalidSpec: the resource is gone.
    """
    now = datetime.now(UTC).isoformat(timespec="milliseconds")
    await _patch(api, resource, {"metadata": {"annotations": {REQUESTED_AT: now}}})


async def _patch(api: Api, resource: Named, body: Object) -> None:
    if await api.patch(resource.kind, resource.namespace, resource.name, body) is None:
        raise _gone(resource)


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
    end = None if seconds is None else time.monotonic() + seconds
    while True:
        try:
            body = await api.get(resource.kind, resource.namespace, resource.name)
        except ApiUnavailable as error:  # an API server that starts anew does not end a long wait
            if isinstance(error, Refused) and not _may_pass(error):
                raise
        else:
            if body is None:
                raise _gone(resource)
            for kind in (wanted, ConditionType.STALLED):
                condition = _true(body, resource, kind)
                if condition is not None:
                    message = _message(body, resource, condition)
                    return Awaited(resource, condition, met=kind is wanted, message=message)
        if end is not None and time.monotonic() >= end:
            return Awaited(resource, None, met=False)
        await asyncio.sleep(LOOK)


def _may_pass(error: Refused) -> bool:
    """Tell whether a refusal is about the API server's state, and not about the call."""
    return error.status == _TOO_MANY or error.status >= _SERVERS_FAULT


def _true(body: Object, resource: Named, kind: ConditionType) -> Condition | None:
    """Return a condition that is True, and that the operator has set since the last change.

    A change is a new generation of the spec, or a new request to act again.
    """
    status = resource.spec.status.read(body.get("status"))
    condition = status.condition(kind)
    if condition is None or condition.status != "True":
        return None
    meta = body["metadata"]
    requested = (meta.get("annotations") or {}).get(REQUESTED_AT, "")[:MOST_TOKEN] or None
    handled = getattr(status, "last_handled_requested_at", requested)
    is_new = condition.observed_generation >= meta.get("generation", 0)
    return condition if is_new and requested in {None, handled} else None


def _message(body: Object, resource: Named, condition: Condition) -> str:
    """Return the sentence about a resource's state."""
    ready = resource.spec.status.read(body.get("status")).condition(ConditionType.READY)
    own = condition.type in {ConditionType.VERIFIED, ConditionType.DRIFTED}
    return condition.message if own or ready is None else ready.message


def _gone(resource: Named) -> InvalidSpec:
    return InvalidSpec(
        f"{resource} was deleted, or changed at this moment, in namespace {resource.namespace!r}",
        field="NAME",
        remedy="Look for it with sluice status, and try again.",
    )
