"""The JDK's programs, and command lines of JVMs."""

import os
import shutil
from collections.abc import Mapping, Sequence
from pathlib import Path

from localstore.errors import LocalStoreError

LOGBACK = Path(__file__).with_name("logback.xml")

# Pravega accesses the JDK's private buffers and threads, which modules forbid by default.
_OPENED = ("java.base/java.lang", "java.base/java.nio", "java.base/sun.nio.ch")

# A main class of ours that starts Pravega's own one: see `hack/java/Mended.java`.
_MENDED = "Mended"

# In its first minutes, a store spends most of its CPU time on compiling, as Maven does.
BRIEF = ("-XX:TieredStopAtLevel=1", "-XX:+UseSerialGC")


def jdk_tool(name: str) -> str:
    """Return a program of the JDK, from JAVA_HOME or else from PATH."""
    home = os.environ.get("JAVA_HOME")
    if home and (tool := Path(home) / "bin" / name).is_file():
        return str(tool)
    if found := shutil.which(name):
        return found
    raise LocalStoreError(f"{name} not found: install a JDK, 17 or newer, or set JAVA_HOME")


def java_command(
    *,
    main: str,
    classpath: str,
    heap: str,
    direct_memory: str = "256m",
    properties: Mapping[str, object] | None = None,
    arguments: Sequence[str] = (),
    java: str | None = None,
    logback: Path = LOGBACK,
    lasting: bool = False,
    mended: bool = False,
) -> list[str]:
    """Return the command line of a JVM that runs Pravega's classes.

    Args:
        main: class to run.
        classpath: the class path.
        heap: maximum heap, in the JVM's notation ("3g").
        direct_memory: maximum memory outside the heap; it holds a segment store's cache.
        properties: system properties.
        arguments: arguments of the main class.
        java: the JVM's program; this machine's own if left out.
        logback: configuration file of the log.
        lasting: whether the JVM's speed matters more than a quick start.
        mended: whether it has segment containers, which would take whole processors while idle. The
            compiled client must be in the class path.

    Returns:
        The command.
    """
    return [
        java or jdk_tool("java"),
        *(() if lasting else BRIEF),
        f"-Xmx{heap}",
        f"-XX:MaxDirectMemorySize={direct_memory}",
        # A JVM that continues after an OutOfMemoryError makes tests fail far from the cause.
        "-XX:+ExitOnOutOfMemoryError",
        "-Dio.netty.tryReflectionSetAccessible=true",
        f"-Dlogback.configurationFile={logback}",
        *(f"--add-opens={package}=ALL-UNNAMED" for package in _OPENED),
        *(f"-D{name}={value}" for name, value in (properties or {}).items()),
        "-cp",
        classpath,
        *((_MENDED,) if mended else ()),
        main,
        *arguments,
    ]
