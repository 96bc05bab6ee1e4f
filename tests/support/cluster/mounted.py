"""A PersistentVolumeClaim with a directory of a node behind it."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any, Self
from uuid import uuid4

if TYPE_CHECKING:
    from localcluster import Cluster

_ROOT = "/var/lib/sluice-tests"
_SECONDS = 60


class MountedClaim:
    """The claim and its volume, of a kind whose files go to the group that a pod names.

    Args:
        cluster: the cluster.
        namespace: the claim's namespace.
        image: an image with a shell, for the directory.

    Attributes:
        name: the claim's name.
    """

    def __init__(self, cluster: Cluster, namespace: str, image: str) -> None:
        self.name = f"shelf-{uuid4().hex[:8]}"
        self._cluster = cluster
        self._namespace = namespace
        self._image = image
        path = "jsonpath={.items[0].metadata.name}"
        self._node = cluster.kubectl("get", "nodes", f"--output={path}")

    def __enter__(self) -> Self:
        """Make the directory, the volume and the claim."""
        self._on_node(f"mkdir -p /root/{self.name}")
        size = {"storage": "1Gi"}
        common = {"accessModes": ["ReadWriteMany"], "storageClassName": self.name}
        here = {"key": "metadata.name", "operator": "In", "values": [self._node]}
        volume = {
            "capacity": size,
            "local": {"path": f"{_ROOT}/{self.name}"},
            "nodeAffinity": {"required": {"nodeSelectorTerms": [{"matchFields": [here]}]}},
        }
        claim = {"resources": {"requests": size}, "volumeName": self.name}
        for kind, spec in (("PersistentVolume", volume), ("PersistentVolumeClaim", claim)):
            body = {"apiVersion": "v1", "kind": kind, "metadata": {"name": self.name}}
            self._apply(body | {"spec": common | spec})
        return self

    def __exit__(self, *_: object) -> None:
        """Remove claim, volume and directory."""
        self._kubectl("delete", "pvc", self.name, "--wait=false")
        self._kubectl("delete", "pv", self.name, "--wait=false")
        self._on_node(f"rm -rf /root/{self.name}")

    def _on_node(self, script: str) -> None:
        """Run a script as the node's root, who sees the directories of all claims in /root."""
        name = f"{self.name}-{uuid4().hex[:8]}"
        container = {
            "name": "script",
            "image": self._image,
            "command": ["sh", "-c", script],
            "volumeMounts": [{"name": "root", "mountPath": "/root"}],
        }
        folder = {"path": _ROOT, "type": "DirectoryOrCreate"}
        spec = {
            "nodeName": self._node,
            "restartPolicy": "Never",
            "securityContext": {"runAsUser": 0},
            "containers": [container],
            "volumes": [{"name": "root", "hostPath": folder}],
        }
        pod = {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": name}, "spec": spec}
        there = "--namespace=default"
        self._cluster.kubectl(there, "apply", "--filename=-", stdin=json.dumps(pod))
        done = "--for=jsonpath={.status.phase}=Succeeded"
        wait = ("wait", f"pod/{name}", done, f"--timeout={_SECONDS}s")
        self._cluster.kubectl(there, *wait, timeout=_SECONDS + 10)
        self._cluster.kubectl(there, "delete", "pod", name, "--wait=false")

    def _apply(self, body: dict[str, Any]) -> None:
        self._kubectl("apply", "--filename=-", stdin=json.dumps(body))

    def _kubectl(self, *words: str, stdin: str | None = None) -> str:
        return self._cluster.kubectl(f"--namespace={self._namespace}", *words, stdin=stdin)
