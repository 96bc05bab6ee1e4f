"""Writes Java's classes down as they lie in memory, from which Spark's JVM starts in half the time.

python hack/classes.py   makes the archive beside the Python packages, unless it is there and fits

It is what the image has, made by the same program; the tests start some eighty JVMs. Where there is
none, or one that does not fit, Java takes its classes out of the jars.
"""

from __future__ import annotations

import hashlib
import logging
import os
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
    """What an archive depends on: Java, its options, Spark's jars, and the program that is run."""
    version = subprocess.run([java.java(), "-version"], capture_output=True, check=True).stderr
    jars = [(jar.name, jar.stat().st_size, jar.stat().st_mtime_ns) for jar in java.jars().iterdir()]
    options = (*java.MODULE_OPTIONS, *java.LEAN_OPTIONS)
    parts = (version, repr(sorted(jars)).encode(), repr(options).encode(), TRAIN.read_bytes())
    return hashlib.sha256(b"\0".join(parts)).hexdigest()


def make(archive: Path) -> None:
    """Make the archive; half of one is never in its place."""
    train: dict[str, Any] = runpy.run_path(str(TRAIN), run_name="train")
    with tempfile.TemporaryDirectory(dir=archive.parent) as name:
        folder = Path(name)
        lists = train["Lists"](folder)
        train["train_local"](lists)
        del os.environ["JAVA_TOOL_OPTIONS"]
        classes = folder / "classes"
        classes.write_text(lists.merged())
        train["write"](str(folder / archive.name), classes)
        (folder / archive.name).replace(archive)


def main() -> None:
    """Make the archive, if there is none that fits."""
    archive = java.archive()
    stamp = archive.with_suffix(".of")
    wanted = fingerprint()
    if archive.exists() and stamp.exists() and stamp.read_text() == wanted:
        return
    # Java says on its way that it was told to write them down.
    structlog.configure(wrapper_class=structlog.make_filtering_bound_logger(logging.ERROR))
    started = time.monotonic()
    archive.unlink(missing_ok=True)
    make(archive)
    stamp.write_text(wanted)
    print(f"writing Java's classes down ... {time.monotonic() - started:.1f} s")


if __name__ == "__main__":
    main()
