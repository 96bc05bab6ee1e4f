"""Build the Job that makes the sample stream inside of the cluster. Pure."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Final, NamedTuple

from sluice.core.values import text
from sluice.kube.jobs.mounts import CREDENTIALS_DIR, login_volumes
from sluice.kube.jobs.pods import CONTAINER_SECURITY, POD_SECURITY

if TYPE_CHECKING:
    from sluice.core.values.model import StoreAddress
    from sluice.kube.api.kinds import Object

DEADLINE: Final = 300
"""Seconds from the start until Kubernetes ends the Job. A node may have to pull the image first."""

_KEPT: Final = 600
"""Seconds for which a finished Job and its log stay."""

_LABELS: Final = {
    "app.kubernetes.io/name": "sluice",
    "app.kubernetes.io/managed-by": "sluice-init",
    "app.kubernetes.io/component": "sample",
}


class PodImage(NamedTuple):
    """The image of a pod, and how nodes get it.

    Attributes:
        image: the image's reference.
        pull_policy: when nodes pull it.
        pull_secrets: the names of Secrets to pull it with, in the pod's namespace.
    """

    image: str
    pull_policy: str = "IfNotPresent"
    pull_secrets: tuple[str, ...] = ()


def sample_job(namespace: str, address: StoreAddress, image: PodImage) -> Object:
    """Build the Job. Its name follows from its content, so equal names mean equal work.

    Args:
        namespace: its namespace, which has the store's Secret.
        address: the store's address.
        image: Sluice's own image.
    """
    pod = _pod(address, image)
    digest = text.short_hash(json.dumps(pod, sort_keys=True))
    return {
        "apiVersion": "batch/v1",
        "kind": "Job",
        "metadata": {
            "name": f"sluice-sample-{digest}",
            "namespace": namespace,
            "labels": dict(_LABELS),
        },
        "spec": {
            "backoffLimit": 0,  # the pod itself is patient with the store
            "activeDeadlineSeconds": DEADLINE,
            "ttlSecondsAfterFinished": _KEPT,
            "template": {"metadata": {"labels": dict(_LABELS)}, "spec": pod},
        },
    }


def _pod(address: StoreAddress, image: PodImage) -> Object:
    volumes, mounts = login_volumes([address], scratch="64Mi")
    login = [f"--secret={address.secret}"] if address.secret else []
    pod: Object = {
        "securityContext": POD_SECURITY,
        "enableServiceLinks": False,
        "automountServiceAccountToken": False,
        "restartPolicy": "Never",
        "volumes": volumes,
        "containers": [
            {
                "name": "sample",
                "image": image.image,
                "imagePullPolicy": image.pull_policy,
                "args": ["sluice", "sample", f"--uri={address.uri}", *login],
                "env": [
                    {"name": "SLUICE_CREDENTIALS_DIR", "value": CREDENTIALS_DIR},
                    {"name": "SLUICE_TERMINATION_LOG", "value": "/dev/termination-log"},
                    {"name": "HOME", "value": "/tmp"},  # noqa: S108 - the pod's own emptyDir
                ],
                "resources": {
                    "requests": {"cpu": "100m", "memory": "128Mi"},
                    "limits": {"memory": "512Mi"},
                },
                "securityContext": CONTAINER_SECURITY,
                "volumeMounts": mounts,
            }
        ],
    }
    if image.pull_secrets:
        pod["imagePullSecrets"] = [{"name": name} for name in image.pull_secrets]
    return pod
