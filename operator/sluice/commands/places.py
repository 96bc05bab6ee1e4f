"""Archives and streams as people name them on the command line."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

from sluice.core.values.model import StoreAddress, StreamName
from sluice.core.workloads.request import store_address
from sluice.errors import InvalidSpec

if TYPE_CHECKING:
    from sluice.api.load import Resources
    from sluice.archive.runs.archive import Archive
    from sluice.pipelines.programs.program import Stores


class ArchivePlace(NamedTuple):
    """Where an archive is, or are several.

    Attributes:
        address: of the store.
        path: below it; empty for all of it.
    """

    address: StoreAddress
    path: str

    @property
    def name(self) -> str:
        """The place, for people."""
        return f"{self.address.uri}/{self.path}" if self.path else self.address.uri

    def archive(self, stores: Stores) -> Archive:
        """The archive there, if it is one."""
        return stores.shelf(self.address).archive(self.path, field="PLACE")


def archive_place(text: str, resources: Resources | None) -> ArchivePlace:
    """The place that somebody wrote: a directory's path, or STORE/PATH.

    Args:
        text: as written. What begins with `.` or `/` is a directory.
        resources: of the file with the StreamStores; without one every place is a directory.

    Raises:
        InvalidSpec: there is no such StreamStore.
    """
    if resources is None or text.startswith((".", "/")):
        directory = Path(text).absolute()
        return ArchivePlace(StoreAddress(backend="volume", uri=directory.as_uri()), "")
    store, _, path = text.partition("/")
    return ArchivePlace(address_of(store, resources, field="PLACE"), path.strip("/"))


def stream_of(text: str, *, field: str) -> tuple[str, StreamName]:
    """The store and the stream of a name like `main:shop/orders`, or `namespace/main:shop/orders`.

    Raises:
        InvalidSpec: it is none.
    """
    store, _, stream = text.partition(":")
    scope, _, name = stream.partition("/")
    if not store or not scope or not name or "/" in name:
        raise InvalidSpec(
            f"{text!r} is no stream",
            field=field,
            remedy="Write STORE:SCOPE/STREAM, with the name of a StreamStore in the file.",
        )
    return store, StreamName(scope=scope, stream=name)


def address_of(name: str, resources: Resources, *, field: str) -> StoreAddress:
    """The address of a StreamStore, whose namespace may be left out where that is clear.

    Raises:
        InvalidSpec: there is none, or more than one.
    """
    namespace, _, bare = name.rpartition("/")
    found = [
        store
        for (there, known), store in resources.stores.items()
        if known == bare and namespace in {"", there}
    ]
    if len(found) != 1:
        raise InvalidSpec(
            f"there are {len(found)} StreamStores {name!r} in the file",
            field=field,
            remedy="Name one that is there; with two of a name, as NAMESPACE/NAME.",
        )
    return store_address(found[0])
