"""Connections to the stores that StreamStores name.

A connection is kept while anybody uses it, also when its StreamStore or Secret is gone: what is
staged has to be dropped even then. One that nobody has asked for in a while is closed: a
StreamStore needs it every minute, and so does a copy that is being deleted.
"""

from __future__ import annotations

import asyncio
import base64
import binascii
import hashlib
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

import structlog

from sluice.errors import SecretNotFound
from sluice.kube.kinds import SECRET
from sluice.stores.connect import connect
from sluice.stores.credentials import Credentials

if TYPE_CHECKING:
    from sluice.config import Settings
    from sluice.core.model import StoreAddress
    from sluice.kube.client import Api
    from sluice.kube.kinds import Object
    from sluice.stores.base import Store, Told


_log = structlog.get_logger()

IDLE_SECONDS: Final = 600.0
"""For which a connection is kept that nobody asks for."""


@dataclass(slots=True)
class _Open:
    """An open connection, what it was opened with, and when somebody last asked for it."""

    fingerprint: str
    store: Store
    used: float


class Connections:
    """The stores, by namespace and address.

    Args:
        api: where Secrets are read.
        settings: deadlines.
        idle: seconds for which a connection is kept that nobody asks for.
        told: of each call to a store's catalog.
    """

    def __init__(
        self,
        api: Api,
        settings: Settings,
        *,
        idle: float = IDLE_SECONDS,
        told: Told | None = None,
    ) -> None:
        self._api = api
        self._idle = idle
        self._settings = settings
        self._told = told
        self._open: dict[tuple[str, StoreAddress], _Open] = {}

    async def get(self, namespace: str, address: StoreAddress, *, strict: bool = False) -> Store:
        """The store at an address, with the credentials that its Secret holds now.

        Args:
            namespace: whose store it is.
            address: where the store is.
            strict: whether the Secret has to be there; else, where it is gone, the connection that
                was opened with it before is given.

        Raises:
            SecretNotFound: there is no such Secret or it lacks a key, and no connection is open.
            ApiUnavailable: the Secret could not be read.
        """
        key = (namespace, address)
        secret = None
        if address.secret is not None:
            secret = await self._api.get(SECRET, namespace, address.secret)
        # From here on nothing is awaited, or two callers would each open a connection.
        kept = self._open.get(key)
        now = asyncio.get_running_loop().time()
        if kept is not None:
            kept.used = now
        credentials, fingerprint = None, ""
        if address.secret is not None:
            try:
                credentials = _credentials(address.secret, secret)
            except SecretNotFound:
                if kept is not None and not strict:
                    return kept.store
                raise
            fingerprint = _fingerprint(credentials)
        if kept is not None and kept.fingerprint == fingerprint:
            return kept.store
        if kept is not None:
            kept.store.close()
        store = connect(address, self._settings, credentials=credentials, told=self._told)
        self._open[key] = _Open(fingerprint, store, now)
        if kept is None:
            self._look_again(key, self._idle)
        return store

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
        kept.store.close()
        _log.info("connection closed", namespace=key[0], address=key[1].uri)

    def close(self) -> None:
        """Close every connection."""
        for kept in self._open.values():
            kept.store.close()
        self._open.clear()


def _credentials(name: str, secret: Object | None) -> Credentials:
    """A Secret's user and password."""
    field = "spec.pravega.auth.basic.secretRef.name"
    if secret is None:
        raise SecretNotFound(f"there is no Secret {name!r}", field=field)
    data = secret.get("data") or {}
    values = []
    for key in ("username", "password"):
        try:
            value = base64.b64decode(data[key], validate=True).decode().rstrip("\r\n")
        except (KeyError, binascii.Error, UnicodeDecodeError):
            value = ""
        if not value:
            raise SecretNotFound(f"the Secret {name!r} has no key {key!r}", field=field)
        values.append(value)
    return Credentials(*values)


def _fingerprint(credentials: Credentials) -> str:
    """Tells whether credentials are those of before, without keeping them."""
    text = f"{len(credentials.username)}:{credentials.username}{credentials.password}"
    return hashlib.sha256(text.encode()).hexdigest()
