"""Make the `Store` object of a live store from its address."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING, Final

from sluice.errors import InvalidSpec
from sluice.stores.credentials import Credentials
from sluice.stores.trust import Trust

if TYPE_CHECKING:
    from collections.abc import Callable

    from sluice.api.fields.backends import BackendName
    from sluice.config import Settings
    from sluice.core.values.model import StoreAddress
    from sluice.stores.base import Store, Told
    from sluice.stores.pravega.store import PravegaStore


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
    opened = _OPENERS.get(address.backend)
    if opened is None:
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
    return opened(address, settings, credentials, trust, told)


def preload() -> None:
    """Import the clients of live stores, for a process that is forked before it uses them."""
    _import_pravega()
    from sluice.stores.pravega.controller import controller  # noqa: F401, PLC0415 - loads it


def _pravega(
    address: StoreAddress,
    settings: Settings,
    credentials: Credentials | None,
    trust: Trust,
    told: Told | None,
) -> Store:
    store = _import_pravega()
    return store(
        address.uri,
        credentials=credentials,
        timeouts=settings.timeouts,
        trust=trust,
        told=told,
    )


def _import_pravega() -> type[PravegaStore]:
    # gRPC's own handling of fork() can crash a child that is about to become another
    # program, such as Spark's JVM. So it is off unless the environment sets it.
    os.environ.setdefault("GRPC_ENABLE_FORK_SUPPORT", "false")
    # It would write a line for each failed handshake, in its library's words. Our errors say why.
    os.environ.setdefault("GRPC_VERBOSITY", "ERROR")
    # Imported here so that a process pays for, and knows, only the backends it uses.
    from sluice.stores.pravega.store import PravegaStore  # noqa: PLC0415

    return PravegaStore


_OPENERS: Final[dict[BackendName, Callable[..., Store]]] = {"pravega": _pravega}
"""The function that opens each kind of store of live streams."""
