"""Make the `Store` object of a live store from its address."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from sluice.errors import InvalidSpec
from sluice.stores.credentials import Credentials
from sluice.stores.trust import Trust

if TYPE_CHECKING:
    from collections.abc import Callable

    from sluice.api.fields.backends import BackendName
    from sluice.config import Settings
    from sluice.core.values.model import StoreAddress
    from sluice.stores.base import Client, Store, Told


def connect(
    address: StoreAddress,
    settings: Settings,
    *,
    credentials: Credentials | None = None,
    trust: Trust | None = None,
    told: Told | None = None,
) -> Store:
    """Make the store at an address. No connection is opened before the first call needs one.

    Args:
        address: the store's address.
        settings: deadlines, and the folder of credentials.
        credentials: user and password; None to read them from the Secret that the address names.
        trust: certificates; None to read the files that the address names.
        told: callback `(method, seconds)`, called in the client's own thread after each call to
            the server of the store's catalog.

    Raises:
        InvalidSpec: the URI does not fit this kind of store, or the store holds archives.
            Or its certificates are none.
        AuthenticationFailed: the address names a Secret, or a bundle, whose files are not there.
    """
    client = _CLIENTS.get(address.backend)
    if client is None:
        raise InvalidSpec(
            f"{address.uri} holds archives, and is no store of live streams",
            remedy="Name an archive in it, or another StreamStore.",
        )
    if credentials is None and address.secret:
        credentials = Credentials.read(address.secret, settings.credentials_dir)
    if trust is None:
        trust = Trust.read(
            address.ca,
            settings.credentials_dir,
            client=address.client_certificate,
            server_name=address.server_name,
        )
    return client().open(address, settings, credentials, trust, told)


def preload() -> None:
    """Import the clients of live stores, for a process that is forked before it uses them."""
    for client in _CLIENTS.values():
        client().preload()


def _pravega() -> Client:
    # Imported here so that a process pays for, and knows, only the clients that it uses.
    from sluice.stores.pravega.client import CLIENT  # noqa: PLC0415

    return CLIENT


_CLIENTS: Final[dict[BackendName, Callable[[], Client]]] = {"pravega": _pravega}
"""The client of each kind of store of live streams, imported by the call."""
