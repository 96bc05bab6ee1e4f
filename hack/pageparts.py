"""Fetch the library that draws the charts of the gateway's pages: uPlot, by npm.

This repository does not contain the library's files. The tool puts them into the places where a
checkout, a wheel and the build of the image of queries look for them. npm's own settings apply. The
fetched package must have the hash below.
"""

from __future__ import annotations

import hashlib
import os
import shutil
import subprocess
import sys
import tarfile
from pathlib import Path

from localcluster.packages import install, is_debian
from localstore.cache import cache_root, make_once

VERSION = "1.6.32"
SHA256 = "4b8a8191e425658e3ea8c8c1314b0fc679c861ee3a1af2b20c7b16ba50b5133d"
FILES = {
    "package/dist/uPlot.iife.min.js": "uPlot.iife.min.js",
    "package/dist/uPlot.min.css": "uPlot.min.css",
    "package/LICENSE": "LICENSE",
    "package/package.json": "package.json",
}
"""The files of the package that are used, with their names here."""

ROOT = Path(__file__).parents[1]
PLACES = (ROOT / "operator/sluice/serving/page/vendor", ROOT / "docker/page-parts")
"""The folders for the files: of a checkout and its wheels, and of the image's build."""

_SECONDS = 120


class PagePartsError(Exception):
    """A library that cannot be fetched."""


def fetched() -> Path:
    """Return the folder of the files. The first call fetches them.

    Raises:
        PagePartsError: npm is missing or fails, or the package is another one.
    """
    return make_once(cache_root() / f"npm-uplot-{VERSION}", _fetch)


def _fetch(folder: Path) -> None:
    _provide_npm()
    words = ["npm", "pack", f"uplot@{VERSION}", "--silent", "--ignore-scripts"]
    try:
        subprocess.run(words, cwd=folder, check=True, timeout=_SECONDS, stdout=subprocess.DEVNULL)
    except (OSError, subprocess.SubprocessError) as error:
        raise PagePartsError(f"npm cannot fetch uplot {VERSION}: {error}") from error
    archive = folder / f"uplot-{VERSION}.tgz"
    found = hashlib.sha256(archive.read_bytes()).hexdigest()
    if found != SHA256:
        raise PagePartsError(f"uplot {VERSION} has the hash {found}, and not {SHA256}")
    with tarfile.open(archive) as package:
        for name, target in FILES.items():
            member = package.extractfile(name)
            if member is None:
                raise PagePartsError(f"uplot {VERSION} has no file {name}")
            (folder / target).write_bytes(member.read())
    archive.unlink()


def _provide_npm() -> None:
    if shutil.which("npm") is not None:
        return
    if os.geteuid() != 0 or not is_debian():
        raise PagePartsError("please install npm (on Debian or Ubuntu: sudo apt install npm)")
    install(["npm"])


def place(targets: tuple[Path, ...] = PLACES) -> None:
    """Put the files into each place that lacks them."""
    source = fetched()
    for target in targets:
        for name in FILES.values():
            there = target / name
            if not there.exists() or there.read_bytes() != (source / name).read_bytes():
                target.mkdir(parents=True, exist_ok=True)
                shutil.copyfile(source / name, there)


if __name__ == "__main__":
    try:
        place()
    except PagePartsError as error:
        sys.exit(f"error: {error}")
