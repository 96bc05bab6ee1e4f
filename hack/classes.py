"""Make Java's class-data archive, from which Spark's JVM starts in half the time.

python hack/classes.py   makes the archive beside the Python packages, unless a fitting one exists

The tests start some eighty JVMs. The image has the same archive, made by the same program. Without
a fitting archive, Java loads its classes from the jars.
"""

from __future__ import annotations

import hashlib
import logging
import runpy
import subprocess
import tempfile
import time
from pathlib import Path
from typing import Any

import structlog

from sluice.pipelines.spark import java

TRAIN = Path(__file__).resolve().parent.parent / "docker" / "train.py"


def fingerprint() -> str:
    """Return a hash of all that an archive depends on: Java, its options, the jars, the program."""
    version = subprocess.run([java.java(), "-version"], capture_output=True, check=True).stderr
    found = java.class_path()
    jars = [(jar.name, jar.stat().st_size, jar.stat().st_mtime_ns) for jar in found]
    options = (*java.MODULE_OPTIONS, *java.LEAN_OPTIONS)
    parts = (version, repr(jars).encode(), repr(options).encode(), TRAIN.read_bytes())
    return hashlib.sha256(b"\0".join(parts)).hexdigest()


def make(archive: Path) -> None:
    """Make the archive, and move it to its place only when it is complete."""
    train: dict[str, Any] = runpy.run_path(str(TRAIN), run_name="train")
    with tempfile.TemporaryDirectory(dir=archive.parent) as folder:
        made = Path(folder, archive.name)
        train["train_local"](made)
        made.replace(archive)


def main() -> None:
    """Make the archive unless a fitting one exists."""
    archive = java.archive()
    stamp = archive.with_suffix(".of")
    wanted = fingerprint()
    if archive.exists() and stamp.exists() and stamp.read_text() == wanted:
        return
    # Java would print that it was told to write an archive.
    structlog.configure(wrapper_class=structlog.make_filtering_bound_logger(logging.ERROR))
    started = time.monotonic()
    archive.unlink(missing_ok=True)
    make(archive)
    stamp.write_text(wanted)
    print(f"writing Java's classes down ... {time.monotonic() - started:.1f} s")


if __name__ == "__main__":
    main()
