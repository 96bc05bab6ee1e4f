"""Build Java's command line for Spark, in a driver and in an executor.

`spark-submit` starts a JVM to find out how to start the JVM, which takes more than a second. The
answer is the same for each version of Spark, and PySpark's version is pinned. So the options stand
here. A test compares them with the output of Spark's launcher.
"""

from __future__ import annotations

import os
import shutil
import sys
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING

from sluice.errors import InfrastructureError

if TYPE_CHECKING:
    from collections.abc import Mapping

MODULE_OPTIONS = (
    "-XX:+IgnoreUnrecognizedVMOptions",
    *(
        f"--add-opens={package}=ALL-UNNAMED"
        for package in (
            "java.base/java.lang",
            "java.base/java.lang.invoke",
            "java.base/java.lang.reflect",
            "java.base/java.io",
            "java.base/java.net",
            "java.base/java.nio",
            "java.base/java.util",
            "java.base/java.util.concurrent",
            "java.base/java.util.concurrent.atomic",
            "java.base/jdk.internal.ref",
            "java.base/sun.nio.ch",
            "java.base/sun.nio.cs",
            "java.base/sun.security.action",
            "java.base/sun.util.calendar",
            "java.security.jgss/sun.security.krb5",
        )
    ),
    "-Dio.netty.tryReflectionSetAccessible=true",
    "-Dio.netty.allocator.type=pooled",
    "--sun-misc-unsafe-memory-access=allow",
    "--enable-native-access=ALL-UNNAMED",
)
"""Options that Spark needs for Java's modules. Spark's launcher has more, which are left out:
`jdk.incubator.vector`, which only machine learning uses, and options that weaken the checks of
certificates or are for Derby."""

LEAN_OPTIONS = (
    "-XX:TieredStopAtLevel=1",
    "-XX:+UseSerialGC",
    "-XX:-UsePerfData",
    "-XX:+ExitOnOutOfMemoryError",
)
"""The JVM schedules tasks and sees no data, so these options make it start fast and stay small."""


def jars() -> Path:
    """Return the folder of PySpark's jars. SPARK_HOME is ignored.

    Raises:
        InfrastructureError: PySpark is not installed.
    """
    found = find_spec("pyspark")
    if found is None or found.origin is None:
        raise InfrastructureError("PySpark is not installed", remedy="Install sluice again.")
    return Path(found.origin).parent / "jars"


def archive() -> Path:
    """Return the path of the image's class-data archive. Java checks that it fits the jars."""
    return Path(sys.prefix, "lib", "spark.jsa")


def java() -> str:
    """Return the path of the `java` program: from JAVA_HOME if it is set, else from PATH.

    Raises:
        InfrastructureError: there is no such program.
    """
    home = os.environ.get("JAVA_HOME")
    found = shutil.which("java", path=f"{home}/bin" if home else None)
    if found is None:
        raise InfrastructureError(
            "there is no Java" + (f" in JAVA_HOME={home}" if home else " on PATH"),
            remedy="Install a Java runtime of version 17 or newer and set JAVA_HOME.",
        )
    return found


def options(heap: str, properties: Mapping[str, str]) -> list[str]:
    """Return Java's options, which come before the name of the main class.

    Args:
        heap: the largest heap, in Java's notation.
        properties: system properties.
    """
    shared = archive()
    return [
        f"-Xmx{heap}",
        *MODULE_OPTIONS,
        *LEAN_OPTIONS,
        *([f"-XX:SharedArchiveFile={shared}", "-Xshare:auto"] if shared.exists() else []),
        *(f"-D{key}={value}" for key, value in properties.items()),
        "-Dlog4j2.configurationFile=" + str(Path(__file__).with_name("log4j2.properties")),
        "-cp",
        ":".join(map(str, class_path())),
    ]


def class_path() -> list[Path]:
    """Return PySpark's jars in their order, which never changes: an archive of classes fits one.

    Java looks for each class in one jar after the other. The largest jars have most classes.
    """
    return sorted(jars().glob("*.jar"), key=lambda jar: (-jar.stat().st_size, jar.name))
