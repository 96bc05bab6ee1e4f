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
from sluice.serving.access import ViewRight
from sluice.serving.queries import QUERY

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Sequence

    from sluice.administration.board import Board
    from sluice.administration.following import Followed
    from sluice.administration.naming import Named
    from sluice.kube.api.client import Api
    from sluice.kube.api.kinds import Object

    Json = dict[str, Any]
    Allowed = Callable[[ViewRight], Awaitable[None]]
    """Raises if the caller lacks a right."""

LOOK: Final = 2.0
"""Seconds for which a look counts, for all viewers."""


class Boards:
    """The resources of some namespaces.

    Args:
        api: the API server.
        namespaces: the namespaces; empty for all.
        docs: the address of the documentation's site, for links from reasons; None for no links.
    """

    def __init__(self, api: Api, namespaces: Sequence[str], docs: str | None = None) -> None:
        self._api = api
        self._namespaces: tuple[str | None, ...] = tuple(namespaces) or (None,)
        self._docs = docs
        self._seen: Sequence[Board] = ()
        self._time = float("-inf")
        self._turn = asyncio.Lock()

    def check_served(self, namespace: str) -> None:
        """Check that a namespace is served.

        Raises:
            InvalidSpec: it is not.
        """
        if self._namespaces != (None,) and namespace not in self._namespaces:
            raise InvalidSpec(
                f"this gateway does not serve namespace {namespace!r}",
                remedy="Take the gateway of that namespace, or have this one serve it.",
            )

    def link(self, reason: str) -> str | None:
        """Return the address of the page about a reason; None if none is known."""
        if self._docs is None or not reason.isalnum():
            return None
        return f"{self._docs.rstrip('/')}/conditions/{reason.lower()}/"

    async def look(self, allowed: Allowed) -> Json:
        """Return all resources.

        Args:
            allowed: checks that the caller may list a kind.

        Raises:
            ApiUnavailable: see `board.look`.
        """
        for namespace in self._namespaces:
            for kind in KINDS:
                await allowed(ViewRight("list", kind.plural, namespace))
        found = [*await self._looks()]
        whole = board.Board(
            [pair for one in found for pair in one.resources],
            sorted({kind for one in found for kind in one.forbidden}),
            sorted({kind for one in found for kind in one.cut}),
        )
        one = self._namespaces[0] is not None and len(self._namespaces) == 1
        told = views.board(whole, now=datetime.now(UTC), namespaces=not one)
        for row, pair in zip(told["rows"], whole.resources, strict=True):
            row.update(self._links(*pair))
        return told | {"server": "sluice serve"}

    def _links(self, one: Followed, _: Object) -> Json:
        ready = one.status.condition(ConditionType.READY)
        links: Json = {"documentation": None if ready is None else self.link(ready.reason)}
        if one.resource.spec is QUERY:
            links["page"] = f"/q/{one.resource.namespace}/{one.resource.name}"
        return links

    async def _looks(self) -> Sequence[Board]:
        async with self._turn:
            if time.monotonic() - self._time >= LOOK:
                self._seen = [await board.look(self._api, one) for one in self._namespaces]
                self._time = time.monotonic()
            return self._seen

    async def details(self, uid: str, allowed: Allowed) -> Json:
        """Return a resource that a look has found, by its UID.

        Raises:
            InvalidSpec: it is gone.
            ApiUnavailable: see `description.describe`.
        """
        resource = self._known(uid)
        if resource is not None:
            await allowed(ViewRight("get", resource.spec.plural, resource.namespace))
            found = await describe(self._api, resource)
            if found.body["metadata"]["uid"] == uid:  # and not another one of the same name
                return views.details(found, now=datetime.now(UTC))
        raise InvalidSpec("this resource was deleted", remedy="Close its details.")

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
