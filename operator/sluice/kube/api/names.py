"""Names, labels, annotations and owners of what the operator makes for a copy."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from sluice.api.fields.common import GROUP
from sluice.core.reconcile.copies.copy_status import job_name
from sluice.core.values import text

if TYPE_CHECKING:
    from sluice.kube.api.kinds import Kind, Object

UID_LABEL: Final = f"{GROUP}/copy-uid"
ATTEMPT_LABEL: Final = f"{GROUP}/attempt"
CONTROLS_ANNOTATION: Final = f"{GROUP}/controls-of-generation"
RUNTIME_ANNOTATION: Final = f"{GROUP}/runtime-hash"
MANAGED: Final = "app.kubernetes.io/managed-by=sluice-operator"


def child_labels(uid: str, component: str) -> dict[str, str]:
    """Labels of whatever belongs to a copy."""
    return {
        "app.kubernetes.io/name": "sluice",
        "app.kubernetes.io/managed-by": "sluice-operator",
        "app.kubernetes.io/component": component,
        UID_LABEL: uid,
    }


@dataclass(frozen=True, slots=True, kw_only=True)
class Child:
    """The copy that an object is made for."""

    kind: Kind
    namespace: str
    name: str
    uid: str

    def __str__(self) -> str:
        """As people write it, and drivers are told."""
        return f"{self.kind.name}/{self.namespace}/{self.name}"

    def metadata(self, name: str, component: str, **labels: str) -> Object:
        """Metadata of a child: labels, and an owner that takes it along when it goes."""
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
    """Give the namespace and the uid of the copy that an object says it is made for."""
    meta = body["metadata"]
    return meta["namespace"], str((meta.get("labels") or {}).get(UID_LABEL, ""))


def uid_of(body: Object) -> tuple[str, str]:
    """Give the namespace and the uid of an object."""
    return body["metadata"]["namespace"], str(body["metadata"].get("uid", ""))


def is_child(body: Object, uid: str) -> bool:
    """Tell whether the copy with this uid controls an object. A label may be anybody's."""
    return any(one.get("controller") and one["uid"] == uid for one in _owners(body))


def is_pod_of(pod: Object, uid: str) -> bool:
    """Tell whether a copy's Job has made a pod, or a driver of it an executor.

    Pods may outlive their Job, so its name has to do. Kubernetes deletes a pod whose owner there is
    none of, so nobody can keep one that only says so.
    """
    begin = f"{job_name(uid, 0).removesuffix('0')}"
    return any(
        one["kind"] in {"Job", "Pod"} and str(one["name"]).startswith(begin)
        for one in _owners(pod)
        if one.get("controller")
    )


def _owners(body: Object) -> list[Object]:
    return body["metadata"].get("ownerReferences") or []


def run_name(job: str) -> str:
    """The name of the ConfigMap that an attempt's driver runs from, by its Job's."""
    return f"{job}-run"


def controls_name(name: str, uid: str) -> str:
    """The name of a copy's controls ConfigMap."""
    return f"{name[:40].rstrip('-.')}-controls-{text.short_hash(uid)}"
