"""An S3 gateway in a cluster: an image with the program, and a Deployment with a Service."""

import hashlib
import json
import secrets
from pathlib import Path
from typing import Any

from localcluster import Cluster, Image
from localcluster.commands import Say
from localcluster.files import link_or_copy
from localcluster.progress import step
from localstore.cache import cache_root, content_key, make_once
from s3gateway.program import VERSION, versitygw

NAMESPACE = "s3gateway"
NAME = "versitygw"
PORT = 7070

_DOCKERFILE = Path(__file__).parents[1] / "cluster" / "images" / NAME / "Dockerfile"
_USER = 65532
_READY_SECONDS = 120

# A restarted container finds the old volume, hence `mkdir -p`. The shell is the container's first
# process, which cannot be killed from inside; so tests can kill the program.
_START = 'mkdir -p "/data/meta" "/data/buckets/$0" && "$@" & wait "$!"'


def gateway_image(say: Say = print) -> Image:
    """Return the image's description, and compile the program once for each version.

    Raises:
        LocalClusterError: Go is missing or too old, or the compiler failed.
    """
    program = versitygw(say)
    key = content_key([_DOCKERFILE, program])

    def gather(context: Path) -> None:
        link_or_copy(program, context / NAME)

    return Image(
        f"localhost/{NAME}:{VERSION}-{key}",
        context=make_once(cache_root() / f"{NAME}-image-{key}", gather),
        dockerfile=_DOCKERFILE,
        settled=True,
    )


class ClusterGateway:
    """A gateway with a bucket. Its data outlast its process, but not its pod.

    Args:
        cluster: the cluster, which must be up.
        bucket: the bucket's name.
    """

    def __init__(self, cluster: Cluster, bucket: str) -> None:
        self._cluster = cluster
        self.bucket = bucket
        self.access = "sluice"
        self.secret = secrets.token_hex(16)

    @property
    def endpoint(self) -> str:
        """The gateway's URL for pods."""
        return f"http://{NAME}.{NAMESPACE}.svc:{PORT}"

    def up(self, say: Say = print) -> None:
        """Start the gateway and wait until it serves.

        Raises:
            LocalClusterError: the gateway does not start.
        """
        image = self._cluster.provide(gateway_image(say), say=say)
        self._apply(_namespace())
        self._apply(self._keys(), self._deployment(image), _service())
        with step(say, f"waiting for {NAME}"):
            self.wait_ready()

    def down(self) -> None:
        """Delete the gateway with all its data."""
        self._cluster.kubectl("delete", "namespace", NAMESPACE, "--ignore-not-found", timeout=120)

    def kill(self) -> None:
        """Kill the gateway's process, as in a crash. Kubernetes restarts the container."""
        kill = f"kill -9 $(pidof {NAME})"
        self._kubectl("exec", f"deployment/{NAME}", "--", "sh", "-c", kill)

    def wait_ready(self) -> None:
        """Wait until the gateway serves."""
        self._kubectl(
            *("rollout", "status", f"deployment/{NAME}", f"--timeout={_READY_SECONDS}s"),
            timeout=_READY_SECONDS + 10,
        )

    def _apply(self, *objects: dict[str, Any]) -> None:
        items = {"apiVersion": "v1", "kind": "List", "items": list(objects)}
        self._cluster.kubectl("apply", "--filename=-", stdin=json.dumps(items))

    def _kubectl(self, *arguments: str, timeout: float = 60.0) -> str:
        return self._cluster.kubectl(f"--namespace={NAMESPACE}", *arguments, timeout=timeout)

    def _keys(self) -> dict[str, Any]:
        keys = {"ROOT_ACCESS_KEY_ID": self.access, "ROOT_SECRET_ACCESS_KEY": self.secret}
        return {"apiVersion": "v1", "kind": "Secret", "metadata": _metadata(), "stringData": keys}

    def _deployment(self, image: str) -> dict[str, Any]:
        words = [NAME, f"--port=:{PORT}", "--quiet", "posix", "--sidecar=/data/meta"]
        container = {
            "name": NAME,
            "image": image,
            "imagePullPolicy": "IfNotPresent",
            "command": ["sh", "-c", _START, self.bucket, *words, "/data/buckets"],
            "envFrom": [{"secretRef": {"name": NAME}}],
            "readinessProbe": {"tcpSocket": {"port": PORT}, "periodSeconds": 1},
            "securityContext": {
                "allowPrivilegeEscalation": False,
                "readOnlyRootFilesystem": True,
                "capabilities": {"drop": ["ALL"]},
            },
            "volumeMounts": [{"name": "data", "mountPath": "/data"}],
        }
        pod = {
            "automountServiceAccountToken": False,
            "terminationGracePeriodSeconds": 1,
            "securityContext": {
                "runAsNonRoot": True,
                "runAsUser": _USER,
                "fsGroup": _USER,
                "seccompProfile": {"type": "RuntimeDefault"},
            },
            "containers": [container],
            "volumes": [{"name": "data", "emptyDir": {}}],
        }
        # A pod with other keys is replaced.
        known = {"s3gateway/keys": hashlib.sha256(self.secret.encode()).hexdigest()}
        return {
            "apiVersion": "apps/v1",
            "kind": "Deployment",
            "metadata": _metadata(),
            "spec": {
                "strategy": {"type": "Recreate"},
                "selector": {"matchLabels": _LABELS},
                "template": {"metadata": {"labels": _LABELS, "annotations": known}, "spec": pod},
            },
        }


_LABELS = {"app.kubernetes.io/name": NAME}


def _namespace() -> dict[str, Any]:
    labels = {"pod-security.kubernetes.io/enforce": "restricted"}
    return {
        "apiVersion": "v1",
        "kind": "Namespace",
        "metadata": {"name": NAMESPACE, "labels": labels},
    }


def _service() -> dict[str, Any]:
    spec = {"selector": _LABELS, "ports": [{"port": PORT}]}
    return {"apiVersion": "v1", "kind": "Service", "metadata": _metadata(), "spec": spec}


def _metadata() -> dict[str, Any]:
    return {"name": NAME, "namespace": NAMESPACE, "labels": _LABELS}
