"""Hooks of copies at a real API server and store, and CloudEvents about the ends of copies.

The operator and the sink are processes of this machine. Kubernetes' own Job controller makes the
pods of Jobs. These find no node, and the test ends them (`support.cluster.kubelet`).
"""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

import pytest

from support.kube.sink import Receiver, receiver
from support.tenants.desk import Desk

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from localstore import ForeignClient, Standalone
    from support.cluster.local_operator import LocalOperator

pytestmark = pytest.mark.timeout(600)

EVENTS, KEYS = 200, 8
CONSENT = {"sluice.dev/hook": "true"}


@pytest.fixture(scope="module")
def sink(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Receiver]:
    """Yield a sink for the operator's notices, which fails at first."""
    with receiver(tmp_path_factory.mktemp("sink"), 503, 202) as running:
        yield running


@pytest.fixture(scope="module")
def operator_settings(sink: Receiver) -> dict[str, Any]:
    """Return settings with which the operator sends notices to the sink."""
    return {"notices": {"sink": sink.url}}


class HookDesk(Desk):
    """A namespace. The test runs its pods of drivers, and ends its pods of hooks."""

    def cron_job(self, name: str, annotations: dict[str, str]) -> None:
        """Apply a CronJob that does not run by itself."""
        pod = {
            "restartPolicy": "Never",
            "nodeSelector": {"sluice.dev/taken-by": "nobody"},
            "securityContext": {
                "runAsNonRoot": True,
                "runAsUser": 65532,
                "seccompProfile": {"type": "RuntimeDefault"},
            },
            "containers": [
                {
                    "name": "main",
                    "image": "localhost/none",
                    "securityContext": {
                        "allowPrivilegeEscalation": False,
                        "capabilities": {"drop": ["ALL"]},
                    },
                }
            ],
        }
        spec = {
            "suspend": True,
            "schedule": "0 0 1 1 *",
            "jobTemplate": {"spec": {"template": {"spec": pod}}},
        }
        meta = {"name": name, "annotations": annotations}
        body = {"apiVersion": "batch/v1", "kind": "CronJob", "metadata": meta, "spec": spec}
        self.tenant.apply(body)

    def end_hook(self, phase: str) -> None:
        """End the pod of the next hook."""
        name = self.waiting("hook")["metadata"]["name"]
        patch = f"--patch={json.dumps({'status': {'phase': phase}})}"
        self.tenant.run("patch", "pod", name, "--subresource=status", "--type=merge", patch)

    def hook_jobs(self, name: str) -> list[str]:
        """Return the names of the Jobs of a copy's hooks."""
        label = "app.kubernetes.io/component=hook"
        return sorted(
            job["metadata"]["name"]
            for job in self.tenant.get_all("jobs", labelSelector=label)
            if job["metadata"]["ownerReferences"][0]["name"] == name
        )


@pytest.fixture
def desk(local_operator: LocalOperator, tmp_path: Path) -> HookDesk:
    """Return the namespace."""
    return HookDesk(local_operator.tenant, tmp_path)


def told(sink: Receiver, name: str) -> list[dict[str, Any]]:
    """Return the events about a resource. An event that was refused at first is there twice."""
    return [one["body"] for one in sink.got() if one["body"]["data"]["name"] == name]


def test_a_copy_runs_between_its_hooks(
    desk: HookDesk,
    local_operator: LocalOperator,
    sink: Receiver,
    standalone: Standalone,
    foreign: ForeignClient,
    scope: str,
) -> None:
    """A copy has all events up to the first hook's end, and is Ready after the second hook.

    The operator is killed while each hook runs, and makes no Job twice.
    """
    tenant, operator = desk.tenant, local_operator.operator
    foreign.create(scope, "orders")
    foreign.write(scope, "orders", events=EVENTS, keys=KEYS)
    for cron_job in ("stop-writers", "switch-writers"):
        desk.cron_job(cron_job, CONSENT)
    hooks = {
        "before": {"cronJobRef": {"name": "stop-writers"}},
        "after": {"cronJobRef": {"name": "switch-writers"}},
    }
    tenant.apply(tenant.copy_resource("quiet", f"{scope}/orders", f"{scope}/quiet", hooks=hooks))
    said = tenant.until_reason("quiet", "HookRunning")
    assert "before" in said["message"]
    operator.kill()
    foreign.write(scope, "orders", events=EVENTS, keys=KEYS, first=EVENTS)
    operator.start()
    desk.end_hook("Succeeded")
    desk.drive()
    tenant.until(
        "the hook after runs", lambda: "Hook after" in tenant.condition("quiet").get("message", "")
    )
    assert foreign.read(scope, "quiet").events == 2 * EVENTS, "it can be read before the hook"
    assert tenant.condition("quiet", "HooksSucceeded")["status"] == "Unknown"
    operator.kill()
    operator.start()
    desk.end_hook("Succeeded")
    status = tenant.until_ready("quiet")
    assert {point: one["state"] for point, one in status["hooks"].items()} == {
        "before": "Succeeded",
        "after": "Succeeded",
    }
    assert len(desk.hook_jobs("quiet")) == 2
    assert status["attempts"] == 1
    wanted = {"HookRunning", "HookSucceeded", "Copied"}
    tenant.until(
        "all events are there", lambda: wanted <= {reason for reason, _ in tenant.events("quiet")}
    )
    tenant.until("the sink is told", lambda: told(sink, "quiet"))
    event = told(sink, "quiet")[-1]
    assert event["type"] == "dev.sluice.streamcopy.succeeded"
    assert event["data"]["progress"]["events"] == 2 * EVENTS
    assert standalone.controller_uri.removeprefix("tcp://") not in str(event)


@pytest.mark.exhaustive
def test_a_hook_that_fails_is_named(
    desk: HookDesk, sink: Receiver, foreign: ForeignClient, scope: str
) -> None:
    """A failed hook is named in condition, event and CloudEvent. A request runs it again."""
    tenant = desk.tenant
    foreign.create(scope, "orders")
    desk.cron_job("breaks", CONSENT)
    hooks = {"before": {"cronJobRef": {"name": "breaks"}, "backoffLimit": 0}}
    tenant.apply(tenant.copy_resource("failing", f"{scope}/orders", f"{scope}/t", hooks=hooks))
    desk.end_hook("Failed")
    said = tenant.until_reason("failing", "HookFailed")
    (job,) = desk.hook_jobs("failing")
    assert job in said["message"]
    assert "sluice.dev/requestedAt" in said["message"]
    wanted = ("HookFailed", said["message"])
    tenant.until("the event is there", lambda: wanted in tenant.events("failing"))
    tenant.until("the sink is told", lambda: told(sink, "failing"))
    event = told(sink, "failing")[-1]
    assert (event["type"], event["reason"]) == ("dev.sluice.streamcopy.failed", "HookFailed")
    tenant.annotate("failing", "sluice.dev/requestedAt=now")
    desk.end_hook("Succeeded")
    desk.drive()
    tenant.until_ready("failing")
    assert len(desk.hook_jobs("failing")) == 2


@pytest.mark.exhaustive
def test_a_cron_job_that_is_not_meant_for_hooks_is_not_run(
    desk: HookDesk, foreign: ForeignClient, scope: str
) -> None:
    """A CronJob without consent is not run, since the right to make copies gives no pods."""
    tenant = desk.tenant
    foreign.create(scope, "orders")
    desk.cron_job("private", {})
    hooks = {"before": {"cronJobRef": {"name": "private"}}}
    tenant.apply(tenant.copy_resource("curious", f"{scope}/orders", f"{scope}/t", hooks=hooks))
    said = tenant.until_reason("curious", "HookRefused")
    assert "spec.hooks.before.cronJobRef.name" in said["message"]
    assert desk.hook_jobs("curious") == []
    tenant.run("delete", "scopy", "curious")
