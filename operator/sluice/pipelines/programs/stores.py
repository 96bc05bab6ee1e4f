"""Open the stores of a process."""

from __future__ import annotations

from typing import TYPE_CHECKING, Self

from sluice.api.fields.backends import Holds
from sluice.engine.access.connect import archives, open_source
from sluice.stores.connect import connect

if TYPE_CHECKING:
    from sluice.archive.runs.archive_root import ArchiveRoot
    from sluice.config import Settings
    from sluice.core.values.model import StoreAddress
    from sluice.engine.access.source_runs import Place
    from sluice.stores.base import Source, Store


class Stores:
    """The stores of this process, with one connection each. The end of the block closes them."""

    def __init__(self, settings: Settings) -> None:
        self._settings = settings
        self._open: dict[StoreAddress, Store] = {}
        self._runs: dict[StoreAddress, Source] = {}
        self._roots: dict[StoreAddress, ArchiveRoot] = {}

    def __enter__(self) -> Self:
        """Enter the block. Each store is opened when it is first used."""
        return self

    def __exit__(self, *_: object) -> None:
        """Close the stores that were opened."""
        for store in self._open.values():
            store.close()

    def __getitem__(self, address: StoreAddress) -> Store:
        """Return the live store at an address."""
        if address not in self._open:
            self._open[address] = connect(address, self._settings)
        return self._open[address]

    def source(self, address: StoreAddress) -> Source:
        """Return the store to read from at an address: a live store, or a run of an archive."""
        if address.archive is None:
            return self[address]
        if address not in self._runs:
            self._runs[address] = open_source(address, self._settings)
        return self._runs[address]

    def root(self, address: StoreAddress) -> ArchiveRoot:
        """Return the place for archives at an address."""
        if address not in self._roots:
            self._roots[address] = archives(address, self._settings)
        return self._roots[address]

    def place(self, address: StoreAddress) -> Place:
        """Return the place at a StreamStore's address: a live store, or a place for archives."""
        return self.root(address) if address.kind.holds is Holds.ARCHIVES else self[address]
