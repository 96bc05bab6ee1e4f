"""The choice of the cluster: an existing one, a kind cluster, or our own."""

import json
import os
from pathlib import Path

from localcluster import kind
from localcluster.cluster import Cluster
from localcluster.commands import run
from localcluster.existing import ExistingCluster, NamedImages
from localcluster.images.builder import Builder
from localcluster.images.imports import NodeImages
from localcluster.node.layout import Layout, state_folder
from localcluster.node.own import OwnCluster
from localcluster.tools import kubectl

_KIND_PREFIX = "kind-"


def choose() -> Cluster:
    """Choose the cluster for the tests and the demo.

    This is the cluster that SLUICE_KUBECONFIG names, if it is set. Otherwise it is a kind cluster
    if docker answers and kind is on PATH, else our own.

    Returns:
        The cluster, up or not.
    """
    named = os.environ.get("SLUICE_KUBECONFIG")
    if named:
        return _existing(Path(named).expanduser().absolute())
    if kind.usable():
        return kind.KindCluster()
    return OwnCluster()


def _existing(kubeconfig: Path) -> Cluster:
    if _is_own(kubeconfig):
        images = NodeImages(Layout.load(), Builder())
        return ExistingCluster(kubeconfig, images, ours=True)
    context = _context(kubeconfig)
    if context.startswith(_KIND_PREFIX) and kind.usable():
        name = context.removeprefix(_KIND_PREFIX)
        return ExistingCluster(kubeconfig, kind.KindImages(name), ours=False)
    return ExistingCluster(kubeconfig, NamedImages(), ours=False)


def _is_own(kubeconfig: Path) -> bool:
    """Tell whether a file is our own cluster's kubeconfig, or a copy of it."""
    own = state_folder() / "pki" / "admin.kubeconfig"
    return own.exists() and kubeconfig.exists() and own.read_bytes() == kubeconfig.read_bytes()


def _context(kubeconfig: Path) -> str:
    view = [str(kubectl()), f"--kubeconfig={kubeconfig}", "config", "view", "--output=json"]
    return str(json.loads(run(view)).get("current-context") or "")
