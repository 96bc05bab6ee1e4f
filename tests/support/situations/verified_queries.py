"""Queries whose results are verified, look by look, and what a look says and does about that."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from sluice import errors
from sluice.core.query.recount import Recount, SinkRecount
from sluice.core.reconcile.queries.world import StartVerifier, StopVerifier, TellVerification
from sluice.core.reconcile.shared.jobs import JobPhase, verifier_name
from sluice.core.values.trouble import Trouble
from sluice.kube.api.objects import VERIFY_REQUESTED_AT
from support.situations.query_recorder import QueryRecorder
from support.situations.recorder import READY

TIMEOUT = 600
AWAY = replace(READY, ready=False, why="The store does not answer.")
DENIED = Trouble.of(errors.AccessDenied("the StreamStore may not be used"))


def query_with(**spec: Any) -> QueryRecorder:
    """Return a query that runs, has written a batch, and is verified."""
    query = QueryRecorder("counts", **{"verify": {"timeoutSeconds": TIMEOUT}, **spec})
    query.start()
    query.write()
    return query


def request(query: QueryRecorder, value: str = "now") -> None:
    """Request a verification."""
    query.body["metadata"].setdefault("annotations", {})[VERIFY_REQUESTED_AT] = value


def verified(query: QueryRecorder) -> tuple[str, str]:
    """Return the status and the reason of the condition Verified; empty ones without it."""
    found = (one for one in query.body["status"]["conditions"] if one["type"] == "Verified")
    return next(((one["status"], one["reason"]) for one in found), ("", ""))


def verification(query: QueryRecorder) -> dict[str, Any]:
    """Return the status of the verification."""
    found: dict[str, Any] = query.body["status"].get("verification", {})
    return found


def name_of(query: QueryRecorder, number: int = 1) -> str:
    """Return the name of a verification's Job."""
    return verifier_name(query.body["metadata"]["uid"], number)


def acts(query: QueryRecorder, **world: Any) -> list[object]:
    """Return what a look does about the verification."""
    kinds = (StartVerifier, StopVerifier, TellVerification)
    return [one for one in query.look(**world).actions if isinstance(one, kinds)]


def recount(*, missing: int = 0, extra: int = 0, late: int = 0) -> Recount:
    """Return the report of a pod."""
    sink = SinkRecount(sink="in/counts", rows=4800, missing=missing, extra=extra)
    return Recount(version=1, batch=71, late=late, sinks=(sink,))


def begun(**spec: Any) -> QueryRecorder:
    """Return a query whose verification goes on."""
    query = query_with(**spec)
    request(query)
    assert acts(query) == [StartVerifier(1)]
    query.verifies(JobPhase.RUNNING)
    assert acts(query) == []
    return query
