"""Programs that talk to a cluster."""

import shutil
from pathlib import Path

from localcluster.commands import Say
from localcluster.errors import LocalClusterError
from localcluster.toolchain import compile_go, module_version, programs
from localstore.cache import cache_root, make_once

_HELM = "helm.sh/helm/v3"


def kubectl() -> Path:
    """Finds kubectl: that of our own Kubernetes if it is compiled, else the one on PATH.

    Raises:
        LocalClusterError: There is none.
    """
    own = programs()
    if own.there:
        return own.kubectl
    found = shutil.which("kubectl")
    if found is None:
        raise LocalClusterError("kubectl not found: install it and put it on PATH")
    return Path(found)


def helm(say: Say = print) -> Path:
    """Gives Helm, compiled once for each version.

    It is compiled by the modules of our Kubernetes, with which it shares most of its packages: when
    those are compiled already, it takes seconds.

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
    """Gives the version of Helm, such as `v3.19.5`."""
    return module_version(_HELM)


def helm_folder() -> Path:
    """Gives the directory that holds Helm once it is compiled."""
    return cache_root() / f"helm-{helm_version()}"
