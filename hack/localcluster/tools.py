"""Programs that talk to a cluster."""

import shutil
from pathlib import Path

from localcluster.commands import Say
from localcluster.errors import LocalClusterError
from localcluster.toolchain import compile_go, module_version, programs
from localstore.cache import cache_root, make_once

_HELM = "helm.sh/helm/v3"


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
    """Return Helm, compiled once for each version.

    The compilation uses the modules of our Kubernetes, which has most of Helm's packages. If they
    are compiled already, it takes seconds.

    Raises:
        LocalClusterError: Go is missing or too old, or the compiler failed.
    """

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


def helm_version() -> str:
    """Return the version of Helm, such as `v3.19.5`."""
    return module_version(_HELM)


def helm_folder() -> Path:
    """Return the directory of the compiled Helm."""
    return cache_root() / f"helm-{helm_version()}"
