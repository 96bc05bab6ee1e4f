"""Look at all resources of the namespaces that a gateway serves, for many viewers at once."""

from __future__ import annotations

import asyncio
import time
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any, Final

from sluice.administration import board
from sluice.administration.description import describe
from sluice.api.registry import KINDS
from sluice.api.status.common import ConditionType
from sluice.console.web import views
from sluice.errors import InvalidSpec
from sluice.kube.api.objects import driver_namespace
from sluice.serving.access import ViewRight
from sluice.serving.queries import QUERY

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Sequence

    from sluice.administration.board import Board
    from sluice.administration.description import Description
    from sluice.administration.following import FollowedResource
    from sluice.administration.naming import Named
    from sluice.kube.api.client import Api
    from sluice.kube.api.kinds import Object

    Json = dict[str, Any]
    Allowed = Callable[[ViewRight], Awaitable[bool]]
    """Tells whether the caller has a right."""

LOOK: Final = 2.0
"""Seconds for which a look counts, for all viewers."""


class Boards:
    """The resources of some namespaces.

    Args:
        api: the API server.
        namespaces: the namespaces; empty for all.
        docs: the address of the documentation's site, for links from reasons; None for no links.

    Attributes:
        namespaces: the namespaces; only None for all.
    """

    def __init__(self, api: Api, namespaces: Sequence[str], docs: str | None = None) -> None:
        self._api = api
        self.namespaces: tuple[str | None, ...] = tuple(namespaces) or (None,)
        self._docs = docs
        self._seen: Sequence[Board] = ()
        self._time = float("-inf")
        self._turn = asyncio.Lock()

    @property
    def alone(self) -> bool:
        """Whether there is only one namespace."""
        return len(self.namespaces) == 1 and None not in self.namespaces

    def check_served(self, namespace: str) -> None:
        """Check that a namespace is served.

        Raises:
            InvalidSpec: it is not.
        """
        if self.namespaces != (None,) and namespace not in self.namespaces:
            raise InvalidSpec(
                f"this gateway does not serve namespace {namespace!r}",
                remedy="Take the gateway of that namespace, or have this one serve it.",
            )

    def link(self, reason: str) -> str | None:
        """Return the address of the page about a reason; None if none is known."""
        if self._docs is None or not reason.isalnum():
            return None
        return f"{self._docs.rstrip('/')}/conditions/{reason.lower()}/"

    @property
    def least(self) -> ViewRight:
        """A right without which a viewer sees nothing."""
        return ViewRight("list", QUERY.plural, self.namespaces[0])

    async def look(self, allowed: Allowed) -> Json | None:
        """Return the resources that the caller may list; None if that are none.

        Args:
            allowed: tells whether the caller has a right.

        Raises:
            ApiUnavailable: see `board.look`.
        """
        listed = {
            (namespace, kind.name)
            for namespace in self.namespaces
            for kind in KINDS
            if await allowed(ViewRight("list", kind.plural, namespace))
        }
        if not listed:
            return None
        found = await self._looks()
        everywhere = None in self.namespaces
        whole = board.Board(
            [
                pair
                for one in found
                for pair in one.resources
                if (
                    None if everywhere else pair[0].resource.namespace,
                    pair[0].resource.spec.name,
                )
                in listed
            ],
            sorted({kind for one in found for kind in one.forbidden}),
            sorted({kind for one in found for kind in one.cut}),
        )
        told = views.board(whole, now=datetime.now(UTC), namespaces=not self.alone)
        for row, pair in zip(told["rows"], whole.resources, strict=True):
            row.update(self._links(*pair))
        return told | {"server": "sluice serve"}

    def _links(self, one: FollowedResource, _: Object) -> Json:
        ready = one.status.condition(ConditionType.READY)
        links: Json = {"documentation": None if ready is None else self.link(ready.reason)}
        if one.resource.spec is QUERY:
            links["page"] = f"/q/{one.resource.namespace}/{one.resource.name}"
        return links

    async def _looks(self) -> Sequence[Board]:
        async with self._turn:
            if time.monotonic() - self._time >= LOOK:
                self._seen = [await board.look(self._api, one) for one in self.namespaces]
                self._time = time.monotonic()
            return self._seen

    async def find(self, uid: str) -> Named:
        """Return the resource of this UID.

        Raises:
            InvalidSpec: it is gone.
            ApiUnavailable: see `board.look`.
        """
        found = self._known(uid)
        if found is None:  # another gateway may have shown it
            await self._looks()
            found = self._known(uid)
        if found is None:
            raise _gone()
        return found

    async def details(self, resource: Named, uid: str, allowed: Allowed) -> Json:
        """Return a resource, and those of its events, Jobs and pods that the caller may see.

        Raises:
            InvalidSpec: it is gone.
            ApiUnavailable: see `description.describe`.
        """
        found = await describe(self._api, resource)
        if found.body["metadata"]["uid"] != uid:  # another one of the same name
            raise _gone()
        if not await allowed(ViewRight("list", "events", resource.namespace, group="")):
            found.events = []
        # Those of copies from a shared store are in another namespace.
        if found.attempts and not await self._sees_jobs(found, allowed):
            found.attempts = []
        found.forbidden = []  # of the gateway's rights, which are not the caller's
        return views.details(found, now=datetime.now(UTC))

    async def _sees_jobs(self, found: Description, allowed: Allowed) -> bool:
        host = driver_namespace(found.body) or found.resource.namespace
        jobs = ViewRight("list", "jobs", host, group="batch")
        return await allowed(jobs) and await allowed(ViewRight("list", "pods", host, group=""))

    def _known(self, uid: str) -> Named | None:
        return next(
            (
                one.resource
                for seen in self._seen
                for one, body in seen.resources
                if body["metadata"]["uid"] == uid
            ),
            None,
        )


def _gone() -> InvalidSpec:
    return InvalidSpec("this resource was deleted", remedy="Close its details.")
