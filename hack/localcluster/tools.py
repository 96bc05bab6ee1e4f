"""Programs that talk to a cluster."""

import re
import shutil
from pathlib import Path
from typing import Final

from localcluster.commands import Say, run
from localcluster.errors import LocalClusterError
from localcluster.toolchain import compile_go, module_version, programs
from localstore.cache import cache_root, make_once

_HELM = "helm.sh/helm/v3"
_LEAST_HELM: Final = 17
"""The minor version of the first Helm 3 that has `--take-ownership`."""


def kubectl() -> Path:
    """Return kubectl: that of our own Kubernetes if it is compiled, else that on PATH.

    Raises:
        LocalClusterError: there is no kubectl.
    """
    own = programs()
    if own.there:
        return own.kubectl
    found = shutil.which("kubectl")
    if found is None:
        raise LocalClusterError("kubectl not found: install it and put it on PATH")
    return Path(found)


def helm(say: Say = print) -> Path:
    """Return Helm 3: that on PATH if it is new enough, else one that is compiled once.

    With our own Kubernetes, it is always the latter. The compilation uses the modules of our
    Kubernetes, which has most of Helm's packages. If they are compiled already, it takes seconds.

    Raises:
        LocalClusterError: Go is missing or too old, or the compiler failed.
    """
    if not programs().there and (found := _found_helm()) is not None:
        return found

    def build(target: Path) -> None:
        say(f"compiling Helm {helm_version()}, once ...")
        compile_go(
            f"{_HELM}/cmd/helm",
            into=target,
            linker_flags=f"-s -w -X {_HELM}/internal/version.version={helm_version()}",
            what="Helm",
            say=say,
        )

    return make_once(helm_folder(), build) / "helm"


def _found_helm() -> Path | None:
    """Return the Helm 3 on PATH, if it is new enough."""
    found = shutil.which("helm")
    said = "" if found is None else run([found, "version", "--template={{.Version}}"])
    version = re.match(r"v3\.(\d+)\.", said)
    if found is None or version is None or int(version[1]) < _LEAST_HELM:
        return None
    return Path(found)


def helm_version() -> str:
    """Return the version of Helm, such as `v3.19.5`."""
    return module_version(_HELM)


def helm_folder() -> Path:
    """Return the directory of the compiled Helm."""
    return cache_root() / f"helm-{helm_version()}"
