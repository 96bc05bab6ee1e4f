"""Run the query of the benchmark by Flink, in a JVM of its own on this machine.

Flink 1.11 is the newest whose connector for Pravega is in Maven Central. It does not know Java 17,
so packages of the JDK are opened for it. Rows come at least once: with `exactly-once`, this
connector's transactions write none to Pravega 0.13.
"""

from __future__ import annotations

import subprocess
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Final

from localstore.cache import cache_root, content_key, make_once
from localstore.jars import copy_jars
from localstore.java import jdk_tool

if TYPE_CHECKING:
    from collections.abc import Iterator

_FOLDER: Final = Path(__file__).with_name("rival")
_MAIN: Final = "Windows"
_OPENED: Final = (
    *("java.io", "java.lang", "java.lang.reflect", "java.math", "java.net", "java.nio"),
    *("java.nio.charset", "java.text", "java.time", "java.util", "java.util.concurrent"),
    *("java.util.concurrent.atomic", "java.util.concurrent.locks", "java.util.regex", "sun.nio.ch"),
)
"""Packages of the JDK whose private fields Flink reads."""


def _classpath() -> str:
    """Return Flink's jars and our compiled class. The first call downloads and compiles."""
    pom, source = _FOLDER / "pom.xml", _FOLDER / f"{_MAIN}.java"

    def make(target: Path) -> None:
        copy_jars(pom, target)
        command = [
            jdk_tool("javac"),
            "-nowarn",
            "-cp",
            f"{target}/*",
            "-d",
            str(target),
            str(source),
        ]
        subprocess.run(command, check=True, capture_output=True, timeout=120)

    made = make_once(cache_root() / f"flink-{content_key([pom, source])}", make)
    return f"{made}:{made}/*"


@contextmanager
def flink_query(uri: str, scope: str, stream: str, log: Path) -> Iterator[None]:
    """Run the query during the block. Its sink `STREAM-counts` has to exist.

    Args:
        uri: the store's address.
        scope: the scope of both streams.
        stream: the source.
        log: file for the output.
    """
    command = [
        jdk_tool("java"),
        "-Xmx2g",
        *(f"--add-opens=java.base/{package}=ALL-UNNAMED" for package in _OPENED),
        *("-cp", _classpath(), _MAIN, uri, scope, stream),
    ]
    with log.open("w") as output, subprocess.Popen(command, stdout=output, stderr=output) as child:
        try:
            yield
        finally:
            child.kill()
