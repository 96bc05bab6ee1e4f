"""Tell the state of a resource, and count the resources of each state for the metrics."""

from __future__ import annotations

from typing import TYPE_CHECKING

from sluice.kube.api.kinds import COPIES, EPHEMERAL_STREAM, STREAM_QUERY, STREAM_STORE
from sluice.kube.api.objects import is_deleting

if TYPE_CHECKING:
    from sluice.kube.api.cache import Mirror
    from sluice.kube.api.kinds import Kind, Object
    from sluice.metrics import Metrics


def count(mirror: Mirror, metrics: Metrics) -> None:
    """Count the resources that the watches have shown, by their states."""
    for kind in COPIES.values():
        for state in ("Succeeded", "Failed", "Suspended", "Active"):
            found = mirror.count(kind, copy_state, state)
            metrics.set("sluice_copies", found, kind=kind.name, state=state)
    for state in ("Ready", "Released", "Waiting", "Failed", "Suspended", "Deleting"):
        found = mirror.count(EPHEMERAL_STREAM, ephemeral_state, state)
        metrics.set("sluice_ephemeral_streams", found, state=state)
    for state in ("Running", "Starting", "Succeeded", "Failed", "Suspended"):
        metrics.set("sluice_queries", mirror.count(STREAM_QUERY, query_state, state), state=state)
    for state, ready in (("Ready", "true"), ("NotReady", "false")):
        metrics.set("sluice_stores", mirror.count(STREAM_STORE, store_state, state), ready=ready)


def state_of(kind: Kind, body: Object) -> str:
    """Return the state of a resource of any of our kinds."""
    if kind == STREAM_STORE:
        return store_state(body)
    if kind == STREAM_QUERY:
        return query_state(body)
    return ephemeral_state(body) if kind == EPHEMERAL_STREAM else copy_state(body)


def store_state(body: Object) -> str:
    """Return a StreamStore's state: Ready or NotReady."""
    return "Ready" if _is(body, "Ready") else "NotReady"


def ephemeral_state(body: Object) -> str:
    """Return an EphemeralStream's state."""
    if is_deleting(body):
        return "Deleting"
    if "completed" in body.get("status", {}).get("release", {}):
        return "Released"
    if _is(body, "Stalled"):
        return "Failed"
    if _is(body, "Suspended"):
        return "Suspended"
    return "Ready" if _is(body, "Ready") else "Waiting"


def query_state(body: Object) -> str:
    """Return the state of a query."""
    found = copy_state(body)
    if found != "Active":
        return found
    return "Running" if _is(body, "Ready") else "Starting"


def copy_state(body: Object) -> str:
    """Return the state of a copy or an archive."""
    if _is(body, "Succeeded"):
        return "Succeeded"
    if _is(body, "Stalled"):
        return "Failed"
    return "Suspended" if _is(body, "Suspended") else "Active"


def says(body: Object, condition: str, status: str) -> bool:
    """Tell whether a condition of a resource has this status."""
    conditions = body.get("status", {}).get("conditions") or []
    return any(c["type"] == condition and c["status"] == status for c in conditions)


def _is(body: Object, condition: str) -> bool:
    return says(body, condition, "True")
