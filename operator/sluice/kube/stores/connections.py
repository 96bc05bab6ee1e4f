"""Open and keep connections to the stores that StreamStores name.

A connection in use is kept even when its StreamStore or Secret is gone: staged data has to be
deleted even then. An idle connection is closed after a while. StreamStores and copies that are
being deleted use theirs every minute.
"""

from __future__ import annotations

import asyncio
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final, NoReturn

import structlog

from sluice.api.fields.backends import BUCKET_KEYS, Holds, either
from sluice.archive.runs.archive_root import ArchiveRoot
from sluice.core.archive.documents import MOST_SHORT
from sluice.engine.access.connect import archives
from sluice.errors import AccessDenied, ClaimNotFound, InvalidSpec, SecretNotFound
from sluice.kube.api.kinds import CLAIM
from sluice.kube.stores.keys import Keys, read_keys
from sluice.stores.connect import connect
from sluice.stores.trust import Trust

if TYPE_CHECKING:
    from collections.abc import Callable

    from sluice.config import Settings
    from sluice.core.values.model import StoreAddress
    from sluice.engine.access.source_runs import Place
    from sluice.kube.api.client import Api
    from sluice.stores.base import Store, Told

_log = structlog.get_logger()

IDLE_SECONDS: Final = 600.0
"""Seconds after which an unused connection is closed."""


@dataclass(slots=True)
class _OpenConnection:
    """An open connection, the fingerprint of its keys, and the loop's time of its last use."""

    fingerprint: str
    place: Place
    used: float

    def close(self) -> None:
        """Close the connection. Places for archives keep nothing open."""
        if not isinstance(self.place, ArchiveRoot):
            self.place.close()


class Connections:
    """The connections to stores, by namespace and address.

    Args:
        api: the API server, to read Secrets.
        settings: the settings of this process, with deadlines.
        idle: seconds after which an unused connection is closed.
        ambient: whether a bucket without a Secret is opened with the operator's own identity. This
            then holds for StreamStores of every namespace.
        allowed: callback that tells whether a store at this server may be opened.
        labelled: whether Secrets need the label that allows StreamStores to use them.
        told: callback `(method, seconds)` for each call to a store's controller.
    """

    def __init__(
        self,
        api: Api,
        settings: Settings,
        *,
        idle: float = IDLE_SECONDS,
        ambient: bool = False,
        allowed: Callable[[str], bool] = lambda _: True,
        labelled: bool = False,
        told: Told | None = None,
    ) -> None:
        self._ambient = ambient
        self._allowed = allowed
        self._labelled = labelled
        self._api = api
        self._idle = idle
        self._settings = settings
        self._told = told
        self._open: dict[tuple[str, StoreAddress], _OpenConnection] = {}

    async def get(self, namespace: str, address: StoreAddress, *, strict: bool = False) -> Store:
        """Return the live store at an address. Arguments and errors are those of `place`.

        Raises:
            InvalidSpec: the address is a place for archives.
        """
        found = await self.place(namespace, address, strict=strict)
        if isinstance(found, ArchiveRoot):
            raise InvalidSpec(
                f"{address.uri} is a store of archives, and holds no live streams",
                remedy=f"Name a StreamStore of kind {either(Holds.LIVE)}.",
            )
        return found

    async def place(self, namespace: str, address: StoreAddress, *, strict: bool = False) -> Place:
        """Return the store or the place for archives at an address, opened with current keys.

        Args:
            namespace: the StreamStore's namespace.
            address: the store's address.
            strict: whether to fail if the Secret is gone. Otherwise a connection that was opened
                earlier is returned.

        Raises:
            AccessDenied: the administrator allows no store at this address, or a Secret is not for
                StreamStores.
            SecretNotFound: the Secret does not exist or lacks a key, and no open connection may be
                used.
            InvalidSpec: a bucket names no Secret, and the operator's own identity may not be used.
            ApiUnavailable: the Secret could not be read.
        """
        self._check(address)
        key = (namespace, address)
        lost, keys = None, Keys()
        try:
            keys = await read_keys(self._api, namespace, address, labelled=self._labelled)
        except SecretNotFound as error:
            lost = error
        # From here on nothing is awaited. Otherwise two callers could each open a connection.
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
        self._open[key] = _OpenConnection(keys.fingerprint, place, now)
        if kept is None:
            self._look_again(key, self._idle)
        return place

    async def check_claim(self, namespace: str, address: StoreAddress) -> None:
        """Check that a volume's PersistentVolumeClaim exists. Only pods can look into the volume.

        Raises:
            ClaimNotFound: the claim does not exist, or its volume is lost.
            ApiUnavailable: the API server could not be asked.
        """
        name, field = address.claim or "", address.kind.claim_field
        body = await self._api.get(CLAIM, namespace, name)
        if body is None:
            raise ClaimNotFound(f"there is no PersistentVolumeClaim {name!r}", field=field)
        if (body.get("status") or {}).get("phase") == "Lost":
            raise ClaimNotFound(
                f"the volume of PersistentVolumeClaim {name!r} is lost", field=field
            )

    def _check(self, address: StoreAddress) -> None:
        if address.server is not None and not self._allowed(address.server):
            raise AccessDenied(
                f"the administrator allows no store at {address.server}",
                field=address.kind.server_field,
                remedy="Name a server that the Helm value stores.allowed has, or have it extended.",
            )

    def _connect(self, address: StoreAddress, keys: Keys) -> Place:
        if address.kind.holds is Holds.LIVE:
            return connect(
                address,
                self._settings,
                credentials=keys.credentials,
                trust=Trust(ca=keys.ca, server_name=address.server_name, client=keys.client),
                told=self._told,
            )
        if address.kind.mounted:
            return ArchiveRoot(address.uri, unseen)
        if keys.s3 is None and not self._ambient:
            raise InvalidSpec(
                f"{address.uri} names no Secret, and the operator opens no bucket as itself",
                field=(address.kind.secret_field or "").removesuffix(".name"),
                remedy=f"Name a Secret with the keys {' and '.join(BUCKET_KEYS)}; or let the "
                "administrator set operator.ambientIdentity in the Helm values.",
            )
        return archives(address, self._settings, keys=keys.s3, ca=keys.ca, most=MOST_SHORT)

    def _look_again(self, key: tuple[str, StoreAddress], seconds: float) -> None:
        """Schedule the next check whether a connection is idle, in so many seconds."""
        asyncio.get_running_loop().call_later(seconds, self._close_if_idle, key)

    def _close_if_idle(self, key: tuple[str, StoreAddress]) -> None:
        """Close a connection if it is idle. Otherwise schedule the next check."""
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
    """Refuse to look into a volume, which the operator does not mount.

    Raises:
        InvalidSpec: always.
    """
    raise InvalidSpec(
        f"{path or 'it'} is in a volume, and only pods that mount that can look into it"
    )
