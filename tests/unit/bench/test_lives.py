from __future__ import annotations

import json

import pytest

from bench.cluster import lives
from bench.cluster.lives import DELETED, GONE, READY, Life

BEFORE = """
# TYPE sluice_api_calls_total counter
sluice_api_calls_total{resource="events",verb="create"} 5.0
# TYPE sluice_queue_wait_seconds histogram
sluice_queue_wait_seconds_bucket{lane="deletion",le="+Inf"} 0.0
sluice_queue_wait_seconds_count{lane="deletion"} 0.0
sluice_queue_wait_seconds_sum{lane="deletion"} 0.0
"""
AFTER = """
# TYPE sluice_api_calls_total counter
sluice_api_calls_total{resource="events",verb="create"} 9.0
sluice_api_calls_total{resource="ephemeralstreams",verb="get"} 2.0
# TYPE sluice_queue_wait_seconds histogram
sluice_queue_wait_seconds_bucket{lane="deletion",le="+Inf"} 2.0
sluice_queue_wait_seconds_count{lane="deletion"} 2.0
sluice_queue_wait_seconds_sum{lane="deletion"} 0.4
# TYPE sluice_store_call_seconds histogram
sluice_store_call_seconds_bucket{call="sealStream",le="+Inf"} 2.0
sluice_store_call_seconds_count{call="sealStream"} 2.0
sluice_store_call_seconds_sum{call="sealStream"} 0.6
"""


def test_a_moment_is_when_it_was_first_seen() -> None:
    """Later reports of the watch do not move a moment."""
    known: dict[str, dict[str, float]] = {}
    ready = {"conditions": [{"type": "Ready", "status": "True"}]}
    lives.note(known, 1, "ADDED", {"metadata": {"name": "a"}})
    lives.note(known, 2, "MODIFIED", {"metadata": {"name": "a"}, "status": ready})
    gone = {"metadata": {"name": "a", "deletionTimestamp": "now"}, "status": ready}
    lives.note(known, 3, "MODIFIED", gone)
    lives.note(known, 4, "DELETED", gone)
    assert known == {"a": {READY: 2, DELETED: 3, GONE: 4}}


def test_the_log_tells_when_a_release_began_and_ended() -> None:
    """Only lines about EphemeralStreams count.

    Lines of other kinds, and lines that are no JSON, do not.
    """
    lines = [
        {"resource": "EphemeralStream/n/a", "event": "state", "reason": "Deleting"},
        {"resource": "EphemeralStream/n/a", "event": "released"},
        {"resource": "StreamStore/n/a", "event": "released"},
        {"event": "released"},
    ]
    text = "\n".join(
        json.dumps(line | {"timestamp": f"2026-01-01T00:00:0{at}Z"})
        for at, line in enumerate(lines)
    )
    (found,) = lives.logged(f"{text}\nno JSON").values()
    assert [at - found["said"] for at in found.values()] == [0, 1]


def test_phases_add_up_to_the_mean_life() -> None:
    """The phases are means.

    Their sum is the mean time from the deletion until the resource is gone.
    """
    grown = lives.growth(lives.samples(BEFORE), lives.samples(AFTER))
    found = [Life(0, 1, 2, 4), Life(0, 2, 4, 8)]
    phases = lives.release_phases(found, grown)
    assert sum(phases.values()) == pytest.approx(6)
    assert phases["the stream is sealed"] == pytest.approx(0.3)
    assert phases["a worker takes it: the lane's queue"] == pytest.approx(0.2)


def test_calls_are_counted_a_resource() -> None:
    """Calls per resource go by verb and resource, or by the controller's method."""
    grown = lives.growth(lives.samples(BEFORE), lives.samples(AFTER))
    api, store = lives.calls(grown, 2)
    assert api == {"create events": 2, "get ephemeralstreams": 1}
    assert store == {"sealStream": 1}


@pytest.mark.parametrize(("share", "value"), [(0.99, 99), (0.5, 50), (1, 100), (0.01, 1)])
def test_a_percentile_is_one_of_the_values(share: float, value: int) -> None:
    """The percentile is the smallest value that this share of the values does not exceed."""
    assert lives.percentile(range(100, 0, -1), share) == value
