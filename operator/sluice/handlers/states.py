"""Tell the state of a resource, and count the resources of each state for the metrics."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from sluice.kube.api.kinds import COPIES, EPHEMERAL_STREAM, STREAM_QUERY, STREAM_STORE
from sluice.kube.api.objects import is_deleting

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from sluice.kube.api.cache import Mirror
    from sluice.kube.api.kinds import Kind, Object
    from sluice.metrics import Metrics


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


@dataclass(frozen=True, slots=True)
class StatesOfKind:
    """The states of a kind's resources, and the metric that counts them.

    Attributes:
        state: tells the state of a resource.
        metric: the gauge.
        labels: the gauge's labels for each state.
    """

    state: Callable[[Object], str]
    metric: str
    labels: Mapping[str, Mapping[str, str]]


def _named(*states: str, **labels: str) -> dict[str, dict[str, str]]:
    """Give each state the label `state`, and the others."""
    return {state: {"state": state, **labels} for state in states}


_STATES: Final = {
    STREAM_STORE: StatesOfKind(
        store_state, "sluice_stores", {"Ready": {"ready": "true"}, "NotReady": {"ready": "false"}}
    ),
    EPHEMERAL_STREAM: StatesOfKind(
        ephemeral_state,
        "sluice_ephemeral_streams",
        _named("Ready", "Released", "Waiting", "Failed", "Suspended", "Deleting"),
    ),
    STREAM_QUERY: StatesOfKind(
        query_state,
        "sluice_queries",
        _named("Running", "Starting", "Succeeded", "Failed", "Suspended"),
    ),
    **{
        kind: StatesOfKind(
            copy_state,
            "sluice_copies",
            _named("Succeeded", "Failed", "Suspended", "Active", kind=kind.name),
        )
        for kind in COPIES.values()
    },
}
"""The states of each kind. A kind that drivers work for needs no entry."""


def count(mirror: Mirror, metrics: Metrics) -> None:
    """Count the resources that the watches have shown, by their states."""
    for kind, found in _STATES.items():
        for state, labels in found.labels.items():
            metrics.set(found.metric, mirror.count(kind, found.state, state), **labels)


def state_of(kind: Kind, body: Object) -> str:
    """Return the state of a resource of any of our kinds."""
    known = _STATES.get(kind)
    return copy_state(body) if known is None else known.state(body)
