"""The Jobs of hooks, at an API server in memory."""

import asyncio
from typing import Any

import pytest

from sluice.core.reconcile.copies.decide import reconcile
from sluice.core.reconcile.copies.hooks.standing import job_of
from sluice.core.reconcile.copies.world import HookSeen
from sluice.core.reconcile.shared.jobs import JobPhase
from sluice.core.values.trouble import Trouble
from sluice.errors import HookRefused
from sluice.kube.api.kinds import CRON_JOB, JOB, POD, STREAM_COPY
from sluice.kube.api.names import UID_LABEL, Child, child_labels, is_pod_of
from sluice.kube.jobs import hooks
from support.kube.api_server import ApiServer
from support.reconcile.copies import PLANNED, UID, after, copy, world

CHILD = Child(kind=STREAM_COPY, namespace="default", name="orders", uid=UID)
NAME = job_of(UID, "before", 1)
SEEN = copy(hooks={"before": {"cronJobRef": {"name": "quiesce"}, "timeoutSeconds": 60}})
ANNOUNCED = after(SEEN, reconcile(SEEN, world(answer=PLANNED)))
CONSENT = {hooks.CONSENT: "true"}
POD_SPEC = {
    "serviceAccountName": "writers",
    "restartPolicy": "Never",
    "containers": [{"name": "kubectl", "image": "i"}],
}


def cron_job(**annotations: str) -> dict[str, Any]:
    """Make a CronJob whose author has set limits and labels."""
    template = {
        "metadata": {"labels": {"team": "shop", UID_LABEL: "another"}},
        "spec": {
            "suspend": True,
            "backoffLimit": 99,
            "activeDeadlineSeconds": 9999,
            "template": {"metadata": {"labels": {"app": "x"}}, "spec": POD_SPEC},
        },
    }
    return {
        "metadata": {"name": "quiesce", "annotations": annotations},
        "spec": {"schedule": "0 0 1 1 *", "jobTemplate": template},
    }


def start(server: ApiServer) -> bool:
    """Make the Job of the hook."""
    return asyncio.run(hooks.start(server.api, CHILD, ANNOUNCED, "before", NAME, keep=600))


def look(server: ApiServer, *, at_work: bool = False) -> Any:
    """Look at the hooks."""
    return asyncio.run(hooks.look(server.api, "default", ANNOUNCED, at_work=at_work))


def test_a_hooks_job_is_the_template_with_the_hooks_limits() -> None:
    """The copy owns the Job, a label identifies it, and its pods are as the author wrote them."""
    server = ApiServer()
    server.put(CRON_JOB, cron_job(**CONSENT))
    assert start(server)
    job = server.body(JOB, NAME)
    assert job is not None
    (owner,) = job["metadata"]["ownerReferences"]
    assert (owner["uid"], owner["controller"]) == (UID, True)
    assert job["metadata"]["labels"] == {"team": "shop"} | child_labels(UID, "hook")
    spec = job["spec"]
    assert (spec["suspend"], spec["backoffLimit"], spec["activeDeadlineSeconds"]) == (False, 2, 60)
    assert spec["ttlSecondsAfterFinished"] == 600
    assert spec["template"]["spec"] == POD_SPEC
    assert spec["template"]["metadata"] == {
        "labels": {"app": "x"},
        "annotations": {"sluice.dev/copy": "orders", "sluice.dev/hook": "before"},
    }


def test_the_same_job_is_adopted() -> None:
    """An operator that was killed has already made the Job."""
    server = ApiServer()
    server.put(CRON_JOB, cron_job(**CONSENT))
    assert [start(server), start(server)] == [True, False]
    assert len(server.all(JOB)) == 1


def test_a_foreign_job_of_that_name_is_not_adopted() -> None:
    """The end of the foreign Job would count as the hook's."""
    server = ApiServer()
    server.put(CRON_JOB, cron_job(**CONSENT))
    server.put(JOB, {"metadata": {"name": NAME, "labels": child_labels(UID, "hook")}})
    with pytest.raises(HookRefused, match="not this copy's"):
        start(server)
    assert look(server) == {}


@pytest.mark.parametrize("notes", [{}, {hooks.CONSENT: "false"}, {hooks.CONSENT: ""}])
def test_a_cron_job_without_consent_is_not_run(notes: dict[str, str]) -> None:
    """The author may not intend it for users who may make copies but no pods."""
    server = ApiServer()
    server.put(CRON_JOB, cron_job(**notes))
    seen = look(server)["before"]
    assert isinstance(seen, Trouble)
    assert (seen.reason, seen.field) == ("HookRefused", "spec.hooks.before.cronJobRef.name")
    assert 'sluice.dev/hook: "true"' in str(seen)
    with pytest.raises(HookRefused):
        start(server)
    assert server.all(JOB) == []


def test_a_cron_job_that_is_missing_is_named() -> None:
    """The message has its name and the field."""
    seen = look(ApiServer())["before"]
    assert (seen.reason, seen.field) == ("HookNotFound", "spec.hooks.before.cronJobRef.name")
    assert "'quiesce'" in seen.message


def test_while_an_attempt_is_at_work_no_cron_job_is_read() -> None:
    """The operator reads a hook that runs after the copy when the hook may begin."""
    seen = copy(hooks={"after": {"cronJobRef": {"name": "switch"}}})
    found = asyncio.run(hooks.look(ApiServer().api, "default", seen, at_work=True))
    assert found == {}


@pytest.mark.parametrize(
    ("status", "phase", "words"),
    [
        ({}, JobPhase.PENDING, ""),
        ({"active": 1}, JobPhase.RUNNING, ""),
        ({"conditions": [{"type": "Complete", "status": "True"}]}, JobPhase.SUCCEEDED, ""),
        ({"conditions": [{"type": "Complete", "status": "False"}]}, JobPhase.PENDING, ""),
        (
            {
                "conditions": [
                    {"type": "Failed", "status": "True", "reason": "R", "message": "a\nb"}
                ]
            },
            JobPhase.FAILED,
            "R: a b",
        ),
    ],
)
def test_a_job_says_how_far_it_is(status: dict[str, Any], phase: JobPhase, words: str) -> None:
    """Its conditions decide, whatever its pods do."""
    now = "2026-01-02T03:04:05Z"
    for condition in status.get("conditions", ()):
        condition["lastTransitionTime"] = now
    meta = {"name": NAME, "creationTimestamp": now}
    seen = hooks.hook_seen({"metadata": meta, "status": status})
    assert isinstance(seen, HookSeen)
    assert (seen.phase, seen.words) == (phase, words)


def test_pods_of_a_hook_are_no_drivers() -> None:
    """They neither match a driver's Job name nor count among the running pods of a copy."""
    owner = {"kind": "Job", "name": NAME, "uid": "u", "controller": True}
    labels = child_labels(UID, "driver")
    pod = ApiServer().put(
        POD, {"metadata": {"name": "p", "labels": labels, "ownerReferences": [owner]}}
    )
    assert not is_pod_of(pod, UID)
