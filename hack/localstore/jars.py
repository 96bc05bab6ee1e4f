"""Pravega's jars, downloaded once for each version of `pom.xml`."""

import os
import shutil
import subprocess
import time
from collections.abc import Callable
from pathlib import Path

from localstore.cache import cache_root, content_key, make_once
from localstore.errors import LocalStoreError
from localstore.java import BRIEF, jdk_tool

PRAVEGA_VERSION = "0.13.0"

_POM = Path(__file__).with_name("pom.xml")
_SECONDS_TO_DOWNLOAD = 1800


def ensure_jars(say: Callable[[str], None] = print) -> Path:
    """Return the directory with the jars of Pravega's server and client. Download them if needed.

    Args:
        say: callback for progress messages of a download.

    Returns:
        The complete directory.

    Raises:
        LocalStoreError: a JDK or Maven is missing, or Maven failed.
    """

    def download(target: Path) -> None:
        say(f"downloading Pravega {PRAVEGA_VERSION}: 302 jars, 160 MB, once, with Maven ...")
        started = time.monotonic()
        copy_jars(_POM, target)
        say(f"... downloaded in {time.monotonic() - started:.0f} s")

    key = content_key([_POM])
    return make_once(cache_root() / f"pravega-{PRAVEGA_VERSION}-{key}", download)


def classpath(*before: Path) -> str:
    """Return the class path of all jars, with directories of classes in front."""
    return ":".join([*map(str, before), f"{ensure_jars()}/*"])


def copy_jars(pom: Path, target: Path) -> None:
    """Download the jars that a project needs at run time.

    Args:
        pom: the project's `pom.xml`.
        target: directory for the jars.

    Raises:
        LocalStoreError: a JDK or Maven is missing, or Maven failed.
    """
    jdk_tool("java")
    maven = shutil.which("mvn")
    if maven is None:
        raise LocalStoreError(
            "mvn not found: install Maven 3.6.3 or newer (Debian: apt install maven)"
        )
    command = [
        maven,
        "--batch-mode",
        "--quiet",
        f"--file={pom}",
        "dependency:copy-dependencies",
        "-DincludeScope=runtime",
        f"-DoutputDirectory={target}",
    ]
    options = " ".join([*BRIEF, os.environ.get("MAVEN_OPTS", "")])
    try:
        done = subprocess.run(
            command,
            capture_output=True,
            text=True,
            check=False,
            timeout=_SECONDS_TO_DOWNLOAD,
            env={**os.environ, "MAVEN_OPTS": options},
        )
    except subprocess.TimeoutExpired as error:
        raise LocalStoreError(f"Maven did not finish in {_SECONDS_TO_DOWNLOAD} s") from error
    if done.returncode != 0:
        tail = "\n".join((done.stdout + done.stderr).splitlines()[-20:])
        raise LocalStoreError(f"Maven failed ({done.returncode}):\n{tail}")
