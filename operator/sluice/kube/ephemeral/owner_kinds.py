"""Find the resources of a kind that a spec names, by discovery at the API server.

Results are remembered.
"""

from __future__ import annotations

import asyncio
import time
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Final

from sluice.core.reconcile.shared.verdict import Backoff
from sluice.errors import InvalidSpec, OwnerKindNotFound
from sluice.kube.api.kinds import Kind

if TYPE_CHECKING:
    from collections.abc import Callable

    from sluice.kube.api.client import Api
    from sluice.kube.api.kinds import Object

UNKNOWN: Final = Backoff(1, 30)
"""Waits until an apiVersion's kinds are read again, by reads in a row that lacked the kind."""


@dataclass(slots=True)
class _Version:
    """An apiVersion as it was last read."""

    kinds: dict[str, Kind | None] = field(default_factory=dict)
    """By name; None for a kind that is not namespaced."""
    misses: int = 0
    again: float = 0.0
    lock: asyncio.Lock = field(default_factory=asyncio.Lock)


class OwnerKinds:
    """Kinds that the cluster serves.

    Args:
        api: the API server.
        clock: gives seconds since a fixed moment.
    """

    def __init__(self, api: Api, clock: Callable[[], float] = time.monotonic) -> None:
        self._api = api
        self._clock = clock
        self._versions: dict[str, _Version] = {}

    async def find(self, api_version: str, kind: str) -> Kind:
        """Find a kind. A known kind is not asked for again; a missing kind now and then.

        Raises:
            OwnerKindNotFound: the cluster does not serve it, or not yet.
            InvalidSpec: its objects are in no namespace.
            ApiUnavailable: the API server does not answer.
        """
        known = self._versions.setdefault(api_version, _Version())
        async with known.lock:
            if kind not in known.kinds and self._clock() >= known.again:
                known.kinds = _kinds(api_version, await self._api.resources(api_version))
                known.misses = 0 if kind in known.kinds else known.misses + 1
                known.again = self._clock() + (UNKNOWN.after(known.misses) if known.misses else 0)
        if kind not in known.kinds:
            raise OwnerKindNotFound(
                f"the cluster knows no {kind} of {api_version}", field="spec.owners"
            )
        found = known.kinds[kind]
        if found is None:
            raise InvalidSpec(
                f"a {kind} is in no namespace, and owners have to be in one", field="spec.owners"
            )
        return found

    def forget(self, kind: Kind) -> None:
        """Forget a kind that the API server does not serve any more, to ask for it anew."""
        known = self._versions.get(kind.api_version)
        if known is not None and known.kinds.get(kind.name) == kind:
            del known.kinds[kind.name]


def _kinds(api_version: str, resources: list[Object]) -> dict[str, Kind | None]:
    """List the kinds of an apiVersion, without those of subresources."""
    group, slash, version = api_version.rpartition("/")
    return {
        one["kind"]: Kind(group if slash else "", version, one["name"], one["kind"])
        if one.get("namespaced")
        else None
        for one in resources
        if "/" not in one["name"]
    }
