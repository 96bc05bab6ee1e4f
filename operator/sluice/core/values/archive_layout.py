"""The folders of an archive, and the paths at which a store of archives can have one."""

from __future__ import annotations

import re
from typing import Final

from sluice.errors import InvalidSpec

DATA: Final = "data/"
"""Before the names of objects that hold a segment's bytes, or an index of them."""

EVENTS: Final = "events/"
"""Before the names of objects that are one event each."""

RUNS: Final = "runs/"
"""Before the names of manifests."""

HEADS: Final = "heads/"
"""Before the names of heads; the last one counts."""

LEASES: Final = "leases/"
"""Before the names of leases, by which those that are at work keep others from sweeping."""

WORK: Final = "work/"
"""Before the names of notes: what a run has got so far that is not recorded yet."""

PARTIAL: Final = ".partial/"
"""Before the names of files that are being written, or were when somebody was killed."""

ARCHIVED: Final = (DATA, EVENTS, RUNS, HEADS, LEASES, WORK)
"""The folders of an archive, wherever it is."""

FOLDERS: Final = (*ARCHIVED, PARTIAL)
"""All that an archive has; so no part of an archive's path is called like one of them."""

_PATH: Final = re.compile(r"[A-Za-z0-9._=+@-]+(/[A-Za-z0-9._=+@-]+)*")
_LONGEST_PATH: Final = 512
_NO_PARTS: Final = frozenset({".", "..", *(folder.rstrip("/") for folder in FOLDERS)})
_ASIDE: Final = "="


def below(folder: str, stream: str) -> str:
    """The path of a stream's archive in a folder; without a path the folder is the whole store.

    It ends with the stream's name. One that no part of a path can be called is followed by a sign
    that is in no stream's name.
    """
    part = f"{stream}{_ASIDE}" if stream in _NO_PARTS else stream
    return f"{folder}/{part}" if folder else part


def stream_at(path: str) -> str:
    """The name of the stream whose archive `below` puts at a path."""
    part = path.rpartition("/")[2]
    aside = part.removesuffix(_ASIDE)
    return aside if aside in _NO_PARTS else part


def is_path(path: str) -> bool:
    """Whether an archive can have this path."""
    plain = _PATH.fullmatch(path) and len(path) <= _LONGEST_PATH
    return bool(plain) and not _NO_PARTS & set(path.split("/"))


def checked_path(path: str, *, field: str) -> str:
    """The path of an archive in its store, if it can be one.

    Raises:
        InvalidSpec: it has characters that some store writes otherwise, or a part that means
            something else.
    """
    if not is_path(path):
        folders = {folder.rstrip("/") for folder in FOLDERS}
        raise InvalidSpec(
            f"{path!r} is no path of an archive",
            field=field,
            remedy=f"Take letters, digits and ._=+@- between slashes, at most {_LONGEST_PATH} of "
            "them, and no part that is a folder of an archive "
            f"({', '.join(sorted(folders))}).",
        )
    return path
