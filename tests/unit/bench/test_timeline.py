from __future__ import annotations

import json
from typing import Any

import pytest

from bench.cluster.timeline import APPLY, CREATED, READY, Seen, is_ready, medians, moments, phases

LOG = "\n".join(
    json.dumps({"event": event, "timestamp": f"1970-01-01T00:00:{second:09.6f}Z"})
    for event, second in (
        ("driver started", 3.0),
        ("spark started", 5.5),
        ("step", 6.0),
        ("stream done", 7.0),
        ("driver ended", 7.25),
    )
)


def scopy(name: str = "orders", *, ready: str = "Unknown", uid: str = "u1") -> dict[str, Any]:
    """Return a StreamCopy as a watch reports it."""
    return {
        "kind": "StreamCopy",
        "metadata": {"name": name, "uid": uid},
        "status": {"conditions": [{"type": "Ready", "status": ready}]},
    }


def child(kind: str, component: str, *, of: str = "u1", **more: Any) -> dict[str, Any]:
    """Return an object that the operator made for a copy."""
    labels = {"sluice.dev/copy-uid": of, "app.kubernetes.io/component": component}
    meta = {"name": "child", "uid": f"{kind}-of-{of}", "labels": labels}
    return {"kind": kind, "metadata": meta, "spec": {}} | more


def event(reason: str, about: str = "Pod-of-u1") -> dict[str, Any]:
    """Return an event about a pod."""
    involved = {"kind": "Pod", "uid": about}
    return {"kind": "Event", "metadata": {}, "involvedObject": involved, "reason": reason}


SEEN = [
    Seen(0.5, scopy("other", ready="True", uid="u0")),
    Seen(0.6, child("Pod", "driver", of="u0")),
    Seen(1.0, scopy()),
    Seen(1.1, child("ConfigMap", "controls")),
    Seen(1.2, child("ConfigMap", "plan")),
    Seen(1.3, child("Job", "driver")),
    Seen(1.4, child("Pod", "driver")),
    Seen(1.5, child("Pod", "driver", spec={"nodeName": "n"})),
    Seen(1.8, event("Started", about="Pod-of-u0")),
    Seen(1.9, event("Created")),
    Seen(2.0, event("Started")),
    Seen(8.0, child("Pod", "driver", spec={"nodeName": "n"}, status={"phase": "Succeeded"})),
    Seen(9.0, scopy(ready="True")),
    Seen(9.5, scopy(ready="True")),
]


def test_each_moment_is_the_first_sign_of_it() -> None:
    """Objects of other copies and repeated reports do not count."""
    assert moments("orders", SEEN, LOG) == {
        "copy accepted": 1.0,
        "plan written": 1.2,
        "Job made": 1.3,
        CREATED: 1.4,
        "pod scheduled": 1.5,
        "container started": 2.0,
        "driver's first line": 3.0,
        "Spark up": 5.5,
        "copied": 7.0,
        "driver's last line": 7.25,
        "driver's end seen": 8.0,
        READY: 9.0,
    }


def test_lines_that_are_no_json_are_no_sign() -> None:
    """Lines of the JVM between the log's lines are skipped."""
    assert moments("orders", [], f'[]\n{{"event": "step"}}\nOops\n{LOG}')["copied"] == 7.0


def test_phases_last_from_moment_to_moment_and_add_up() -> None:
    """The phases' sum is the time from the apply until the copy is Ready."""
    found = phases({APPLY: 0.0} | moments("orders", SEEN, LOG))
    assert found["Spark up"] == 2.5
    assert next(iter(found)) == "copy accepted"
    assert list(found)[-1] == READY
    assert sum(found.values()) == pytest.approx(9.0)


def test_a_moment_that_nobody_saw_belongs_to_the_next_one() -> None:
    """A missing moment makes the next phase longer, and the sum stays right."""
    assert phases({APPLY: 1.0, READY: 4.0}) == {READY: 3.0}


def test_a_moment_seen_too_early_takes_no_time() -> None:
    """If two watches report in the wrong order, the phase has 0 seconds, not fewer."""
    found = phases({APPLY: 0.0, "Job made": 2.0, CREATED: 1.5, READY: 3.0})
    assert found == {"Job made": 2.0, CREATED: 0.0, READY: 1.0}


def test_medians_keep_the_order_of_time() -> None:
    """The order holds although runs lack moments or have them in another order."""
    found = medians([{READY: 1.0, CREATED: 5.0}, {READY: 3.0}, {READY: 2.0, CREATED: 7.0}])
    assert list(found.items()) == [(CREATED, 6.0), (READY, 2.0)]


@pytest.mark.parametrize(("copy", "ready"), [(scopy(ready="True"), True), (scopy(), False)])
def test_only_a_condition_that_is_true_is_ready(copy: dict[str, Any], *, ready: bool) -> None:
    """The status Unknown does not count as Ready."""
    assert is_ready(copy) is ready


def test_a_copy_without_a_status_is_not_ready() -> None:
    """A copy that was just applied has no status."""
    assert is_ready({"kind": "StreamCopy", "metadata": {}}) is False
