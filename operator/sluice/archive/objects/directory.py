"""A directory as a store of objects.

obstore's own local store is no alternative, for two reasons. It does not sync what it writes, so
after a power failure a head could exist without its manifest. And its listings hide the files that
a killed process has begun, so no sweep would delete them.

An object is written to its own file in `.partial`, synced, and then linked or renamed to its name.
So no name ever stands for a part of an object. There is no deadline: a call waits as long as the
file system does.
"""

from __future__ import annotations

import ctypes
import errno
import os
from contextlib import ExitStack, contextmanager, suppress
from typing import TYPE_CHECKING, Final
from uuid import uuid4

from sluice.archive.objects.objects import ObjectInfo
from sluice.core.values.archive_layout import PARTIAL
from sluice.errors import PermissionDenied, StoreRejected, StoreUnavailable

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Sequence
    from pathlib import Path

    from sluice.archive.objects.objects import Buffer

_FULL: Final = {errno.ENOSPC, errno.EDQUOT, errno.EFBIG}
_DENIED: Final = {errno.EACCES, errno.EPERM, errno.EROFS}
_UNABLE: Final = {errno.EOPNOTSUPP, errno.ENOSYS, errno.EMLINK}


class DirectoryObjects:
    """`Objects` below a directory, which is made by the first put.

    Args:
        root: the directory.
    """

    def __init__(self, root: Path) -> None:
        self._root = root
        self._made: set[Path] = set()

    def __repr__(self) -> str:
        """Return the class and the directory."""
        return f"{type(self).__name__}({str(self._root)!r})"

    def put(self, name: str, data: Buffer) -> None:
        """Make an object, or replace it."""
        with _told(name), self._written(data, sync=True) as partial:
            path = self._at(name, partial.replace)
            _sync_folder(path.parent)

    def put_new(self, name: str, data: Buffer) -> bool:
        """Make an object. Return False if one of that name exists."""
        made = True
        with _told(name), self._written(data, sync=True) as partial:
            try:
                self._at(name, lambda path: path.hardlink_to(partial))
            except FileExistsError:
                made = False
            # Sync an existing object's name too: its maker may have been killed before it did so.
            _sync_folder((self._root / name).parent)
        return made

    def put_many(self, items: Iterable[tuple[str, Buffer]]) -> None:
        """Make or replace many small objects. They are synced together."""
        with ExitStack() as left:
            written = []
            for name, data in items:
                with _told(name):
                    written.append((name, left.enter_context(self._written(data, sync=False))))
            with _told(""):
                _sync_file_system(self._root)
            for name, partial in written:
                with _told(name):
                    self._at(name, partial.replace)
            with _told(""):
                _sync_file_system(self._root)

    def look(self, name: str) -> ObjectInfo | None:
        """Return an object's size and time; None if it does not exist."""
        with _told(name):
            try:
                state = (self._root / name).stat()
            except (FileNotFoundError, NotADirectoryError):
                return None
            return ObjectInfo(name, state.st_size, state.st_mtime_ns // 1_000_000)

    def get(self, name: str, start: int = 0, end: int | None = None) -> bytes | None:
        """Return the bytes [start, end) of an object; None if it does not exist."""
        with _told(name):
            try:
                with (self._root / name).open("rb") as file:
                    file.seek(start)
                    return file.read() if end is None else file.read(max(0, end - start))
            except (FileNotFoundError, NotADirectoryError):
                return None

    def get_many(self, names: Sequence[str]) -> list[bytes | None]:
        """Read many small objects, in the order of `names`."""
        return [self.get(name) for name in names]

    def list(self, prefix: str = "", after: str = "") -> Iterator[ObjectInfo]:
        """Yield the objects in a folder and below it, in the order of their whole names."""
        with _told(prefix):
            yield from self._walk(prefix, after)

    def folders(self, prefix: str = "") -> tuple[str, ...]:
        """Return the folders directly in a folder."""
        with _told(prefix):
            try:
                with os.scandir(self._root / prefix) as entries:
                    found = [f"{prefix}{one.name}/" for one in entries if one.is_dir()]
            except (FileNotFoundError, NotADirectoryError):
                return ()
            return tuple(sorted(found))

    def delete(self, names: Sequence[str]) -> None:
        """Delete objects, and the folders that become empty."""
        for name in names:
            with _told(name):
                path = self._root / name
                path.unlink(missing_ok=True)
                for folder in path.parents:
                    if folder == self._root or not _removed(folder):
                        break
                    self._made.discard(folder)

    def _walk(self, folder: str, after: str) -> Iterator[ObjectInfo]:
        try:
            with os.scandir(self._root / folder) as entries:
                found = {f"{folder}{one.name}{'/' if one.is_dir() else ''}": one for one in entries}
        except (FileNotFoundError, NotADirectoryError):
            return
        # Sort a folder with its slash, as it stands in the whole names of the objects in it.
        for name in sorted(found):
            if name.endswith("/"):
                if not after.startswith(name) and name < after:
                    continue
                yield from self._walk(name, after)
            elif name > after:
                with suppress(FileNotFoundError):
                    state = found[name].stat()
                    yield ObjectInfo(name, state.st_size, state.st_mtime_ns // 1_000_000)

    @contextmanager
    def _written(self, data: Buffer, *, sync: bool) -> Iterator[Path]:
        """Write data to a file in `.partial`, and yield its path. Delete the file afterwards."""
        partial = self._at(f"{PARTIAL}{uuid4().hex}", lambda path: path.touch(exist_ok=False))
        try:
            with partial.open("wb", buffering=0) as file:
                left = memoryview(data)
                while left:
                    left = left[file.write(left) :]
                if sync:
                    os.fsync(file.fileno())
            yield partial
        finally:
            partial.unlink(missing_ok=True)

    def _at(self, name: str, act: Callable[[Path], object]) -> Path:
        """Make the folder of an object, call `act` with the object's path, and return the path."""
        path = self._root / name
        for again in (False, True):
            if path.parent not in self._made or again:
                self._make(path.parent)
                self._made.add(path.parent)
            try:
                act(path)
            except FileNotFoundError:
                if again:
                    raise
                continue  # another process has deleted the folder, since it was empty
            break
        return path

    def _make(self, folder: Path) -> None:
        """Make a folder and those above it, and sync their names."""
        if folder.is_dir():
            # Sync its name too: its maker may have been killed before it did so. Sluice has not
            # made a mount point, or a folder in a parent that it may not sync.
            if not folder.is_mount():
                with suppress(PermissionError):
                    _sync_folder(folder.parent)
            return
        self._make(folder.parent)
        folder.mkdir(exist_ok=True)
        _sync_folder(folder.parent)


def _removed(folder: Path) -> bool:
    """Remove a folder if it is empty. Return whether it was removed."""
    try:
        folder.rmdir()
    except OSError as error:
        if error.errno not in {errno.ENOTEMPTY, errno.EEXIST, errno.ENOENT}:
            raise
        return False
    return True


def _sync_folder(folder: Path) -> None:
    """Sync a folder, so that the names in it outlast a power failure."""
    handle = os.open(folder, os.O_RDONLY | os.O_DIRECTORY)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)


def _sync_file_system(folder: Path) -> None:
    """Sync the folder's whole file system, so that all in it outlasts a power failure."""
    if not folder.is_dir():
        return
    handle = os.open(folder, os.O_RDONLY | os.O_DIRECTORY)
    try:
        library = ctypes.CDLL(None, use_errno=True)
        if library.syncfs(handle):
            number = ctypes.get_errno()
            raise OSError(number, os.strerror(number))
    finally:
        os.close(handle)


@contextmanager
def _told(name: str) -> Iterator[None]:
    """Raise an OSError of the block as the matching SluiceError."""
    try:
        yield
    except OSError as error:
        what = f"{error.filename or name}: {error.strerror}"
        if error.errno in _FULL:
            raise StoreRejected(
                what, remedy="Make room; what is there stays, and it goes on from there."
            ) from None
        if error.errno in _DENIED:
            raise PermissionDenied(
                what, remedy="Let the user of this process write there."
            ) from None
        if error.errno in _UNABLE:
            raise StoreRejected(
                what, remedy="Take a file system that has hard links: archives need them."
            ) from None
        raise StoreUnavailable(what) from None
