"""The size, number and placement of pods."""

from __future__ import annotations

from typing import Any

import pytest

from sluice.kube.jobs import manifests
from sluice.kube.jobs.pods import JobRequest, executors_for, tasks_for
from sluice.kube.loop.settings import ExecutorSize, Profile
from support.reconcile.requests import GIB, RICH, driver, executor, pod_of, request


def test_a_tenants_sizes_go_over_the_profiles() -> None:
    """Memory requests and limits are equal. Missing sizes come from the profile."""
    sizes = {"cpu": "1500m", "memory": "3Gi"}
    asked = driver(request(runtime={"driver": {"resources": sizes}}))["resources"]
    assert asked["requests"] == {"cpu": "1500m", "memory": str(3 * GIB)}
    assert asked["limits"]["memory"] == str(3 * GIB)
    assert driver(request())["resources"] == Profile().driver.resources


def test_making_a_job_changes_no_profile() -> None:
    """One tenant's sizes do not affect the next tenant."""
    profile = Profile()
    before = profile.model_dump()
    made = request(runtime={"driver": {"resources": {"cpu": "2"}}})
    manifests.job(
        JobRequest(
            child=made.child,
            attempt=1,
            spec=made.spec,
            plan=made.plan,
            profile=profile,
            settings=made.settings,
        )
    )
    assert profile.model_dump() == before


@pytest.mark.parametrize(
    ("size", "fields", "namespaces", "expected"),
    [
        (1, {}, ["team"], 0),
        (GIB - 1, {}, ["team"], 0),
        (GIB, {}, ["team"], 1),
        (8 * GIB, {}, ["team"], 1),
        (8 * GIB + 1, {}, ["team"], 2),
        (1000 * GIB, {}, ["team"], 8),
        (1000 * GIB, {}, ["other"], 0),
        (1, {"runtime": {"executors": 3}}, ["team"], 3),
        (1000 * GIB, {"runtime": {"executors": 0}}, ["team"], 0),
    ],
)
def test_executors_follow_the_size_where_the_spec_leaves_them_open(
    size: int, fields: dict[str, Any], namespaces: list[str], expected: int
) -> None:
    """Small copies have none, others one for each 8 GiB, up to the profile's bound."""
    made = request(size=size, operator={"executorNamespaces": namespaces}, **fields)
    assert executors_for(made) == expected
    assert any(arg.startswith("--executors") for arg in driver(made)["args"]) == (expected > 0)


@pytest.mark.parametrize(
    ("runtime", "profile", "expected"),
    [
        ({}, Profile(), 2),
        ({"executors": 0}, Profile(slots=5), 5),
        ({"executors": 3}, Profile(slots=5), 3),
        ({"executors": 3}, Profile(executor=ExecutorSize(cores=4)), 12),
    ],
)
def test_a_copy_is_planned_for_the_tasks_that_will_run_at_once(
    runtime: dict[str, Any], profile: Profile, expected: int
) -> None:
    """The number is executors times their cores, or the driver's own tasks."""
    assert tasks_for(request(runtime=runtime).spec, profile) == expected


def test_the_runtimes_hash_follows_what_pods_are_made_of() -> None:
    """Each change to a pod changes the hash. Limits and deadlines do not."""

    def hashed(made: JobRequest) -> str:
        return manifests.runtime_hash(made.spec, made.profile, made.settings)

    same = [request(), request(limits={"bytesPerSecond": "1Mi"}), request(backoffLimit=0)]
    other = [
        request(runtime={"executors": 1}),
        request(profile={"slots": 5}),
        request(operator={"image": "another"}),
        request(operator={"imagePullSecrets": ["pull"]}),
    ]
    assert len({hashed(made) for made in same}) == 1
    assert len({hashed(made) for made in [*same, *other]}) == 5


def test_pods_are_placed_as_the_profile_says() -> None:
    """Each pod has the profile's image, places and priority. Missing settings are left out."""
    made = request(profile=RICH, operator={"imagePullSecrets": ["pull"]})
    for pod in (pod_of(made), executor(made)["spec"]):
        assert pod["containers"][0]["image"] == "registry.example/sluice:1"
        assert pod["imagePullSecrets"] == [{"name": "pull"}]
        for field in ("nodeSelector", "tolerations", "affinity", "priorityClassName"):
            assert pod[field] == RICH[field]
            assert field not in pod_of(request())
    assert driver(request())["image"] == "localhost/sluice:dev"
