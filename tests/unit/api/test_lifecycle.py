"""The lifecycle of a resource follows from its kind and its schedule."""

from __future__ import annotations

from typing import Any

import pytest

from sluice.api.registry import KINDS, Lifecycle
from support.cases.resources import ARCHIVE, COPY, EPHEMERAL, SCOPE, STORE

HOURLY = {"schedule": {"cron": "0 * * * *"}}


@pytest.mark.parametrize(
    ("body", "expected"),
    [
        (STORE, Lifecycle.CONTINUOUS),
        (EPHEMERAL, Lifecycle.CONTINUOUS),
        (COPY, Lifecycle.FINITE),
        (SCOPE, Lifecycle.FINITE),
        (SCOPE | {"spec": SCOPE["spec"] | HOURLY}, Lifecycle.SCHEDULED),
        (ARCHIVE, Lifecycle.FINITE),
        (ARCHIVE | {"spec": ARCHIVE["spec"] | HOURLY}, Lifecycle.SCHEDULED),
        (SCOPE | {"spec": "damaged"}, Lifecycle.FINITE),
        ({"kind": "ScopeCopy"}, Lifecycle.FINITE),
    ],
)
def test_a_schedule_makes_a_resource_scheduled(body: dict[str, Any], expected: Lifecycle) -> None:
    """A resource whose spec is missing or damaged has the lifecycle of its kind."""
    (kind,) = (one for one in KINDS if one.name == body["kind"])
    assert kind.lifecycle_of(body) is expected
