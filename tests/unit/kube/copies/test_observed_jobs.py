"""The Jobs and pods of a copy, which users can forge, and the namespaces that are searched."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

from sluice.core.reconcile.shared.jobs import JobPhase, job_name
from sluice.kube.api.kinds import EVENT, JOB, POD, STREAM_COPY
from sluice.kube.api.names import ATTEMPT_LABEL, child_labels
from sluice.kube.api.objects import STAGING_FINALIZER
from sluice.kube.jobs.jobs import drivers_of
from support.cases.resources import COPY, changed
from unit.kube.copies.test_observer import UID, cluster, look

if TYPE_CHECKING:
    from sluice.kube.api.kinds import Kind, Object
    from support.kube.api_server import ApiServer


def lists_of(server: ApiServer) -> list[tuple[Kind, str | None, str | None]]:
    """Record later lists: kind, namespace, and field selector."""
    calls: list[tuple[Kind, str | None, str | None]] = []
    plain = server.list

    async def listed(kind: Kind, namespace: str | None, **how: Any) -> list[Object]:
        """See Api.list."""
        calls.append((kind, namespace, how.get("fields")))
        return await plain(kind, namespace, **how)

    server.list = listed  # type: ignore[method-assign,assignment]
    return calls


def put_job(server: ApiServer, uid: str, *, copy: str = UID, attempt: int = 1) -> None:
    """Put the Job of an attempt of this or another `copy`, always with this copy's label."""
    labels = child_labels(UID, "driver") | {ATTEMPT_LABEL: str(attempt)}
    meta = {
        "name": job_name(UID, attempt),
        "uid": uid,
        "labels": labels,
        "ownerReferences": [{"kind": "StreamCopy", "uid": copy, "controller": True}],
    }
    server.put(JOB, {"metadata": meta | {"creationTimestamp": "2026-01-02T03:04:05Z"}})


def test_a_job_that_only_has_our_label_is_no_attempt() -> None:
    """A user has cloned a driver's Job, or forged one."""
    server = cluster()
    put_job(server, "first")
    put_job(server, "forged", copy="another", attempt=2)
    assert [job.attempt for job in look(server).world.jobs] == [1]


def put_driver(server: ApiServer, job: str, phase: str) -> None:
    """Put the pod that the Job of this UID has made."""
    labels = child_labels(UID, "driver") | {ATTEMPT_LABEL: "1"}
    owners = [{"kind": "Job", "name": job_name(UID, 1), "uid": job}]
    meta = {"name": f"pod-of-{job}", "labels": labels, "ownerReferences": owners}
    server.put(POD, {"metadata": meta, "status": {"phase": phase}})


def test_a_job_that_was_made_again_is_not_taken_for_the_former() -> None:
    """Both have one name, and the pod of the deleted Job may run for half a minute."""
    server = cluster()
    put_job(server, "second")
    put_driver(server, "first", "Running")
    assert [job.phase for job in look(server).world.jobs] == [JobPhase.PENDING]
    put_driver(server, "second", "Running")
    assert [job.phase for job in look(server).world.jobs] == [JobPhase.RUNNING]


def test_a_pod_of_another_namespace_is_no_driver_of_a_job() -> None:
    """Owners are of the pod's own namespace, so a user there forged the reference."""
    server = cluster()
    put_job(server, "first")
    (job,) = server.all(JOB)
    put_driver(server, "first", "Running")
    (pod,) = server.all(POD)
    assert drivers_of(job, [pod]) == [pod]
    forged = pod | {"metadata": pod["metadata"] | {"namespace": "other"}}
    assert drivers_of(job, [forged]) == []


def test_only_the_latest_attempt_is_asked_why_it_does_not_start() -> None:
    """Users may make many Jobs that look like attempts. Those cause no calls."""
    server = cluster()
    for number in range(1, 10):
        put_job(server, f"uid-of-{number}", attempt=number)
    calls = lists_of(server)
    look(server)
    asked = [fields for kind, _, fields in calls if kind == EVENT]
    assert asked == ["involvedObject.uid=uid-of-9"]


@pytest.mark.parametrize(
    ("meta", "status", "asked"),
    [
        ({"finalizers": [STAGING_FINALIZER]}, {}, False),
        ({"finalizers": [STAGING_FINALIZER]}, {"planHash": "h"}, True),
        ({}, {"planHash": "h"}, False),
    ],
    ids=["never admitted", "admitted", "nothing left"],
)
def test_a_finalizer_of_a_users_makes_no_work_in_other_namespaces(
    meta: dict[str, Any], status: dict[str, Any], *, asked: bool
) -> None:
    """Users write finalizers and references, but no status."""
    ref = {"name": "main", "namespace": "victim"}
    body = changed(COPY, "spec.target.storeRef", ref)
    server = cluster(spec=body["spec"], meta=meta)
    server.edit(STREAM_COPY, "orders", status=status)
    calls = lists_of(server)
    look(server)
    assert ("victim" in {place for _, place, _ in calls}) == asked


@pytest.mark.parametrize("there", [True, False])
def test_a_pod_beside_a_login_counts_though_the_status_was_lost(*, there: bool) -> None:
    """Watches show the pod in the namespace of a StreamStore, where no tenant can make one."""
    ref = {"name": "main", "namespace": "platform"}
    spec = changed(COPY, "spec.target.storeRef", ref)["spec"] | {"suspend": True}
    server = cluster(spec=spec, meta={"finalizers": [STAGING_FINALIZER]})
    owner = {"kind": "Job", "name": job_name(UID, 1), "uid": "u", "controller": True}
    meta = {"name": "left", "namespace": "platform", "labels": child_labels(UID, "driver")}
    pod = {
        "metadata": meta | {"uid": "p", "resourceVersion": "1", "ownerReferences": [owner]},
        "status": {"phase": "Running"},
    }
    server.put(POD, pod)
    assert look(server, shown=[(POD, pod)] if there else []).world.pods == there
