"""Drivers in pods of a real cluster, alone and with executors."""

from __future__ import annotations

import itertools
from typing import TYPE_CHECKING, Any
from uuid import uuid4

import pytest

from localcluster.release import restrict, sluice_image
from localcluster.store import ClusterStore
from support.cluster.driver_jobs import RIGHTS, DriverJobs
from support.until import PATIENTLY
from support.witness import foreign_witness as witness

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from localcluster import Cluster
    from localstore import ForeignClient
    from sluice.core.workloads.plan import Plan

# The first test may build the image while other tests need the processors.
pytestmark = pytest.mark.timeout(1200)

EVENTS = 1_200_000
SOURCE = (f"pods-{uuid4().hex[:6]}", "events")
BYTES_PER_SECOND = 16 << 20  # at a lower rate the driver moves all bytes itself
_targets = itertools.count(1)


@pytest.fixture(scope="module")
def store(kube: Cluster, announce: Callable[[str], Any]) -> ClusterStore:
    """Return the Pravega of the cluster."""
    found = ClusterStore(kube)
    with announce("Pravega in the cluster"):
        found.up(lambda _: None)
    return found


@pytest.fixture(scope="module")
def java(store: ClusterStore) -> Iterator[ForeignClient]:
    """Yield the official client, which has written the source."""
    with store.foreign() as client:
        client.create(*SOURCE, segments=4)
        client.write(*SOURCE, events=EVENTS, keys=100)
        yield client


@pytest.fixture(scope="module")
def jobs(
    kube: Cluster, store: ClusterStore, announce: Callable[[str], Any]
) -> Iterator[DriverJobs]:
    """Yield a namespace that admits restricted pods only."""
    with announce("the image of Sluice"):
        image = kube.provide(sluice_image(), say=lambda _: None)
    name = f"sluice-test-{uuid4().hex[:8]}"
    restrict(kube, name)
    made = DriverJobs(kube, name, store, image)
    made.apply(*RIGHTS)
    yield made
    kube.kubectl("delete", "namespace", name, PATIENTLY)


@pytest.fixture
def plan(jobs: DriverJobs, java: ForeignClient) -> Plan:
    """Return the plan of a copy to a target of its own."""
    return jobs.plan(SOURCE, (SOURCE[0], f"target-{next(_targets)}"))


def assert_copied(plan: Plan, store: ClusterStore, java: ForeignClient) -> None:
    """Check that the target has the source's bytes, as the stand-alone script reads them."""
    target = plan.streams[0].target
    reports = witness.assert_equal(store.segment_store, java, SOURCE, (target.scope, target.stream))
    assert sum(report["events"] for report in reports) == EVENTS


@pytest.mark.exhaustive
def test_a_driver_copies_alone(
    jobs: DriverJobs, plan: Plan, store: ClusterStore, java: ForeignClient
) -> None:
    """A restricted pod without an API token copies exactly. Its log names the resource."""
    job = jobs.start(plan)
    end = job.ended()
    assert (end.code, end.message) == (0, {"outcome": "Succeeded"}), end.log
    spec = job.pod["spec"]
    assert spec["automountServiceAccountToken"] is False
    assert not [
        volume for volume in spec["volumes"] if "projected" in volume and "token" in str(volume)
    ]
    resource = f"StreamCopy/{jobs.namespace}/{plan.streams[0].target.stream}"
    assert {(line["resource"], line["attempt"]) for line in end.log} == {(resource, "1")}
    assert_copied(plan, store, java)


@pytest.mark.exhaustive
def test_a_driver_that_comes_late_succeeds(
    jobs: DriverJobs, plan: Plan, store: ClusterStore, java: ForeignClient
) -> None:
    """A second driver of a whole copy succeeds without Spark."""
    assert jobs.start(plan).ended().code == 0
    end = jobs.start(plan, attempt=2).ended()
    assert (end.code, end.message) == (0, {"outcome": "Succeeded"})
    assert end.events() == ["driver started", "already complete", "driver ended"]
    assert_copied(plan, store, java)


@pytest.mark.exhaustive
def test_executors_copy_for_a_driver(
    jobs: DriverJobs, plan: Plan, store: ClusterStore, java: ForeignClient
) -> None:
    """Two executors are as restricted as the driver.

    Its pod owns them, and they are gone at the end.
    """
    job = jobs.start(plan, executors=2, bytes_per_second=BYTES_PER_SECOND)
    for pod in job.running(2):
        (owner,) = pod["metadata"]["ownerReferences"]
        assert owner["uid"] == job.pod["metadata"]["uid"]
        assert pod["spec"]["automountServiceAccountToken"] is False
        assert "serviceAccountToken" not in str(pod["spec"]["volumes"])
        (container,) = pod["spec"]["containers"]
        assert container["securityContext"]["readOnlyRootFilesystem"] is True
        assert container["resources"]["limits"]["memory"] == "1Gi"
    end = job.ended()
    assert (end.code, end.message) == (0, {"outcome": "Succeeded"}), end.log
    assert [line["slots"] for line in end.log if line["event"] == "executors are there"] == [2]
    job.until("executors are gone", lambda: not job.executors)
    assert_copied(plan, store, java)


@pytest.mark.exhaustive
def test_executors_stage_what_a_live_target_is_far_behind(
    jobs: DriverJobs, store: ClusterStore, java: ForeignClient
) -> None:
    """A driver with two executors stages a backlog, and ends where a follower goes on."""
    source, target = (SOURCE[0], "backlog"), (SOURCE[0], "backlog-target")
    java.create(*source, segments=2)
    java.write(*source, events=1000, keys=100)
    plan = jobs.plan(source, target, follow=True)
    assert jobs.start(plan).ended().message == {"outcome": "Succeeded"}
    java.write(*source, events=EVENTS, keys=100, first=1000)
    job = jobs.start(plan, executors=2, attempt=2, profile={"catchUpFrom": "4Mi"})
    job.running(2)
    end = job.ended()
    assert (end.code, end.message) == (0, {"outcome": "Succeeded"}), end.log
    assert [line["slots"] for line in end.log if line["event"] == "executors are there"] == [2]
    job.until("executors are gone", lambda: not job.executors)
    reports = witness.assert_equal(store.segment_store, java, source, target)
    assert sum(report["events"] for report in reports) == EVENTS + 1000


@pytest.mark.exhaustive
def test_a_copy_survives_its_executors(
    jobs: DriverJobs, plan: Plan, store: ClusterStore, java: ForeignClient
) -> None:
    """An executor that is killed midway is replaced. The same driver copies exactly."""
    job = jobs.start(plan, executors=2, bytes_per_second=BYTES_PER_SECOND)
    victim, _ = job.running(2)
    job.until_step("Transfer")
    job.delete_pod(victim)
    end = job.ended()
    assert end.code == 0, end.log
    assert_copied(plan, store, java)


@pytest.mark.exhaustive
def test_the_next_driver_goes_on(
    jobs: DriverJobs, plan: Plan, store: ClusterStore, java: ForeignClient
) -> None:
    """If a driver's pod is killed midway, its executors go too. The next driver finishes."""
    first = jobs.start(plan, executors=1, bytes_per_second=BYTES_PER_SECOND)
    (executor,) = first.running(1)
    first.until_step("Transfer")
    first.delete_pod(first.pod)
    second = jobs.start(plan, attempt=2)
    end = second.ended()
    assert (end.code, end.message) == (0, {"outcome": "Succeeded"}), end.log
    assert "MakeTarget" not in [line.get("step") for line in end.log]  # it continued the copy
    name = executor["metadata"]["name"]
    second.until(
        "the executor is gone",
        lambda: name not in [pod["metadata"]["name"] for pod in second.executors],
    )
    assert_copied(plan, store, java)


@pytest.mark.exhaustive
def test_a_driver_that_is_told_to_stop_does(jobs: DriverJobs, plan: Plan) -> None:
    """After SIGTERM a driver ends before Kubernetes kills it, even in a long copy."""
    job = jobs.start(plan, bytes_per_second=1 << 20)
    job.until_step("Transfer")
    name = job.pod["metadata"]["name"]
    # A finalizer keeps the pod, so that the test can read its end.
    held = '{"metadata": {"finalizers": ["sluice.dev/test"]}}'
    jobs.run("patch", "pod", name, "--type=merge", f"--patch={held}")
    try:
        jobs.run("delete", "pod", name, "--wait=false")
        end = job.ended(deleted=name)
    finally:
        jobs.run("patch", "pod", name, "--type=merge", '--patch={"metadata": {"finalizers": null}}')
    assert end.code == 143
    assert end.message["reason"] == "Interrupted"


@pytest.mark.exhaustive
def test_without_room_for_executors_the_driver_says_so(jobs: DriverJobs, plan: Plan) -> None:
    """If no executor is scheduled in time, the driver fails with the category Scheduling."""
    much = {"requests": {"cpu": "900", "memory": "1Gi"}, "limits": {"memory": "1Gi"}}
    job = jobs.start(
        plan,
        executors=1,
        profile={"executor": {"resources": much, "scratchSize": "200Mi"}},
        environment={"SLUICE_EXECUTOR_TIMEOUT": "8"},
    )
    end = job.ended()
    assert end.code == 5, end.log
    assert (end.message["reason"], end.message["category"]) == ("WaitingForExecutors", "Scheduling")
    assert end.message["retryable"] is True
    job.until("executors are gone", lambda: not job.executors)
