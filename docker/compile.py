# noqa: INP001 - a script of the Dockerfile's
"""Compile the package's C extension beside its source, unless its binary exists already.

    compile.py PACKAGE

The extension is optional. Without a C compiler the package does the same work in Python.
"""

from __future__ import annotations

import hashlib
import shlex
import shutil
import subprocess
import sys
import sysconfig
import tempfile
import time
from pathlib import Path

SOURCE = Path("core/events/_framing.c")


class NoCompiler(Exception):
    """A machine without a C compiler, or without Python's headers."""


def compile_extension(package: Path) -> bool:
    """Compile the extension of the package in a folder.

    A binary in its place is always complete, and made from the present source.

    Returns:
        Whether the extension was compiled; False if its binary was up to date.

    Raises:
        NoCompiler: the compiler or a header is missing. A binary of another source is removed.
        subprocess.CalledProcessError: the compiler failed.
    """
    source = package / SOURCE
    binary = source.with_suffix(".abi3.so")
    linker = shlex.split(sysconfig.get_config_var("LDSHARED") or "cc -shared")
    headers = sysconfig.get_path("include")
    # -g0: notes for debuggers would name this folder, so each folder would give other bytes.
    command = [*linker, "-fPIC", "-O2", "-g0", "-Wall", "-Wextra", f"-I{headers}"]
    contents = [source.read_bytes(), repr(command).encode(), sysconfig.get_platform().encode()]
    fingerprint = hashlib.sha256(b"\0".join(contents)).hexdigest()
    if binary.exists():
        if fingerprint.encode() in binary.read_bytes():
            return False
        binary.unlink()
    if shutil.which(linker[0]) is None:
        raise NoCompiler(f"no C compiler ({linker[0]})")
    if not Path(headers, "Python.h").exists():
        raise NoCompiler(f"no {headers}/Python.h")
    with tempfile.TemporaryDirectory(dir=source.parent) as folder:
        made = Path(folder, binary.name)
        define = f'-DFINGERPRINT="{fingerprint}"'
        subprocess.run(  # noqa: S603 - a command of our own
            [*command, define, source, "-o", made], check=True, capture_output=True, text=True
        )
        made.replace(binary)
    return True


def main() -> None:
    """Compile the extension and print a line, or print why Python has to do its work."""
    started = time.monotonic()
    try:
        if compile_extension(Path(sys.argv[1])):
            print(f"compiling {SOURCE.name} ... {time.monotonic() - started:.1f} s")  # noqa: T201
    except NoCompiler as reason:
        print(f"{reason}: events are counted in Python, which is slower")  # noqa: T201
    except subprocess.CalledProcessError as error:
        sys.exit(f"compiling {SOURCE.name} ... failed:\n{error.stderr}")


if __name__ == "__main__":
    main()
