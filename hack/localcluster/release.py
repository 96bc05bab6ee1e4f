"""Sluice itself in the cluster: its image, and its chart as an administrator installs it."""

import json
import tempfile
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from localcluster.cluster import Cluster
from localcluster.commands import Say
from localcluster.image import Image
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
    """Describes the image; its tag follows from its content."""
    return Image("localhost/sluice", ROOT)


def install(
    cluster: Cluster,
    image: str,
    *,
    values: Mapping[str, Any] | None = None,
    say: Say = print,
) -> None:
    """Installs the chart, or upgrades it, and returns when the operator is ready.

    Args:
        cluster: Where to.
        image: The image's reference.
        values: What differs from the chart's own values.
        say: Told what takes long.

    Raises:
        LocalClusterError: It does not become ready.
    """
    repository, _, tag = image.rpartition(":")
    wanted = {**(values or {}), "image": {"repository": repository, "tag": tag}}
    restrict(cluster, NAMESPACE)
    with tempfile.NamedTemporaryFile("w", suffix=".json") as file, step(say, "helm install sluice"):
        json.dump(wanted, file)
        file.flush()
        cluster.helm(
            *("upgrade", "--install", NAME, str(CHART), f"--namespace={NAMESPACE}"),
            "--take-ownership",  # of definitions that somebody applied by hand
            *(f"--values={file.name}", "--wait", f"--timeout={_READY_SECONDS}s"),
            timeout=_READY_SECONDS + 30,
        )


def uninstall(cluster: Cluster) -> None:
    """Uninstalls the chart; resources and their definitions stay, whatever they hold in a store."""
    cluster.helm(
        *("uninstall", NAME, f"--namespace={NAMESPACE}"),
        *("--no-hooks", "--ignore-not-found", "--wait"),
    )


def restrict(cluster: Cluster, namespace: str) -> None:
    """Makes a namespace that admits restricted pods only, unless it is there."""
    made = cluster.kubectl("create", "namespace", namespace, "--dry-run=client", "--output=yaml")
    cluster.kubectl("apply", "--filename=-", stdin=made)
    cluster.kubectl("label", "namespace", namespace, RESTRICTED, "--overwrite")
