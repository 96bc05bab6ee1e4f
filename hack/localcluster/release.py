"""Sluice itself in the cluster: its image, and its chart, installed as by an administrator."""

import json
import tempfile
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from localcluster.cluster import FOR_TESTS, Cluster
from localcluster.commands import Say
from localcluster.images.image import Image
from localcluster.progress import step

ROOT = Path(__file__).parents[2]
CHART = ROOT / "helm" / "sluice"
NAMESPACE = "sluice-system"
NAME = "sluice"
TEST_DEFINITIONS = "sluice.dev/made-by=tests"
"""The label of definitions that tests have made for themselves."""
RESTRICTED = "pod-security.kubernetes.io/enforce=restricted"

_READY_SECONDS = 120


def sluice_image() -> Image:
    """Return the image's description. The tag follows from its content."""
    return Image("localhost/sluice", ROOT)


def query_image() -> Image:
    """Return the description of the image of queries."""
    return Image("localhost/sluice-query", ROOT, stage="sluice-query")


def install(
    cluster: Cluster,
    image: str,
    *,
    values: Mapping[str, Any] | None = None,
    say: Say = print,
) -> None:
    """Install or upgrade the chart, and wait until the operator is ready.

    Args:
        cluster: the cluster to install in.
        image: the image's reference.
        values: values that differ from the chart's defaults.
        say: callback for progress messages.

    Raises:
        LocalClusterError: the operator does not become ready.
    """
    repository, _, tag = image.rpartition(":")
    wanted = {**(values or {}), "image": {"repository": repository, "tag": tag}}
    restrict(cluster, NAMESPACE)
    take_back_interrupted(cluster, NAME, NAMESPACE)
    with tempfile.NamedTemporaryFile("w", suffix=".json") as file, step(say, "helm install sluice"):
        json.dump(wanted, file)
        file.flush()
        cluster.helm(
            *("upgrade", "--install", NAME, str(CHART), f"--namespace={NAMESPACE}"),
            "--take-ownership",  # of definitions that were applied by hand
            *(f"--values={file.name}", "--wait", f"--timeout={_READY_SECONDS}s"),
            timeout=_READY_SECONDS + 30,
        )


def take_back_interrupted(cluster: Cluster, name: str, namespace: str) -> None:
    """Undo an installation whose Helm was killed. Until then Helm refuses any other.

    Args:
        cluster: the cluster.
        name: the release.
        namespace: the release's namespace.
    """
    here = f"--namespace={namespace}"
    pending = cluster.helm("list", "--pending", here, f"--filter=^{name}$", "--output=json")
    for release in json.loads(pending):
        if release["revision"] == "1":
            uninstall(cluster, name, namespace)
        else:
            cluster.helm("rollback", name, here)


def uninstall(cluster: Cluster, name: str = NAME, namespace: str = NAMESPACE) -> None:
    """Uninstall a chart. Resources, their definitions and their data in stores stay."""
    words = ("--no-hooks", "--ignore-not-found", "--wait")
    cluster.helm("uninstall", name, f"--namespace={namespace}", *words)


def restrict(cluster: Cluster, namespace: str) -> None:
    """Ensure that a namespace exists and admits only restricted pods."""
    made = cluster.kubectl("create", "namespace", namespace, "--dry-run=client", "--output=yaml")
    cluster.kubectl("apply", "--filename=-", stdin=made)
    labels = (RESTRICTED, f"{FOR_TESTS}=yes")
    cluster.kubectl("label", "namespace", namespace, *labels, "--overwrite")
