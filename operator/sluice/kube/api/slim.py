"""Reduce objects to the fields that are used: thousands of them are kept in memory."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from sluice.kube.api.kinds import JOB, POD, STREAM_STORE

if TYPE_CHECKING:
    from sluice.kube.api.kinds import Kind, Object

_OF_STATUS: Final = frozenset(
    {
        "observedGeneration",
        "driverNamespace",
        "planHash",
        "streams",
        "createdMilliseconds",
        "release",
        "admittedTime",
        "completionTime",
        "lastSuccessTime",
        "follow",
    }
)
"""Status fields of our own kinds that the mirror keeps. `kube.ephemeral.conflicts`,
`kube.stores.dependents`, `handlers.watches` and `handlers.by_name` read them of other resources. A
resource that is being reconciled is read at the API server instead."""

_OF_DRILL: Final = frozenset({"since", "lastSuccessTime", "scratch", "store"})
"""Fields of a status' drill that the mirror keeps."""


def slim(kind: Kind, body: Object) -> Object:
    """Return an object as the mirror keeps it.

    `managedFields` are dropped, since they are as large as all the rest. Jobs and pods lose their
    spec, except for the node. Our own resources lose the status fields that only users read. A
    StreamStore keeps all other fields, since Sluice reads it from the mirror.
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
    """Return an object as the resync keeps it for a round: its identity and its conditions."""
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
    if isinstance(drill := status.get("drill"), dict):
        kept["drill"] = {name: it for name, it in drill.items() if name in _OF_DRILL}
    return kept | {"conditions": _slim_conditions(status)}


def _slim_conditions(status: Object) -> list[Object]:
    return [
        {"type": one.get("type"), "status": one.get("status")}
        for one in status.get("conditions") or ()
    ]
