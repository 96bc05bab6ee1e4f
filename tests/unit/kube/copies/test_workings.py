"""The metrics that count when a copy's status is written."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any, cast

import pytest

from sluice.api.status.common import Attempt
from sluice.api.status.copy_status import StreamCopyStatus
from sluice.api.status.scope_status import ScopeCopyStatus
from sluice.kube.api.kinds import SCOPE_COPY, STREAM_COPY
from sluice.kube.copies.workings import CopyWorkings
from sluice.metrics import Metrics

if TYPE_CHECKING:
    from sluice.api.status.common import CopyingStatus
    from sluice.kube.api.kinds import Kind

UNUSED = cast("Any", None)
THEN, LATER = "2026-01-02T03:04:05Z", "2026-01-02T03:04:25Z"


def succeeded(status: str) -> dict[str, Any]:
    """Make a status with this condition Succeeded."""
    one = {"type": "Succeeded", "status": status, "reason": "R", "lastTransitionTime": THEN}
    return {"conditions": [one]}


def counted(kind: Kind, *statuses: dict[str, Any]) -> dict[str, float]:
    """Return the counters above zero after these statuses were written in turn."""
    metrics = Metrics()
    workings = CopyWorkings(kind, UNUSED, UNUSED, metrics)
    before: CopyingStatus = workings.status()
    for written in statuses:
        after = workings.status.read(written)
        workings.written(before, after)
        before = after
    found = re.findall(
        r"^(sluice_\S+_(?:total|count)\S*) (\S+)$", metrics.text().decode(), re.MULTILINE
    )
    return {name: float(value) for name, value in found if float(value) > 0}


@pytest.mark.parametrize(
    ("kind", "status"), [(STREAM_COPY, StreamCopyStatus), (SCOPE_COPY, ScopeCopyStatus)]
)
def test_a_kind_has_its_status(kind: Kind, status: type[CopyingStatus]) -> None:
    """Each kind has one model."""
    workings = CopyWorkings(kind, UNUSED, UNUSED, Metrics())
    assert (workings.kind, workings.status) == (kind, status)
    assert workings.is_bounded({"spec": {}})
    assert not workings.is_bounded({"spec": {"mode": "Continuous"}})


@pytest.mark.parametrize("kind", [STREAM_COPY, SCOPE_COPY])
def test_a_copy_counts_once_when_it_succeeds(kind: Kind) -> None:
    """Later writes of the status do not count."""
    progress = {"progress": {"bytes": 40, "totalBytes": 40, "events": 3}}
    done = succeeded("True") | progress | {"startTime": THEN, "completionTime": LATER}
    assert counted(kind, succeeded("Unknown") | progress) == {}
    found = counted(kind, succeeded("Unknown") | progress, done, done | {"attempts": 2})
    assert found == {
        "sluice_copied_bytes_total": 40.0,
        "sluice_copied_events_total": 3.0,
        "sluice_copy_seconds_count": 1.0,
    }


def test_an_attempt_counts_once_when_it_ends() -> None:
    """The counter has its result and its reason."""
    begun = Attempt(attempt=1, job="j").dump()
    ended = begun | {"outcome": "Failed", "reason": "DriverLost"}
    found = counted(SCOPE_COPY, {"history": [begun]}, {"history": [ended]}, {"history": [ended]})
    assert found == {'sluice_attempts_total{outcome="Failed",reason="DriverLost"}': 1.0}


def test_reasons_that_a_pod_made_up_make_no_series() -> None:
    """A tenant's pod may end with any word. Each would add a series without a bound."""
    history = [
        Attempt(attempt=number, job="j").dump() | {"outcome": "Failed", "reason": f"Made{number}Up"}
        for number in range(1, 9)
    ]
    found = counted(SCOPE_COPY, {"history": history})
    assert found == {'sluice_attempts_total{outcome="Failed",reason="Other"}': 8.0}


def test_streams_of_a_scope_count_as_they_end() -> None:
    """Each stream counts once. A retried stream counts again when it ends again."""
    states = [
        {"total": 9},
        {"total": 9, "copied": 5},
        {"total": 9, "copied": 5},
        {"total": 9, "copied": 6, "failed": 2, "stopped": 1},
        {"total": 9, "copied": 6},
        {"total": 9, "copied": 8, "failed": 1},
    ]
    found = counted(SCOPE_COPY, {}, *({"streams": state} for state in states))
    assert found == {
        'sluice_scope_streams_total{state="Copied"}': 8.0,
        'sluice_scope_streams_total{state="Failed"}': 3.0,
        'sluice_scope_streams_total{state="Stopped"}': 1.0,
    }
