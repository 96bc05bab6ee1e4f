from __future__ import annotations

import pytest

from sluice.kube.client import asked
from sluice.kube.kinds import EPHEMERAL_STREAM, EVENT, NAMESPACE, SECRET


@pytest.mark.parametrize(
    ("method", "path", "told"),
    [
        ("GET", EPHEMERAL_STREAM.path("team", "one"), ("get", "ephemeralstreams")),
        ("GET", EPHEMERAL_STREAM.path("team"), ("list", "ephemeralstreams")),
        ("GET", EPHEMERAL_STREAM.path(None), ("list", "ephemeralstreams")),
        (
            "PATCH",
            EPHEMERAL_STREAM.path("team", "one", "status"),
            ("patch", "ephemeralstreams/status"),
        ),
        ("POST", EVENT.path("team"), ("create", "events")),
        ("DELETE", SECRET.path("team", "login"), ("delete", "secrets")),
        ("GET", NAMESPACE.path(None, "team"), ("get", "namespaces")),
        ("GET", "/apis/apps/v1", ("get", "discovery")),
    ],
)
def test_a_call_is_told_by_verb_and_resource(method: str, path: str, told: tuple[str, str]) -> None:
    """Without a name or a namespace, so that there are few of them to count."""
    assert asked(method, path, watch=False) == told


def test_a_watch_is_no_list() -> None:
    """It is one call, however long it lasts."""
    assert asked("GET", SECRET.path("team"), watch=True) == ("watch", "secrets")
