"""Open the store at an address: a live store, a run of an archive, or a store of archives."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Final
from urllib.parse import unquote, urlsplit

from sluice.api.fields.backends import Holds, either
from sluice.archive.objects.directory import DirectoryObjects
from sluice.archive.runs.archive_root import ArchiveRoot
from sluice.core.archive.documents import MOST_BYTES
from sluice.errors import InvalidSpec
from sluice.stores.connect import connect
from sluice.stores.trust import read_bundle

if TYPE_CHECKING:
    from collections.abc import Callable

    from sluice.api.fields.backends import BackendName
    from sluice.archive.objects.objects import Objects
    from sluice.archive.objects.s3 import S3Keys
    from sluice.config import Settings
    from sluice.core.values.model import StoreAddress
    from sluice.stores.base import Source


def open_source(address: StoreAddress, settings: Settings) -> Source:
    """Open a store to read from: a live store, or a run of an archive.

    Args:
        address: address of a live store, or of a run of an archive.
        settings: deadlines, and the folders of credentials and volumes.

    Raises:
        InvalidSpec: the URI does not fit the kind of store, or the store holds archives and the
            address names no run.
        AuthenticationFailed: the files of the Secret that the address names are missing.
    """
    if address.archive is not None:
        return archives(address, settings).run(address.archive)
    return connect(address, settings)


def archives(
    address: StoreAddress,
    settings: Settings,
    *,
    keys: S3Keys | None = None,
    ca: str | None = None,
    most: int = MOST_BYTES,
) -> ArchiveRoot:
    """Return the store of archives at an address. Connections are opened by the first call.

    Args:
        address: address of a bucket or a volume.
        settings: deadlines, and the folders of credentials and volumes.
        keys: credentials; None to read those of the Secret that the address names.
        ca: certificates in PEM; None to read the file that the address names.
        most: most bytes of a manifest's JSON that is read.

    Raises:
        InvalidSpec: the URI does not fit the kind of store, the volume is not mounted, or there is
            no folder of volumes.
        AuthenticationFailed: a file of credentials that the address names is missing.
    """
    opened = _OPENERS.get(address.backend)
    if opened is None:
        raise InvalidSpec(
            f"{address.uri} is a store of live streams, and holds no archives",
            remedy=f"Name a StreamStore with {either(Holds.ARCHIVES)}.",
        )
    return ArchiveRoot(address.uri, opened(address, settings, keys, ca, most), most=most)


def _bucket(
    address: StoreAddress, settings: Settings, keys: S3Keys | None, ca: str | None, most: int
) -> Callable[[str], Objects]:
    """Return a function that opens the objects of a bucket below a path."""
    # Imported here so that a process pays for, and knows, only the backends it uses.
    from sluice.archive.objects.s3 import Bucket, S3Keys, S3Objects  # noqa: PLC0415

    place = urlsplit(address.uri)
    if place.scheme != "s3" or not place.netloc:
        raise _other_form(address)
    folder = settings.credentials_dir
    if keys is None and address.secret:
        keys = S3Keys.read(address.secret, folder)
    if ca is None and address.ca:
        ca = read_bundle(address.ca, folder)
    prefix = unquote(place.path).strip("/")

    def opened(path: str) -> Objects:
        bucket = Bucket(
            name=place.netloc,
            prefix="/".join(filter(None, (prefix, path))),
            endpoint=address.endpoint,
            region=address.region or address.kind.region,
            ca=ca,
        )
        return S3Objects(bucket, keys=keys, timeouts=settings.timeouts, most=most)

    return opened


def _volume(
    address: StoreAddress, settings: Settings, _keys: S3Keys | None, _ca: str | None, _most: int
) -> Callable[[str], Objects]:
    """Return a function that opens the objects of a volume below a path."""
    folder = _directory(address, settings)
    return lambda path: DirectoryObjects(folder / path)


def _directory(address: StoreAddress, settings: Settings) -> Path:
    """Return the directory of a volume.

    Raises:
        InvalidSpec: the URI names no volume, or the volume is not mounted.
    """
    place = urlsplit(address.uri)
    path = unquote(place.path)
    if place.scheme == "file" and not place.netloc and path.startswith("/"):
        return Path(path)
    claim, parts = place.netloc, [one for one in path.split("/") if one]
    if place.scheme != "volume" or not claim or {".", ".."} & {claim, *parts}:
        raise _other_form(address)
    if settings.volumes_dir is None:
        raise InvalidSpec(
            f"{address.uri} is a volume, and this process has no folder of volumes",
            remedy=f"Mount the claim as <folder>/{claim} and set SLUICE_VOLUMES_DIR to that "
            "folder, or give --volumes-dir.",
        )
    if not (settings.volumes_dir / claim).is_dir():
        # Do not make the folder: data in it would lie in the pod, and be lost with it.
        raise InvalidSpec(
            f"{settings.volumes_dir / claim} is not there: {address.uri} is not mounted",
            remedy=f"Mount the claim {claim} there.",
        )
    return settings.volumes_dir.joinpath(claim, *parts)


def _other_form(address: StoreAddress) -> InvalidSpec:
    kind = address.kind
    return InvalidSpec(f"{address.uri!r} is no {kind.entrance}: it is {kind.forms[0]}")


_OPENERS: Final[dict[BackendName, Callable[..., Callable[[str], Objects]]]] = {
    "s3": _bucket,
    "volume": _volume,
}
"""The function that opens the objects of each kind of store of archives."""
