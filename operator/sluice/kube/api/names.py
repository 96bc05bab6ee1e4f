"""Names, labels, annotations and owners of the objects that the operator makes for a copy."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from sluice.api.fields.common import GROUP
from sluice.core.reconcile.copies.statuses.base import job_prefix
from sluice.core.values import text

if TYPE_CHECKING:
    from sluice.kube.api.kinds import Kind, Object

UID_LABEL: Final = f"{GROUP}/copy-uid"
ATTEMPT_LABEL: Final = f"{GROUP}/attempt"
CONTROLS_ANNOTATION: Final = f"{GROUP}/controls-of-generation"
RUNTIME_ANNOTATION: Final = f"{GROUP}/runtime-hash"
MANAGED: Final = "app.kubernetes.io/managed-by=sluice-operator"


def child_labels(uid: str, component: str) -> dict[str, str]:
    """Return the labels of an object that belongs to a copy."""
    return {
        "app.kubernetes.io/name": "sluice",
        "app.kubernetes.io/managed-by": "sluice-operator",
        "app.kubernetes.io/component": component,
        UID_LABEL: uid,
    }


@dataclass(frozen=True, slots=True, kw_only=True)
class Child:
    """The copy that owns an object."""

    kind: Kind
    namespace: str
    name: str
    uid: str

    def __str__(self) -> str:
        """Return `Kind/namespace/name`, for messages and for drivers."""
        return f"{self.kind.name}/{self.namespace}/{self.name}"

    def metadata(self, name: str, component: str, **labels: str) -> Object:
        """Return a child's metadata: labels, and an owner reference to delete it with the copy."""
        return {
            "name": name,
            "namespace": self.namespace,
            "labels": child_labels(self.uid, component) | labels,
            "ownerReferences": [
                {
                    "apiVersion": self.kind.api_version,
                    "kind": self.kind.name,
                    "name": self.name,
                    "uid": self.uid,
                    "controller": True,
                    "blockOwnerDeletion": False,
                }
            ],
        }


def copy_of(body: Object) -> tuple[str, str]:
    """Return the namespace of an object, and the copy's UID in its label; empty without one."""
    meta = body["metadata"]
    return meta["namespace"], str((meta.get("labels") or {}).get(UID_LABEL, ""))


def uid_of(body: Object) -> tuple[str, str]:
    """Return the namespace and the UID of an object."""
    return body["metadata"]["namespace"], str(body["metadata"].get("uid", ""))


def is_child(body: Object, uid: str) -> bool:
    """Tell whether the copy with this UID controls an object. Labels prove nothing."""
    return any(one.get("controller") and one["uid"] == uid for one in _owners(body))


def is_pod_of(pod: Object, uid: str) -> bool:
    """Tell whether a pod is a driver or an executor of a copy.

    Pods may outlive their Job, so only the Job's name in the owner reference is compared. A forged
    reference does not help for long: Kubernetes deletes a pod whose owner does not exist.
    """
    begin = job_prefix(uid)
    return any(
        one["kind"] in {"Job", "Pod"} and str(one["name"]).startswith(begin)
        for one in _owners(pod)
        if one.get("controller")
    )


def _owners(body: Object) -> list[Object]:
    return body["metadata"].get("ownerReferences") or []


def run_name(job: str) -> str:
    """Return the name of the ConfigMap that an attempt's driver reads, by the name of its Job."""
    return f"{job}-run"


def controls_name(name: str, uid: str) -> str:
    """Return the name of a copy's ConfigMap with the controls."""
    return f"{name[:40].rstrip('-.')}-controls-{text.short_hash(uid)}"
