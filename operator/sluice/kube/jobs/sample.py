"""Build the Job that makes the sample stream inside of the cluster. Pure."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any, Final, NamedTuple

from sluice.core.values import text
from sluice.kube.jobs.mounts import CREDENTIALS_DIR, login_volumes
from sluice.kube.jobs.pods import CONTAINER_SECURITY, POD_SECURITY

if TYPE_CHECKING:
    from collections.abc import Iterator

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

_FIELDS: Final = {
    "spec": {"completionMode", "podReplacementPolicy", "selector", "suspend"},
    "spec.template.spec": {
        "affinity",
        "dnsPolicy",
        "imagePullSecrets",
        "nodeName",
        "nodeSelector",
        "overhead",
        "preemptionPolicy",
        "priority",
        "priorityClassName",
        "runtimeClassName",
        "schedulerName",
        "serviceAccount",
        "serviceAccountName",
        "terminationGracePeriodSeconds",
        "tolerations",
        "topologySpreadConstraints",
    },
    "spec.template.spec.containers[0]": {"terminationMessagePath", "terminationMessagePolicy"},
}
"""Fields of the Job that the API server fills in, or an administrator's rules, which do not change
the work: they say where the pod runs, and how it is found."""


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
            "completions": 1,
            "parallelism": 1,
            "activeDeadlineSeconds": DEADLINE,
            "ttlSecondsAfterFinished": _KEPT,
            "template": {"metadata": {"labels": dict(_LABELS)}, "spec": pod},
        },
    }


def added(wanted: Object, found: Object) -> Iterator[str]:
    """Yield the fields of a Job that could change its work, and that the wanted Job does not have.

    A user who may make Jobs can make one of this name, with another command or another container
    before it. Fields that both have are not compared.

    Args:
        wanted: a Job that `sample_job` has built.
        found: the Job of its name in the cluster.
    """
    for path, harmless in _FIELDS.items():
        ours, theirs = _at(wanted, path), _at(found, path)
        for name, value in theirs.items():
            if name not in ours and name not in harmless and value not in _EMPTY:
                yield f"{path}.{name}"


_EMPTY: Final[tuple[Any, ...]] = (None, False, "", [], {})


def _at(job: Object, path: str) -> Object:
    """Return a part of a Job that is a mapping; an empty one if there is none."""
    found: Any = job
    for name in path.split("."):
        key, _, at = name.partition("[")
        found = found.get(key) if isinstance(found, dict) else None
        if at:
            found = found[0] if isinstance(found, list) and found else None
    return found if isinstance(found, dict) else {}


def _pod(address: StoreAddress, image: PodImage) -> Object:
    volumes, mounts = login_volumes([address], scratch="64Mi")
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
                "args": ["sluice", "sample", f"--address={address.model_dump_json()}"],
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
