"""Copies that are suspended, resumed and requested again."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from support.tenants.tenant import SLOW

if TYPE_CHECKING:
    from collections.abc import Callable

    from e2e.operator.conftest import Source
    from support.tenants.tenant import Tenant


@pytest.mark.exhaustive
def test_suspended_copy_is_planned_and_moves_nothing(
    tenant: Tenant, small: Source, scope: str, whole: Callable[..., None]
) -> None:
    """A suspended copy shows its plan before any byte moves. Resumed, it copies by that plan."""
    copy = tenant.copy_resource("later", small.name, f"{scope}/later", suspend=True)
    tenant.apply(copy)
    tenant.until_reason("later", "Suspended")
    status = tenant.status("later")
    plan = tenant.get("configmap", status["planRef"]["name"])
    assert plan is not None
    assert plan["immutable"] is True
    assert '"target"' in plan["data"]["plan.json"]
    assert tenant.get_all("jobs") == []
    tenant.until_tidied("later")
    assert tenant.left_over(f"{scope}/later", status["copyID"]) == []
    tenant.patch("scopy", "later", {"spec": {"suspend": False}})
    done = tenant.until_ready("later")
    assert done["planHash"] == status["planHash"]
    whole(f"{scope}/later", small)


@pytest.mark.exhaustive
def test_suspended_midway_keeps_what_is_staged(
    tenant: Tenant, source: Source, scope: str, whole: Callable[..., None]
) -> None:
    """A copy suspended midway keeps its staging, and the next attempt goes on from there."""
    tenant.apply(tenant.copy_resource("paused", source.name, f"{scope}/paused", limits=SLOW))
    staged = tenant.until_staged("paused")
    tenant.patch("scopy", "paused", {"spec": {"suspend": True}})
    tenant.until_reason("paused", "Suspended")
    ours = tenant.get_all("pods", labelSelector="app.kubernetes.io/managed-by=sluice-operator")
    assert "Running" not in [pod["status"].get("phase") for pod in ours], "nor is about to end"
    assert tenant.left_over(f"{scope}/paused", tenant.status("paused")["copyID"])
    tenant.patch("scopy", "paused", {"spec": {"suspend": False}})
    tenant.until("it goes on", lambda: tenant.reason("paused") == "Copying")
    assert tenant.percent("paused") >= staged
    status = tenant.until_ready("paused")
    whole(f"{scope}/paused", source)
    assert [entry["outcome"] for entry in status["history"]] == ["Suspended", "Succeeded"]
    assert status["failures"] == 0


@pytest.mark.exhaustive
def test_asked_for_again_after_success_does_nothing_twice(
    tenant: Tenant, small: Source, scope: str, whole: Callable[..., None]
) -> None:
    """`sluice.dev/requestedAt` on a finished copy finds its target whole, and appends nothing."""
    tenant.apply(tenant.copy_resource("twice", small.name, f"{scope}/twice"))
    tenant.until_ready("twice")
    tenant.annotate("twice", "sluice.dev/requestedAt=now")
    tenant.until(
        "the request was heard",
        lambda: tenant.status("twice").get("lastHandledRequestedAt") == "now",
    )
    status = tenant.until_ready("twice")
    assert status["attempts"] == 1
    whole(f"{scope}/twice", small)
