"""The user's cache directory, and directories that are made in it once."""

import fcntl
import hashlib
import os
import tempfile
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path


def cache_root() -> Path:
    """Return the directory for files that can be made again: jars, compiled classes."""
    base = os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache"
    return Path(base) / "sluice"


def state_root() -> Path:
    """Return the directory for the state of the user's own local store."""
    base = os.environ.get("XDG_STATE_HOME") or Path.home() / ".local" / "state"
    return Path(base) / "sluice"


def content_key(files: Iterable[Path]) -> str:
    """Return a short key that changes with the name or the content of any of the files."""
    digest = hashlib.sha256()
    for file in sorted(files):
        digest.update(file.name.encode() + b"\0" + hashlib.sha256(file.read_bytes()).digest())
    return digest.hexdigest()[:12]


@contextmanager
def locked(path: Path) -> Iterator[None]:
    """Hold an exclusive lock between processes. The kernel releases it if the holder dies."""
    path.parent.mkdir(parents=True, exist_ok=True)
    with path.open("w") as handle:
        fcntl.flock(handle, fcntl.LOCK_EX)
        yield


def make_once(target: Path, make: Callable[[Path], None]) -> Path:
    """Make a directory atomically unless it exists.

    Args:
        target: the wanted directory; if it exists, it is complete.
        make: function that fills the given empty directory, or raises.

    Returns:
        The target.
    """
    if target.is_dir():
        return target
    with locked(target.with_name(f"{target.name}.lock")):
        if not target.is_dir():  # another process may have made it meanwhile
            with tempfile.TemporaryDirectory(dir=target.parent, prefix=".making-") as temporary:
                fresh = Path(temporary) / target.name
                fresh.mkdir()
                make(fresh)
                fresh.rename(target)
    return target
