"""Connections to the stores that StreamStores name.

A connection is kept while anybody uses it, also when its StreamStore or Secret is gone: what is
staged has to be dropped even then. One that nobody has asked for in a while is closed: a
StreamStore needs it every minute, and so does a copy that is being deleted.
"""

from __future__ import annotations

import asyncio
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final, NoReturn

import structlog

from sluice.api.fields.backends import Holds, named
from sluice.archive.runs.shelf import Shelf
from sluice.core.archive.documents import MOST_SHORT
from sluice.engine.access.connect import archives
from sluice.errors import ClaimNotFound, InvalidSpec, SecretNotFound
from sluice.kube.api.kinds import CLAIM
from sluice.kube.stores.keys import Keys, read_keys
from sluice.stores.connect import connect

if TYPE_CHECKING:
    from sluice.config import Settings
    from sluice.core.values.model import StoreAddress
    from sluice.engine.access.source_runs import Place
    from sluice.kube.api.client import Api
    from sluice.stores.base import Store, Told

_log = structlog.get_logger()

IDLE_SECONDS: Final = 600.0
"""For which a connection is kept that nobody asks for."""


@dataclass(slots=True)
class _Open:
    """An open connection, what it was opened with, and when somebody last asked for it."""

    fingerprint: str
    place: Place
    used: float

    def close(self) -> None:
        """Close it. Places for archives hold nothing open."""
        if not isinstance(self.place, Shelf):
            self.place.close()


class Connections:
    """The stores, by namespace and address.

    Args:
        api: where Secrets are read.
        settings: deadlines.
        idle: seconds for which a connection is kept that nobody asks for.
        ambient: whether a bucket without a Secret is opened with what the environment of this
            process offers, whoever names it.
        told: of each call to a store's catalog.
    """

    def __init__(
        self,
        api: Api,
        settings: Settings,
        *,
        idle: float = IDLE_SECONDS,
        ambient: bool = False,
        told: Told | None = None,
    ) -> None:
        self._ambient = ambient
        self._api = api
        self._idle = idle
        self._settings = settings
        self._told = told
        self._open: dict[tuple[str, StoreAddress], _Open] = {}

    async def get(self, namespace: str, address: StoreAddress, *, strict: bool = False) -> Store:
        """The live store at an address; arguments and errors as those of `place`.

        Raises:
            InvalidSpec: archives are there.
        """
        found = await self.place(namespace, address, strict=strict)
        if isinstance(found, Shelf):
            raise InvalidSpec(
                f"{address.uri} is a store of archives, and holds no live streams",
                remedy=f"Name a StreamStore of kind {' or '.join(named(Holds.LIVE))}.",
            )
        return found

    async def place(self, namespace: str, address: StoreAddress, *, strict: bool = False) -> Place:
        """What is at an address, with the credentials that its Secret holds now.

        Args:
            namespace: whose store it is.
            address: where the store is.
            strict: whether the Secret has to be there; else, where it is gone, the connection that
                was opened with it before is given.

        Raises:
            SecretNotFound: there is no such Secret or it lacks a key, and no connection is open.
            InvalidSpec: a bucket names no Secret, and our own identity is for none.
            ApiUnavailable: the Secret could not be read.
        """
        key = (namespace, address)
        lost, keys = None, Keys()
        try:
            keys = await read_keys(self._api, namespace, address)
        except SecretNotFound as error:
            lost = error
        # From here on nothing is awaited, or two callers would each open a connection.
        kept = self._open.get(key)
        now = asyncio.get_running_loop().time()
        if kept is not None:
            kept.used = now
        if lost is not None:
            if kept is not None and not strict:
                return kept.place
            raise lost
        if kept is not None and kept.fingerprint == keys.fingerprint:
            return kept.place
        if kept is not None:
            kept.close()
        place = self._connect(address, keys)
        self._open[key] = _Open(keys.fingerprint, place, now)
        if kept is None:
            self._look_again(key, self._idle)
        return place

    async def check_claim(self, namespace: str, address: StoreAddress) -> None:
        """Check that there is the claim of a volume, into which only pods can look that mount it.

        Raises:
            ClaimNotFound: there is none, or its volume is lost.
            ApiUnavailable: the API server could not be asked.
        """
        name = address.claim or ""
        body = await self._api.get(CLAIM, namespace, name)
        if body is None:
            raise ClaimNotFound(
                f"there is no PersistentVolumeClaim {name!r}", field="spec.volume.claimName"
            )
        if (body.get("status") or {}).get("phase") == "Lost":
            raise ClaimNotFound(
                f"the volume of PersistentVolumeClaim {name!r} is lost",
                field="spec.volume.claimName",
            )

    def _connect(self, address: StoreAddress, keys: Keys) -> Place:
        if address.kind.holds is Holds.LIVE:
            return connect(address, self._settings, credentials=keys.credentials, told=self._told)
        if address.kind.mounted:
            return Shelf(address.uri, unseen)
        if keys.s3 is None and not self._ambient:
            raise InvalidSpec(
                f"{address.uri} names no Secret, and the operator opens no bucket as itself",
                field="spec.s3.credentialsSecretRef",
                remedy="Name a Secret with the keys accessKeyId and secretAccessKey; or let the "
                "administrator set operator.ambientIdentity in the Helm values.",
            )
        return archives(address, self._settings, keys=keys.s3, ca=keys.ca, most=MOST_SHORT)

    def _look_again(self, key: tuple[str, StoreAddress], seconds: float) -> None:
        """Have a connection looked at in a while."""
        asyncio.get_running_loop().call_later(seconds, self._close_if_idle, key)

    def _close_if_idle(self, key: tuple[str, StoreAddress]) -> None:
        """Close a connection that nobody has asked for lately."""
        kept = self._open.get(key)
        if kept is None:
            return
        left = kept.used + self._idle - asyncio.get_running_loop().time()
        if left > 0:
            self._look_again(key, left)
            return
        del self._open[key]
        kept.close()
        _log.info("connection closed", namespace=key[0], address=key[1].uri)

    def close(self) -> None:
        """Close every connection."""
        for kept in self._open.values():
            kept.close()
        self._open.clear()


def unseen(path: str) -> NoReturn:
    """Refuse to look into a volume."""
    raise InvalidSpec(
        f"{path or 'it'} is in a volume, and only pods that mount that can look into it"
    )
