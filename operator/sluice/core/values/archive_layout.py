"""The folders of an archive, and the paths that an archive can have in its store."""

from __future__ import annotations

import re
from typing import Final

from sluice.errors import InvalidSpec

DATA: Final = "data/"
"""Prefix of the names of objects that hold a segment's bytes, or an index of them."""

EVENTS: Final = "events/"
"""Prefix of the names of objects that are one event each."""

RUNS: Final = "runs/"
"""Prefix of the names of manifests."""

HEADS: Final = "heads/"
"""Prefix of the names of heads; the head with the highest number counts."""

LEASES: Final = "leases/"
"""Prefix of the names of leases, which keep other processes from sweeping objects in use."""

WORK: Final = "work/"
"""Prefix of the names of notes, which list what an unfinished run has put so far."""

PARTIAL: Final = ".partial/"
"""Prefix of the names of files that are being written. A killed process leaves some behind."""

ARCHIVED: Final = (DATA, EVENTS, RUNS, HEADS, LEASES, WORK)
"""The folders of an archive, wherever it is."""

FOLDERS: Final = (*ARCHIVED, PARTIAL)
"""All folders of an archive. No part of an archive's path may have the name of one."""

_PATH: Final = re.compile(r"[A-Za-z0-9._=+@-]+(/[A-Za-z0-9._=+@-]+)*")
_LONGEST_PATH: Final = 512
_NO_PARTS: Final = frozenset({".", "..", *(folder.rstrip("/") for folder in FOLDERS)})
_ASIDE: Final = "="


def below(folder: str, stream: str) -> str:
    """Return the path of a stream's archive in a folder.

    The path ends with the stream's name. A name that no part of a path may have, such as `data`,
    is followed by `=`, which is in no stream's name.

    Args:
        folder: the folder's path; empty for the whole store.
        stream: the stream's name.
    """
    part = f"{stream}{_ASIDE}" if stream in _NO_PARTS else stream
    return f"{folder}/{part}" if folder else part


def stream_at(path: str) -> str:
    """Return the name of the stream whose archive is at a path. The inverse of `below`."""
    part = path.rpartition("/")[2]
    aside = part.removesuffix(_ASIDE)
    return aside if aside in _NO_PARTS else part


def is_path(path: str) -> bool:
    """Tell whether an archive can have this path."""
    plain = _PATH.fullmatch(path) and len(path) <= _LONGEST_PATH
    return bool(plain) and not _NO_PARTS & set(path.split("/"))


def checked_path(path: str, *, field: str) -> str:
    """Return the path, if an archive can have it.

    Raises:
        InvalidSpec: it is too long, has characters that some store would encode, or has a part
            that is a folder of an archive.
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
