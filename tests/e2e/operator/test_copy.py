"""A StreamCopy from `kubectl apply` to Ready, on real pods."""

from __future__ import annotations

import json
import re
import urllib.request
from contextlib import suppress
from typing import TYPE_CHECKING, Any

import pytest

from localcluster import LocalClusterError
from localcluster.release import NAMESPACE
from support.gitops.kstatus import kstatus
from support.tenants.tenant import SLOW
from support.until import PATIENTLY

if TYPE_CHECKING:
    from collections.abc import Callable

    from e2e.operator.conftest import Operator, Source
    from support.tenants.tenant import Tenant


def test_copy_becomes_ready_and_is_exact(
    tenant: Tenant, source: Source, scope: str, whole: Callable[..., None]
) -> None:
    """`kubectl wait` ends when the copy is whole, and the status has the digests and counts."""
    before = tenant.objects()
    tenant.apply(tenant.copy_resource("orders", source.name, f"{scope}/orders"))
    tenant.run("wait", "scopy/orders", "--for=condition=Ready", PATIENTLY)
    whole(f"{scope}/orders", source, read=True)
    status = tenant.status("orders")
    assert status["verification"]["events"] == source.events
    assert status["progress"]["summary"] == "100%"
    assert [entry["outcome"] for entry in status["history"]] == ["Succeeded"]
    conditions = {c["type"]: c["status"] for c in status["conditions"]}
    assert conditions == {"Ready": "True", "Succeeded": "True", "Verified": "True"}
    tenant.until_tidied("orders")
    assert tenant.left_over(f"{scope}/orders", status["copyID"]) == []
    tenant.until(
        "the store is let go",
        lambda: "finalizers" not in (tenant.get("sst", "store") or {})["metadata"],
    )
    tenant.run("delete", "scopy", "orders")
    tenant.until("the children are gone", lambda: tenant.objects() == before)
    whole(f"{scope}/orders", source)


@pytest.mark.exhaustive
def test_applying_the_same_copy_again_does_nothing(
    tenant: Tenant, small: Source, scope: str, whole: Callable[..., None]
) -> None:
    """A copy that is deleted and applied again finds its target whole, and starts no driver."""
    copy = tenant.copy_resource("again", small.name, f"{scope}/again")
    tenant.apply(copy)
    tenant.until_ready("again")
    tenant.run("delete", "scopy", "again")
    tenant.apply(copy)
    status = tenant.until_ready("again")
    assert status["attempts"] == 0
    assert status["verification"]["digest"]
    whole(f"{scope}/again", small)


def test_running_copy_tells_its_story(
    tenant: Tenant, source: Source, scope: str, sluice: Operator
) -> None:
    """Columns, conditions, events, logs, metrics and kstatus agree on a running copy's state."""
    tenant.apply(tenant.copy_resource("told", source.name, f"{scope}/told", limits=SLOW))
    tenant.until_staged("told")
    row = tenant.run("get", "scopy", "told").splitlines()[-1]
    copy = tenant.get("scopy", "told")
    assert copy is not None
    assert re.fullmatch(r"told +Unknown +Copying +\d+% +[\d.]+ [kM]B/s +\d+s", row.strip()), row
    assert kstatus([copy]) == {"StreamCopy/told": "InProgress"}
    (pod,) = tenant.pods()
    assert _is_restricted(pod["spec"])
    assert pod["spec"]["automountServiceAccountToken"] is False
    log = [json.loads(line) for line in tenant.run("logs", pod["metadata"]["name"]).splitlines()]
    assert {line["resource"] for line in log} == {f"StreamCopy/{tenant.namespace}/told"}
    assert {line["attempt"] for line in log} == {"1"}
    tenant.until_ready("told")
    copy = tenant.get("scopy", "told")
    assert copy is not None
    assert kstatus([copy]) == {"StreamCopy/told": "Current"}
    tenant.until(
        "the last event",
        lambda: {"Starting", "Copying", "Copied"} <= {name for name, _ in tenant.events("told")},
    )
    # Other tests kill the operator meanwhile. Its successor counts copies again, but not attempts.
    succeeded = 'sluice_copies{kind="StreamCopy",state="Succeeded"}'
    tenant.until("the metric", lambda: succeeded in _scrape(sluice))


@pytest.mark.exhaustive
def test_limits_may_change_while_the_copy_runs(tenant: Tenant, source: Source, scope: str) -> None:
    """A slow copy goes on at full speed when its limit is removed."""
    slow = {"bytesPerSecond": "150Ki"}  # 160 s for the whole copy
    tenant.apply(tenant.copy_resource("faster", source.name, f"{scope}/faster", limits=slow))
    tenant.until("the copy runs", lambda: tenant.reason("faster") == "Copying")
    tenant.patch("scopy", "faster", {"spec": {"limits": {"bytesPerSecond": "500Mi"}}})
    status = tenant.until_ready("faster")
    assert status["attempts"] == 1


def _scrape(sluice: Operator) -> str:
    """Return the metrics; empty while no operator runs."""
    with (
        suppress(OSError, LocalClusterError),
        sluice.cluster.forward(NAMESPACE, "deployment/sluice-operator", 8080) as port,
        urllib.request.urlopen(f"http://127.0.0.1:{port}/metrics", timeout=10) as answer,
    ):
        text: str = answer.read().decode()
        return text
    return ""


def _is_restricted(spec: dict[str, Any]) -> bool:
    (container,) = spec["containers"]
    own = container["securityContext"]
    return (
        spec["securityContext"]["runAsNonRoot"] is True
        and spec["securityContext"]["seccompProfile"] == {"type": "RuntimeDefault"}
        and own["readOnlyRootFilesystem"] is True
        and own["allowPrivilegeEscalation"] is False
        and own["capabilities"] == {"drop": ["ALL"]}
    )
