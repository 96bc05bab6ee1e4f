"""Open Pravega clusters for `stores.connect`."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from sluice.config import Settings
    from sluice.core.values.model import StoreAddress
    from sluice.stores.base import Client, Told
    from sluice.stores.credentials import Credentials
    from sluice.stores.pravega.store import PravegaStore
    from sluice.stores.trust import Trust


class PravegaClient:
    """The client of Pravega."""

    def open(
        self,
        address: StoreAddress,
        settings: Settings,
        credentials: Credentials | None,
        trust: Trust,
        told: Told | None,
    ) -> PravegaStore:
        """Make the store at the address of a controller. InvalidSpec for another URI."""
        store = _store_class()
        return store(
            address.uri,
            credentials=credentials,
            timeouts=settings.timeouts,
            trust=trust,
            told=told,
        )

    def preload(self) -> None:
        """Import the store, and the client of the controller, which is else imported later."""
        _store_class()
        from sluice.stores.pravega.controller import controller  # noqa: F401, PLC0415 - loads it


def _store_class() -> type[PravegaStore]:
    # gRPC's own handling of fork() can crash a child that is about to become another
    # program, such as Spark's JVM. So it is off unless the environment sets it.
    os.environ.setdefault("GRPC_ENABLE_FORK_SUPPORT", "false")
    # It would write a line for each failed handshake, in its library's words. Our errors say why.
    os.environ.setdefault("GRPC_VERBOSITY", "ERROR")
    from sluice.stores.pravega.store import PravegaStore  # noqa: PLC0415 - gRPC reads these first

    return PravegaStore


CLIENT: Final[Client] = PravegaClient()
