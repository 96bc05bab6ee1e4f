"""Tell whether anything has to be done for a resource, by what the operator has written on it.

The functions read the object only, and cost no call. They take an object as the API server has it,
or as the mirror keeps it.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from sluice.kube.api.kinds import COPIES, EPHEMERAL_STREAM
from sluice.kube.api.objects import (
    STAGING_FINALIZER,
    STREAMS_FINALIZER,
    has_finalizer,
    is_deleting,
    is_drilled,
    is_scheduled,
    requested_at,
)

if TYPE_CHECKING:
    from sluice.kube.api.kinds import Kind, Object


def is_settled(body: Object) -> bool:
    """Tell whether the operator has reported an end or a lasting state of a resource.

    It then waits for a change of the resource, for a time that it knows itself, or for a person.
    """
    status = body.get("status") or {}
    return (
        not is_deleting(body)
        and status.get("observedGeneration", -1) == body["metadata"].get("generation", 0)
        and requested_at(body) in {None, status.get("lastHandledRequestedAt")}
        and not _says(status, "Reconciling")
        and any(_says(status, one) for one in ("Ready", "Succeeded", "Stalled", "Suspended"))
    )


def is_at_rest(kind: Kind, body: Object) -> bool:
    """Tell whether a resource is over: nothing of it is left, and no time is waited for."""
    status, spec = body.get("status") or {}, body.get("spec") or {}
    if not is_settled(body):
        return False
    if kind == EPHEMERAL_STREAM:
        released = (status.get("release") or {}).get("completed") is not None
        return released and not has_finalizer(body, STREAMS_FINALIZER)
    return (
        kind.name in COPIES
        and _says(status, "Succeeded")
        and not has_finalizer(body, STAGING_FINALIZER)
        and status.get("jobRef") is None
        and spec.get("ttlSecondsAfterFinished") is None
        and not (is_scheduled(body) or is_drilled(body))
    )


def _says(status: Object, condition: str) -> bool:
    found = status.get("conditions") or ()
    return any(one.get("type") == condition and one.get("status") == "True" for one in found)
