"""Programs that talk to a cluster."""

import shutil
from pathlib import Path

from localcluster.commands import Say, watch
from localcluster.errors import LocalClusterError
from localcluster.toolchain import GO_BUILD, GO_ENVIRONMENT, go_tool, programs
from localstore.cache import cache_root, make_once

HELM_VERSION = "v3.19.5"

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

    Raises:
        LocalClusterError: Go is missing or too old, or the compiler failed.
    """

    def build(target: Path) -> None:
        say(f"compiling Helm {HELM_VERSION}, once ...")
        version = f"-s -w -X {_HELM}/internal/version.version={HELM_VERSION}"
        watch(
            [
                go_tool(),
                "install",
                *GO_BUILD,
                f"-ldflags={version}",
                f"{_HELM}/cmd/helm@{HELM_VERSION}",
            ],
            sign=lambda _: "still compiling Helm",
            say=say,
            environment={**GO_ENVIRONMENT, "GOBIN": str(target)},
        )

    return make_once(helm_folder(), build) / "helm"


def helm_folder() -> Path:
    """Gives the directory that holds Helm once it is compiled."""
    return cache_root() / f"helm-{HELM_VERSION}"
