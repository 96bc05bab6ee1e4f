"""An installation after a Helm process was killed midway, as by an interrupt of `make demo`."""

from __future__ import annotations

import subprocess
from typing import TYPE_CHECKING
from uuid import uuid4

import pytest
import yaml

from localcluster import LocalClusterError, tools
from localcluster.release import take_back_interrupted
from support.search import few
from support.until import until

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from localcluster import Cluster

NAME = "some"


class Installed:
    """A namespace for a release of a chart that has a ConfigMap, and a pod that no node takes.

    Args:
        kube: the cluster.
        namespace: the namespace.
        folder: directory for the chart.
    """

    def __init__(self, kube: Cluster, namespace: str, folder: Path) -> None:
        self.kube = kube
        self.namespace = namespace
        meta = {"name": "{{ .Release.Name }}"}
        pod = {"nodeSelector": {"is": "none"}, "containers": [{"name": "c", "image": "none:1"}]}
        objects = [
            {"apiVersion": "v1", "kind": "ConfigMap", "metadata": meta},
            {"apiVersion": "v1", "kind": "Pod", "metadata": meta, "spec": pod},
        ]
        (folder / "templates").mkdir()
        (folder / "templates" / "all.yaml").write_text(yaml.safe_dump_all(objects))
        chart = {"apiVersion": "v2", "name": NAME, "version": "1.0.0"}
        (folder / "Chart.yaml").write_text(yaml.safe_dump(chart))
        self._words = ("upgrade", "--install", NAME, str(folder), f"--namespace={namespace}")

    def install(self) -> None:
        """Install or upgrade the chart."""
        self.kube.helm(*self._words)

    def kill_midway(self) -> None:
        """Install or upgrade the chart, and kill Helm while it waits for the pod."""
        access = f"--kubeconfig={self.kube.kubeconfig}"
        words = [tools.helm(), access, *self._words, "--wait", "--timeout=600s"]
        with subprocess.Popen(words, stdout=subprocess.PIPE, stderr=subprocess.STDOUT) as helm:
            try:
                until("Helm waits for the pod", lambda: self.status.startswith("pending"))
                assert helm.poll() is None
            finally:
                helm.kill()

    @property
    def status(self) -> str:
        """The release's status, as Helm reports it; empty without a release."""
        told = self.kube.helm("list", "--all", f"--namespace={self.namespace}", "--output=json")
        return "".join(one["status"] for one in yaml.safe_load(told))


@pytest.fixture
def installed(kube: Cluster, tmp_path: Path) -> Iterator[Installed]:
    """Yield a namespace for the release."""
    namespace = f"release-{uuid4().hex[:12]}"
    kube.kubectl("create", "namespace", namespace)
    yield Installed(kube, namespace, tmp_path)
    kube.kubectl("delete", "namespace", namespace, "--wait=false")


@pytest.mark.parametrize("there", few([True, False], 1), ids=["upgrade", "first"])
def test_an_installation_goes_on_after_a_helm_that_was_killed(
    installed: Installed, *, there: bool
) -> None:
    """After a killed Helm, a first release is removed and a later one is rolled back."""
    if there:
        installed.install()
    installed.kill_midway()
    assert installed.status == ("pending-upgrade" if there else "pending-install")
    with pytest.raises(LocalClusterError, match="another operation"):
        installed.install()
    take_back_interrupted(installed.kube, NAME, installed.namespace)
    installed.install()
    assert installed.status == "deployed"
