"""The machine of the measurements."""

from __future__ import annotations

import os
import platform
import subprocess
from datetime import UTC, datetime
from importlib.metadata import version
from typing import Any

from bench.usage import cores
from localstore.jars import PRAVEGA_VERSION
from localstore.java import jdk_tool


def describe_machine() -> dict[str, Any]:
    """Return the machine and the versions, for the results."""
    return {
        "date": datetime.now(UTC).isoformat(timespec="seconds"),
        "cores": cores(),
        "memoryBytes": os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES"),
        "loadAverage": round(os.getloadavg()[0], 2),
        "system": platform.platform(),
        "versions": {
            "sluice": version("sluice"),
            "python": platform.python_version(),
            "pyspark": version("pyspark"),
            "java": _java_version(),
            "pravega": PRAVEGA_VERSION,
        },
    }


def _java_version() -> str:
    """Return the version that the JVM prints on stderr: `openjdk version "17.0.15" ...`."""
    done = subprocess.run(
        [jdk_tool("java"), "-version"], capture_output=True, text=True, check=True, timeout=60
    )
    return done.stderr.splitlines()[0].split('"')[1]
