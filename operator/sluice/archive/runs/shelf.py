"""A place that holds archives, each below a path of its own: a bucket, or a directory."""

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


class Shelf:
    """A place for archives. Nothing is opened, or made, before it is needed.

    Args:
        uri: where it is, for people.
        opened: gives the objects below a path of it, or all of them for an empty one.
        most: bytes of the longest manifest's JSON that is read.
    """

    def __init__(
        self, uri: str, opened: Callable[[str], Objects], *, most: int = MOST_BYTES
    ) -> None:
        self.uri = uri
        self._most = most
        self._opened = opened

    def __repr__(self) -> str:
        """The class and the place; never a key."""
        return f"{type(self).__name__}({self.uri!r})"

    def archive(self, path: str = "", *, field: str = "path") -> Archive:
        """The archive at a path, whether there is one or not; without a path, the place is it.

        Raises:
            InvalidSpec: no archive can have that path; it is in `field`.
        """
        objects = self._opened(checked_path(path, field=field) if path else "")
        return Archive(objects, most=self._most)

    def run(self, pinned: ArchivedRun) -> ArchivedStore:
        """A run, as a store that holds the one stream that was archived."""
        return ArchivedStore(self.archive(pinned.path), pinned)

    def paths(self, below: str = "") -> Iterator[str]:
        """The paths of the archives at a path and below it, in order of names.

        Only folders are listed, and none of an archive's own, so it does not matter how much the
        archives hold.
        """
        yield from self._walk(self._opened(""), f"{below}/" if below else "")

    def names(self, folder: str) -> list[str]:
        """The streams whose archives may lie directly in a folder, as `below` puts them there.

        Args:
            folder: its path; empty for the place itself.
        """
        prefix = f"{folder}/" if folder else ""
        found = self._opened("").folders(prefix)
        parts = [one.removeprefix(prefix).rstrip("/") for one in found]
        return sorted(stream_at(one) for one in parts if is_path(one))

    def probe(self) -> None:
        """Ask whether the place is there and may be listed.

        Raises:
            BackendError: it is not, or may not.
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
    """Whether a folder in another one is what an archive there would have."""
    return folder.removeprefix(of) in FOLDERS
