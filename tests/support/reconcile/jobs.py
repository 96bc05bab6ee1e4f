"""Jobs, pods and events as a cluster has them."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from sluice.kube.api.names import ATTEMPT_LABEL, RUNTIME_ANNOTATION
from sluice.kube.jobs.jobs import job_seen

if TYPE_CHECKING:
    from sluice.core.reconcile.shared.jobs import JobSeen
    from sluice.kube.api.kinds import Object


MADE, STARTED, ENDED = (f"2026-01-02T03:04:0{second}Z" for second in (0, 1, 9))
SAID = {
    "outcome": "Failed",
    "reason": "DigestMismatch",
    "category": "Integrity",
    "retryable": False,
    "message": "staged bytes differ",
    "remedy": "Run again.",
    "field": None,
}


def job(*conditions: str, **changes: Any) -> Object:
    """Return a Job of attempt 3 with these conditions, and with some fields of its status set."""
    found = [{"type": kind, "status": "True", "lastTransitionTime": ENDED} for kind in conditions]
    return {
        "metadata": {
            "name": "sluice-0123456789-3",
            "labels": {ATTEMPT_LABEL: "3"},
            "annotations": {RUNTIME_ANNOTATION: "new"},
            "creationTimestamp": MADE,
        },
        "status": {"startTime": STARTED, "conditions": found, **changes},
    }


def pod(phase: str, *containers: Object, **changes: Any) -> Object:
    """Return a pod of that Job with these containers' states, and some fields of its status set."""
    return {
        "metadata": {"name": "sluice-0123456789-3-x7k2p"},
        "status": {"phase": phase, "containerStatuses": list(containers), **changes},
    }


def driver(**state: Any) -> Object:
    """Return the driver's container in a state: `waiting`, `running` or `terminated`."""
    return {"name": "driver", "image": "localhost/sluice:dev", "state": state}


def terminated(reason: str = "Error", code: int = 1, message: str = "") -> Object:
    """Return the driver's container at its end."""
    return driver(terminated={"reason": reason, "exitCode": code, "message": message})


def event(reason: str, message: str) -> Object:
    """Return an event about the Job or its pod."""
    return {"reason": reason, "message": message, "lastTimestamp": STARTED}


def look(body: Object, *pods: Object, events: tuple[Object, ...] = ()) -> JobSeen:
    """Return the operator's view of a Job."""
    return job_seen(body, pods, events, runtime="new")
