"""Directories for temporary servers, which are removed even if their owner was killed."""

import fcntl
import os
import shutil
import tempfile
from pathlib import Path
from typing import IO

from localstore.cache import locked


class Scratch:
    """A directory that `remove` deletes, or after a crash the next owner of such a directory.

    The owner holds a lock on a file in it while it lives. So a directory without a lock has no
    owner any more.

    Args:
        name: part of the directory's name.
    """

    def __init__(self, name: str) -> None:
        root = Path(tempfile.gettempdir()) / f"sluice-{os.getuid()}"
        root.mkdir(mode=0o700, exist_ok=True)
        with locked(root / "lock"):  # no sweep may come between the making and the locking
            _sweep(root)
            self.path = Path(tempfile.mkdtemp(prefix=f"{name}-", dir=root))
            self._lock: IO[str] = (self.path / "lock").open("w")
            fcntl.flock(self._lock, fcntl.LOCK_EX)

    def remove(self) -> None:
        """Delete the directory with all its content."""
        shutil.rmtree(self.path, ignore_errors=True)
        self._lock.close()


def _sweep(root: Path) -> None:
    for lock in root.glob("*/lock"):
        try:
            with lock.open("r+") as handle:
                fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
                shutil.rmtree(lock.parent, ignore_errors=True)
        except (FileNotFoundError, BlockingIOError):
            continue  # removed by another sweep, or its owner lives
