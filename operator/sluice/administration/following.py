"""Look at many resources again and again, until all of them are at rest."""

from __future__ import annotations

import asyncio
import time
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Final

from sluice.administration.resources import Awaited, ended, holds, may_pass
from sluice.administration.tables import bodies
from sluice.api.status.common import ConditionType
from sluice.errors import ApiUnavailable
from sluice.kube.api.responses import Refused

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Sequence

    from sluice.administration.naming import Named, WantedResources
    from sluice.api.status.common import ResourceStatus
    from sluice.kube.api.client import Api
    from sluice.kube.api.kinds import Object

LOOK: Final = 2.0
"""Seconds between two looks."""


@dataclass(frozen=True, slots=True)
class FollowedResource:
    """A resource that is followed.

    Attributes:
        resource: the resource.
        status: its status at the last look.
        end: how its work ended; None while it goes on.
        suspended: whether it is suspended.
        gone: whether it was deleted before its work ended.
    """

    resource: Named
    status: ResourceStatus
    end: Awaited | None
    suspended: bool = False
    gone: bool = False

    @property
    def rests(self) -> bool:
        """Whether nothing happens to it until a person acts."""
        return self.end is not None or self.suspended or self.gone


async def follow(
    api: Api,
    wanted: Sequence[WantedResources],
    namespace: str | None,
    *,
    labels: str | None = None,
    seconds: float | None = None,
) -> AsyncIterator[list[FollowedResource]]:
    """Give resources again and again, until all of them rest, or the time is over.

    New resources that are wanted too join. Deleted ones stay, as they were last.

    Args:
        api: the API server.
        wanted: the resources.
        namespace: the namespace; None for all.
        labels: a label selector, for resources without a name.
        seconds: the longest time; None for no limit.

    Raises:
        InvalidSpec: a named resource does not exist at the beginning.
        ApiUnavailable: the API server cannot be asked at the beginning, or refuses.
    """
    end = None if seconds is None else time.monotonic() + seconds
    known: dict[tuple[str, str, str], FollowedResource] = {}
    first = True
    while True:
        try:
            pairs = await bodies(api, wanted, namespace, labels=labels, strict=first)
        except ApiUnavailable as error:  # an API server that starts anew does not end a watch
            if first or (isinstance(error, Refused) and not may_pass(error)):
                raise
        else:
            first = False
            known = _merged(known, pairs)
        yield [*known.values()]
        over = end is not None and time.monotonic() >= end
        if over or all(one.rests for one in known.values()):
            return
        await asyncio.sleep(LOOK)


def _merged(
    known: dict[tuple[str, str, str], FollowedResource], pairs: Sequence[tuple[Named, Object]]
) -> dict[tuple[str, str, str], FollowedResource]:
    """Return the resources after a look; those that it did not find are gone, or had ended."""
    seen = {_key(resource): followed(resource, body) for resource, body in pairs}
    merged = {
        key: one if one.end is not None else replace(one, gone=True) for key, one in known.items()
    }
    return merged | seen


def _key(resource: Named) -> tuple[str, str, str]:
    return resource.namespace, resource.spec.name, resource.name


def followed(resource: Named, body: Object) -> FollowedResource:
    """Return a resource as it is now."""
    return FollowedResource(
        resource,
        resource.spec.status.read(body.get("status")),
        ended(body, resource, ConditionType.READY),
        suspended=holds(body, resource, ConditionType.SUSPENDED) is not None,
    )
