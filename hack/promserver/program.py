"""The programs of Debian's package `prometheus`, downloaded once."""

import shutil
import tempfile
from pathlib import Path
from typing import NamedTuple

from localcluster.commands import Say, run
from localcluster.errors import LocalClusterError
from localstore.cache import cache_root, make_once

_PACKAGE = "prometheus"
_SECONDS = 900.0


class Programs(NamedTuple):
    """The server, and the tool that checks rules."""

    prometheus: Path
    promtool: Path


def programs(say: Say = print) -> Programs:
    """Return the programs on PATH; if there are none, those of the Debian package.

    The package is unpacked into the cache. If it was installed, a server would run on its port.

    Raises:
        LocalClusterError: apt cannot download the package.
    """
    names = ("prometheus", "promtool")
    installed = [shutil.which(name) for name in names]
    if all(installed):
        return Programs(*(Path(path) for path in installed if path))

    def unpack(target: Path) -> None:
        say("downloading Debian's package prometheus, once ...")
        with tempfile.TemporaryDirectory() as folder:
            package = _download(Path(folder))
            run(["dpkg-deb", "--extract", package, target], seconds=_SECONDS)

    folder = make_once(cache_root() / "prometheus-debian", unpack) / "usr" / "bin"
    return Programs(*(folder / name for name in names))


def _download(folder: Path) -> Path:
    """Download the package into a directory. Refresh apt's lists if they do not have it."""
    download = ["apt-get", "download", "-qq", _PACKAGE]
    try:
        run(download, seconds=_SECONDS, folder=folder)
    except LocalClusterError:
        run(["apt-get", "update", "-qq"], seconds=_SECONDS)
        run(download, seconds=_SECONDS, folder=folder)
    (package,) = folder.glob(f"{_PACKAGE}_*.deb")
    return package
