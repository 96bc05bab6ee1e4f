"""Read the names of archives and streams on the command line."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Final, NamedTuple
from urllib.parse import unquote, urlsplit

import click

from sluice.api.fields.backends import Holds, holding, kind_of
from sluice.api.fields.common import NO_NEW_NAME, is_new_name
from sluice.commands.copying import read
from sluice.core.values.archive_layout import stream_at
from sluice.core.values.model import StoreAddress, StreamName
from sluice.core.workloads.request import store_address
from sluice.errors import InvalidSpec

if TYPE_CHECKING:
    from sluice.api.load import Resources
    from sluice.archive.runs.archive import Archive
    from sluice.pipelines.programs.stores import Stores

STORES_FILE = click.option(
    "-f",
    "--filename",
    "file",
    type=click.Path(dir_okay=False, allow_dash=True),
    help="YAML with StreamStores; - reads standard input. Without it PLACE is a directory.",
)

_FILE: Final = "file:"


_NO_STREAM: Final = f"{NO_NEW_NAME[0].upper()}{NO_NEW_NAME[1:]}."


class ArchivePlace(NamedTuple):
    """The place of an archive, or of a folder of archives.

    Attributes:
        address: the store's address.
        path: the path in the store; empty for all of it.
    """

    address: StoreAddress
    path: str

    @property
    def name(self) -> str:
        """The place, for messages."""
        return f"{self.address.uri}/{self.path}" if self.path else self.address.uri

    def archive(self, stores: Stores) -> Archive:
        """Open the place as an archive."""
        return stores.root(self.address).archive(self.path, field="PLACE")

    @property
    def folder(self) -> ArchivePlace | None:
        """The folder that the archive lies in. None if all of a StreamStore is one archive."""
        if self.path:
            return self._replace(path=self.path.rpartition("/")[0])
        if not self.address.uri.startswith(_FILE):
            return None
        return _directory(self._real.parent)

    @property
    def stream(self) -> str:
        """The name of the stream whose archive it is, by its path."""
        return stream_at(self.path or self._real.name)

    @property
    def _real(self) -> Path:
        """The directory, without links: records lie beside the archive itself."""
        return Path(unquote(urlsplit(self.address.uri).path)).resolve()


def resources_of(file: str | None) -> Resources | None:
    """Read the file's resources; return None without a file."""
    return None if file is None else read(file, copies=False)


def archive_place(text: str, resources: Resources | None) -> ArchivePlace:
    """Read a place: a directory's path, or STORE/PATH.

    Args:
        text: the place. If it begins with `.` or `/`, it is a directory.
        resources: those of the file with StreamStores; without a file each place is a directory.

    Raises:
        InvalidSpec: there is no such StreamStore.
    """
    if resources is None or text.startswith((".", "/")):
        return _directory(Path(text).absolute())
    store, _, path = text.partition("/")
    return ArchivePlace(address_of(store, resources, field="PLACE"), path.strip("/"))


def _directory(path: Path) -> ArchivePlace:
    uri = path.as_uri()
    return ArchivePlace(StoreAddress(backend=kind_of(uri, Holds.ARCHIVES).name, uri=uri), "")


def stream_of(text: str, *, field: str) -> tuple[str, StreamName]:
    """Split a name like `main:shop/orders` or `namespace/main:shop/orders` into store and stream.

    Raises:
        InvalidSpec: the text has another form.
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


def writable(name: StreamName, *, field: str) -> StreamName:
    """Return the name of a stream that is to be made or written to, if users may have such streams.

    Events in a stream of the store's own, such as the `_RG...` of a reader group, would damage it.

    Raises:
        InvalidSpec: the store refuses the name, or keeps it for itself.
    """
    if not (is_new_name(name.scope) and is_new_name(name.stream)):
        raise InvalidSpec(
            f"{name} can be neither made nor written to", field=field, remedy=_NO_STREAM
        )
    return name


def store_of(text: str | None, resources: Resources | None) -> StoreAddress:
    """Return the address of a live store, from an address or a StreamStore's name.

    Args:
        text: the store; None for the only StreamStore of the file.
        resources: those of the file with StreamStores; None without a file.

    Raises:
        InvalidSpec: no store is named, there is no such StreamStore, or it holds archives.
    """
    forms = ", or ".join(form for kind in holding(Holds.LIVE) for form in kind.forms)
    remedy = f"Give --store {forms}, or a file with its StreamStore: -f FILE --store NAME."
    if text is not None and "://" in text:
        address = StoreAddress(backend=kind_of(text, Holds.LIVE).name, uri=text)
    elif resources is None:
        named = "no store is named" if text is None else f"{text!r} is no address of a store"
        raise InvalidSpec(named, field="--store", remedy=remedy)
    elif text is not None:
        address = address_of(text, resources, field="--store")
    elif len(resources.stores) == 1:
        (store,) = resources.stores.values()
        address = store_address(store)
    else:
        raise InvalidSpec(
            f"there are {len(resources.stores)} StreamStores in the file",
            field="--store",
            remedy="Name one of them: --store NAME.",
        )
    if address.holds_archives:
        raise InvalidSpec(
            f"{address.uri} holds archives, and no streams",
            field="--store",
            remedy="Use sluice archive for archives.",
        )
    return address


def address_of(name: str, resources: Resources, *, field: str) -> StoreAddress:
    """Return the address of a StreamStore. Its namespace may be left out if the name is unique.

    Raises:
        InvalidSpec: the file has no such StreamStore, or more than one.
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
