"""What is kept in memory of objects, of which there may be thousands: no more than is asked for."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from sluice.kube.api.kinds import JOB, POD, STREAM_STORE

if TYPE_CHECKING:
    from sluice.kube.api.kinds import Kind, Object

_OF_STATUS: Final = frozenset(
    {
        "observedGeneration",
        "planHash",
        "streams",
        "createdMilliseconds",
        "release",
        "completionTime",
    }
)
"""What of our own kinds' statuses is asked for by whoever looks at another resource:
`kube.ephemeral.conflicts`, `kube.stores.dependents`. Whoever works on a resource reads it at the
API server."""


def slim(kind: Kind, body: Object) -> Object:
    """Give an object as the mirror keeps it.

    Without who manages which field, which is as much as all the rest. Of Jobs and pods without
    what they were made from, but for the node; of our own resources without what their status
    tells people. A StreamStore stays whole: it is read from the mirror.
    """
    meta = {name: it for name, it in body["metadata"].items() if name != "managedFields"}
    kept = body | {"metadata": meta}
    if kind == STREAM_STORE:
        return kept
    if kind in {JOB, POD}:
        node = (body.get("spec") or {}).get("nodeName")
        rest = {name: it for name, it in kept.items() if name != "spec"}
        return rest if node is None else rest | {"spec": {"nodeName": node}}
    if kind.group != STREAM_STORE.group or not body.get("status"):
        return kept
    return kept | {"status": _slim_status(body["status"])}


def counted(body: Object) -> Object:
    """Give an object as the resync keeps it until its round is over: which one it is, and how."""
    meta = body["metadata"]
    names = ("namespace", "name", "uid", "resourceVersion", "deletionTimestamp")
    status = body.get("status") or {}
    release = {"release": status["release"]} if "release" in status else {}
    return {
        "metadata": {name: meta[name] for name in names if name in meta},
        "status": {"conditions": _slim_conditions(status), **release},
    }


def _slim_status(status: Object) -> Object:
    kept = {name: value for name, value in status.items() if name in _OF_STATUS}
    return kept | {"conditions": _slim_conditions(status)}


def _slim_conditions(status: Object) -> list[Object]:
    return [
        {"type": one.get("type"), "status": one.get("status")}
        for one in status.get("conditions") or ()
    ]
