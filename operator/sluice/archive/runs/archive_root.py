"""A store of archives, each below its own path: a bucket, or a directory."""

from __future__ import annotations

from typing import TYPE_CHECKING

from sluice.archive.runs.archive import Archive
from sluice.archive.runs.source import ArchivedStore
from sluice.core.archive.documents import MOST_BYTES
from sluice.core.values.archive_layout import FOLDERS, HEADS, checked_path, is_path, stream_at

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from sluice.archive.objects.objects import Objects
    from sluice.core.values.model import ArchivedRun


class ArchiveRoot:
    """A store of archives. Nothing is opened or made before it is needed.

    Args:
        uri: its URI, for messages.
        opened: returns the objects below a path, or all objects for an empty path.
        most: most bytes of a manifest's JSON that is read.
    """

    def __init__(
        self, uri: str, opened: Callable[[str], Objects], *, most: int = MOST_BYTES
    ) -> None:
        self.uri = uri
        self._most = most
        self._opened = opened

    def __repr__(self) -> str:
        """Return the class and the URI, but no key."""
        return f"{type(self).__name__}({self.uri!r})"

    def archive(self, path: str = "", *, field: str = "path") -> Archive:
        """Return the archive at a path, which need not exist yet.

        Args:
            path: its path; empty if the whole store is one archive.
            field: the field of the spec that has the path, for errors.

        Raises:
            InvalidSpec: no archive can have that path.
        """
        objects = self._opened(checked_path(path, field=field) if path else "")
        return Archive(objects, most=self._most)

    def run(self, pinned: ArchivedRun) -> ArchivedStore:
        """Return a run, as a store that holds the archived stream."""
        return ArchivedStore(self.archive(pinned.path), pinned)

    def paths(self, below: str = "") -> Iterator[str]:
        """Yield the paths of the archives at a path and below it, in order of names.

        Only folders are listed, and none inside an archive. So the time does not depend on how much
        the archives hold.
        """
        yield from self._walk(self._opened(""), f"{below}/" if below else "")

    def names(self, folder: str) -> list[str]:
        """Return the names of streams whose archives may lie directly in a folder.

        Args:
            folder: path of the folder; empty for the store itself.
        """
        prefix = f"{folder}/" if folder else ""
        found = self._opened("").folders(prefix)
        parts = [one.removeprefix(prefix).rstrip("/") for one in found]
        return sorted(stream_at(one) for one in parts if is_path(one))

    def probe(self) -> None:
        """Check that the store exists and may be listed.

        Raises:
            BackendError: it does not exist, cannot be reached, or may not be listed.
        """
        next(iter(self._opened("").list()), None)

    def _walk(self, objects: Objects, folder: str) -> Iterator[str]:
        found = objects.folders(folder)
        if f"{folder}{HEADS}" in found:
            yield folder.rstrip("/")
        for one in found:
            if not _is_part(one, folder):
                yield from self._walk(objects, one)


def _is_part(folder: str, of: str) -> bool:
    """Tell whether a folder in another one is one that an archive there would have."""
    return folder.removeprefix(of) in FOLDERS
