"""An operator with a list of allowed stores, which uses Secrets only with their consent."""

from __future__ import annotations

import socket
from typing import TYPE_CHECKING, Any

import pytest

if TYPE_CHECKING:
    from localstore import Standalone
    from s3gateway import Gateway
    from support.tenants.desk import Desk

pytestmark = pytest.mark.timeout(400)


@pytest.fixture(scope="module")
def operator_settings() -> dict[str, Any]:
    """Return settings that allow stores by this machine's address, and require Secrets' consent."""
    allowed = ["tcp://127.0.0.1:*", "http://127.0.0.1:*"]
    return {"stores": {"allowed": allowed, "requireSecretLabel": True}}


def ready(desk: Desk, name: str, status: str, reason: str) -> str:
    """Wait until a StreamStore is ready, or not, for a reason. Return the message."""

    def found() -> str:
        body = desk.tenant.get("streamstore", name) or {}
        for one in (body.get("status") or {}).get("conditions", []):
            current = one.get("observedGeneration") == body["metadata"]["generation"]
            if one["type"] == "Ready" and current and (one["status"], one["reason"]) == wanted:
                return str(one["message"])
        return ""

    wanted = (status, reason)
    return str(desk.tenant.until(f"{name}: {reason}", found))


def test_an_address_that_is_not_allowed_gets_no_connection(
    desk: Desk, standalone: Standalone
) -> None:
    """A forbidden address gets no connection. The condition names field, address and Helm value."""
    with socket.create_server(("127.0.0.1", 0)) as server:
        server.settimeout(0)
        uri = f"tcp://localhost:{server.getsockname()[1]}"
        desk.tenant.apply(desk.tenant.store_resource("elsewhere", uri=uri))
        said = ready(desk, "elsewhere", "False", "AccessDenied")
        assert f"spec.pravega.controllerURI: the administrator allows no store at {uri}" in said
        assert "stores.allowed" in said
        with pytest.raises(BlockingIOError):
            server.accept()
    uri = standalone.controller_uri
    desk.tenant.apply(desk.tenant.store_resource("elsewhere", uri=uri))
    ready(desk, "elsewhere", "True", "Reachable")


def test_a_secret_is_used_once_it_consents(desk: Desk, gateway: Gateway) -> None:
    """A Secret is used once it consents. Before, the condition names Secret, label and field."""
    desk.bucket(gateway, "archives")
    said = ready(desk, "archives", "False", "AccessDenied")
    assert "spec.s3.credentialsSecretRef.name: the Secret 'keys' lacks the label" in said
    assert "sluice.dev/store=true" in said
    desk.tenant.run("label", "secret", "keys", "sluice.dev/store=true")
    ready(desk, "archives", "True", "Reachable")
