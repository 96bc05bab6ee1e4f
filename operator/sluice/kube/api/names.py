"""Names, labels, annotations and owners of the objects that the operator makes for a copy."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Final, Self

from sluice.api.fields.common import GROUP
from sluice.core.reconcile.shared.jobs import job_prefix
from sluice.core.values import text
from sluice.kube.api.kinds import COPIES

if TYPE_CHECKING:
    from sluice.kube.api.kinds import Kind, Object

UID_LABEL: Final = f"{GROUP}/copy-uid"
ATTEMPT_LABEL: Final = f"{GROUP}/attempt"
CONTROLS_ANNOTATION: Final = f"{GROUP}/controls-of-generation"
RUNTIME_ANNOTATION: Final = f"{GROUP}/runtime-hash"
FOLLOWS_ANNOTATION: Final = f"{GROUP}/follows"
"""Annotation of a Job whose pod follows a source."""

COPY_ANNOTATION: Final = f"{GROUP}/works-for"
"""Annotation of objects that are in another namespace than their copy, where they can have no owner
reference: the copy, as `str(Child)` gives it."""

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
    """The copy that owns an object.

    Attributes:
        kind, namespace, name, uid: of the copy.
        host: the namespace of the object, if it is another one. Kubernetes' garbage collector would
            delete an object whose owner is in another namespace. So an annotation names the copy,
            and the operator deletes the object.
    """

    kind: Kind
    namespace: str
    name: str
    uid: str
    host: str | None = None

    @classmethod
    def of(cls, kind: Kind, body: Object, *, host: str | None = None) -> Self:
        """Return a copy, given its object, with objects in the namespace `host`."""
        meta = body["metadata"]
        return cls(
            kind=kind, namespace=meta["namespace"], name=meta["name"], uid=meta["uid"], host=host
        )

    @property
    def place(self) -> str:
        """The namespace of the object."""
        return self.host or self.namespace

    @property
    def notes(self) -> dict[str, str]:
        """The annotations of the object."""
        return {} if self.host is None else {COPY_ANNOTATION: str(self)}

    def at(self, host: str | None) -> Child:
        """Return the same copy, with objects in this namespace; None for the copy's own."""
        return replace(self, host=host if host != self.namespace else None)

    def __str__(self) -> str:
        """Return `Kind/namespace/name`, for messages and for drivers."""
        return f"{self.kind.name}/{self.namespace}/{self.name}"

    def metadata(self, name: str, component: str, **labels: str) -> Object:
        """Return a child's metadata: labels, and an owner reference to delete it with the copy."""
        found = {
            "name": name,
            "namespace": self.place,
            "labels": child_labels(self.uid, component) | labels,
        }
        if self.host is not None:
            return found | {"annotations": self.notes}
        return found | {
            "ownerReferences": [
                {
                    "apiVersion": self.kind.api_version,
                    "kind": self.kind.name,
                    "name": self.name,
                    "uid": self.uid,
                    "controller": True,
                    "blockOwnerDeletion": False,
                }
            ]
        }

    def has(self, body: Object) -> bool:
        """Tell whether an object is the copy's own. Labels prove nothing.

        In another namespace its annotation counts. Users of that namespace could write it, but only
        they: the copy's users have no rights there. So a forged object harms them alone. What a Job
        mounts has the Job as its owner there.
        """
        meta = body["metadata"]
        if meta["namespace"] == self.namespace:
            return is_child(body, self.uid)
        said = (meta.get("annotations") or {}).get(COPY_ANNOTATION)
        mine = said == str(self) and copy_of(body)[1] == self.uid
        return mine and all(_is_job_of(one, self.uid) for one in _owners(body))


def away_of(body: Object) -> Child | None:
    """Return the copy of another namespace that an object names by its annotation; None without.

    Users may have written the annotation, so it only says where to look for the copy.
    """
    meta = body["metadata"]
    said = (meta.get("annotations") or {}).get(COPY_ANNOTATION)
    if not isinstance(said, str) or said.count("/") != 2:  # noqa: PLR2004 - Kind/namespace/name
        return None
    kind, namespace, name = said.split("/")
    place, uid = copy_of(body)
    if kind not in COPIES or namespace == place:
        return None
    return Child(kind=COPIES[kind], namespace=namespace, name=name, uid=uid, host=place)


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


def owned(body: Object, job: Object) -> Object:
    """Return an object with a Job of its namespace as its owner, so that it goes with the Job."""
    owner = {"apiVersion": "batch/v1", "kind": "Job", "blockOwnerDeletion": False}
    owner |= {part: job["metadata"][part] for part in ("name", "uid")}
    return body | {"metadata": body["metadata"] | {"ownerReferences": [owner]}}


def _is_job_of(owner: Object, uid: str) -> bool:
    """Tell whether an owner is a Job of a copy, by its name."""
    return bool(owner["kind"] == "Job") and str(owner["name"]).startswith(job_prefix(uid))


def _owners(body: Object) -> list[Object]:
    return body["metadata"].get("ownerReferences") or []


def run_name(job: str) -> str:
    """Return the name of the ConfigMap that an attempt's driver reads, by the name of its Job."""
    return f"{job}-run"


def controls_name(name: str, uid: str) -> str:
    """Return the name of a copy's ConfigMap with the controls."""
    return f"{name[:40].rstrip('-.')}-controls-{text.short_hash(uid)}"
