"""The user's cache directory, and things made in it once."""

import fcntl
import hashlib
import os
import tempfile
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path


def cache_root() -> Path:
    """Gives the directory for what can be made again: jars, compiled classes."""
    base = os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache"
    return Path(base) / "sluice"


def state_root() -> Path:
    """Gives the directory for what a person's own local store keeps."""
    base = os.environ.get("XDG_STATE_HOME") or Path.home() / ".local" / "state"
    return Path(base) / "sluice"


def content_key(files: Iterable[Path]) -> str:
    """Gives a short key that changes with the name or the content of any of the files."""
    digest = hashlib.sha256()
    for file in sorted(files):
        digest.update(file.name.encode() + b"\0" + hashlib.sha256(file.read_bytes()).digest())
    return digest.hexdigest()[:12]


@contextmanager
def locked(path: Path) -> Iterator[None]:
    """Holds an exclusive lock between processes; the kernel drops it if the holder dies."""
    path.parent.mkdir(parents=True, exist_ok=True)
    with path.open("w") as handle:
        fcntl.flock(handle, fcntl.LOCK_EX)
        yield


def make_once(target: Path, make: Callable[[Path], None]) -> Path:
    """Makes a directory unless it is there already, whole or not at all.

    Args:
        target: The directory wanted; that it exists means that it is complete.
        make: Fills the empty directory it is given, or raises.

    Returns:
        The target.
    """
    if target.is_dir():
        return target
    with locked(target.with_name(f"{target.name}.lock")):
        if not target.is_dir():  # else another process made it while this one waited
            with tempfile.TemporaryDirectory(dir=target.parent, prefix=".making-") as temporary:
                fresh = Path(temporary) / target.name
                fresh.mkdir()
                make(fresh)
                fresh.rename(target)
    return target
