"""Reduce objects to the fields that are used: thousands of them are kept in memory."""

from __future__ import annotations

import json
import sys
import zlib
from typing import TYPE_CHECKING, Any, Final

from sluice.kube.api.kinds import JOB, POD, STREAM_QUERY, STREAM_STORE
from sluice.kube.api.names import COPY_ANNOTATION, UID_LABEL

if TYPE_CHECKING:
    from collections.abc import Callable

    from sluice.kube.api.kinds import Kind, Object

_OF_STATUS: Final = frozenset(
    {
        "observedGeneration",
        "lastHandledRequestedAt",
        "driverNamespace",
        "planHash",
        "jobRef",
        "streams",
        "createdMilliseconds",
        "release",
        "admittedTime",
        "completionTime",
        "lastSuccessTime",
        "follow",
    }
)
"""Status fields of our own kinds that the mirror keeps at hand. `kube.ephemeral.conflicts`,
`kube.stores.dependents`, `kube.api.rest`, `handlers.watches` and `handlers.by_name` read them of
other resources. All others are packed."""

_OF_DRILL: Final = frozenset({"since", "lastSuccessTime", "scratch", "store"})
"""Fields of a status' drill that the mirror keeps."""

LAST_APPLIED: Final = "kubectl.kubernetes.io/last-applied-configuration"
"""Annotation of `kubectl apply`, as long as the object itself. It changes with the spec only."""


_SHORT: Final = 64
"""Longer texts are hardly ever those of another object."""


def slim(kind: Kind, body: Object) -> Object:
    """Return an object as the mirror keeps it at hand.

    `managedFields` and what `kubectl apply` notes are dropped, since they are as large as all the
    rest. Jobs and pods lose their spec, except for the node. Our own resources lose the status
    fields that only users read. A StreamStore keeps all other fields, since Sluice reads it from
    the mirror.
    """
    meta = _slim_meta(body["metadata"])
    kept = body | {"metadata": meta}
    if kind == STREAM_STORE:
        return kept
    if kind in {JOB, POD}:
        node = (body.get("spec") or {}).get("nodeName")
        rest = {name: it for name, it in kept.items() if name != "spec"}
        return rest if node is None else rest | {"spec": {"nodeName": node}}
    if kind.group != STREAM_STORE.group:
        return kept
    if body.get("status"):
        kept |= {"status": _slim_status(kind, body["status"])}
    found: Object = _interned(kept)
    return found


def pack(body: Object) -> bytes:
    """Pack an object without `managedFields`, as small as it is in few microseconds."""
    meta = {name: it for name, it in body["metadata"].items() if name != "managedFields"}
    return zlib.compress(json.dumps(body | {"metadata": meta}).encode(), level=1)


def unpack(packed: bytes) -> Object:
    """Return an object that was packed."""
    body: Object = json.loads(zlib.decompress(packed))
    return body


def identified(body: Object) -> Object:
    """Return an object as the resync keeps it for a round: its identity, and whose it is."""
    meta = body["metadata"]
    names = ("namespace", "name", "uid", "resourceVersion", "deletionTimestamp")
    kept = {name: meta[name] for name in names if name in meta}
    for field, label in (("labels", UID_LABEL), ("annotations", COPY_ANNOTATION)):
        if label in (meta.get(field) or {}):
            kept[field] = {label: meta[field][label]}
    return {"metadata": kept}


def _slim_meta(meta: Object) -> Object:
    kept = {name: it for name, it in meta.items() if name != "managedFields"}
    notes = kept.get("annotations")
    if notes and LAST_APPLIED in notes:
        kept["annotations"] = {name: it for name, it in notes.items() if name != LAST_APPLIED}
    return kept


def _slim_status(kind: Kind, status: Object) -> Object:
    names = _OF_STATUS | {"progress"} if kind == STREAM_QUERY else _OF_STATUS
    kept = {name: value for name, value in status.items() if name in names}
    if isinstance(drill := status.get("drill"), dict):
        kept["drill"] = {name: it for name, it in drill.items() if name in _OF_DRILL}
    if isinstance(known := status.get("verification"), dict) and "lastSuccessTime" in known:
        kept["verification"] = {"lastSuccessTime": known["lastSuccessTime"]}
    return kept | {"conditions": _slim_conditions(status)}


def _slim_conditions(status: Object) -> list[Object]:
    return [
        {"type": one.get("type"), "status": one.get("status")}
        for one in status.get("conditions") or ()
    ]


def _interned(value: Any, intern: Callable[[str], str] = sys.intern) -> Any:
    """Return JSON whose names and short texts exist once in memory, however many objects have them.

    A text that is no other object's goes with its last user.
    """
    if isinstance(value, dict):
        return {intern(name): _interned(one) for name, one in value.items()}
    if isinstance(value, list):
        return [_interned(one) for one in value]
    return intern(value) if isinstance(value, str) and len(value) <= _SHORT else value
