"""The Job of an attempt, its pods, and the ConfigMaps beside it."""

from __future__ import annotations

import json
import re
from typing import TYPE_CHECKING, Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from sluice.api.scalars.quantities import Bytes
from sluice.core.copy.plan import SourceStream
from sluice.core.reconcile.shared.jobs import job_name
from sluice.core.values.model import StoreAddress, StreamName
from sluice.core.values.positions import MappedSegment, MappedSource, PositionMap
from sluice.core.workloads.plan import StreamCopyPlan
from sluice.kube.api.kinds import STREAM_COPY
from sluice.kube.api.names import Child
from sluice.kube.jobs import manifests
from sluice.kube.jobs.pods import CREDENTIALS_DIR, EXECUTOR_HEAP, JobRequest
from sluice.pipelines.spark.sparkconf import _LEAST_OVERHEAD
from support.engine.plans import TARGET, segment_plan, stream_plan, whole_plan
from support.kube.pod_security import violations
from support.reconcile.copies import MAPPED, PLAN, UID, spec
from support.reconcile.requests import GIB, RICH, driver, executor, pod_of, request

if TYPE_CHECKING:
    from sluice.kube.api.kinds import Object

NAMES = st.from_regex(r"[a-z0-9]([a-z0-9-]{0,61}[a-z0-9])?", fullmatch=True)
UIDS = st.uuids().map(str)
ATTEMPTS = st.integers(1, 1_000_000_000)
LABEL = re.compile(r"[A-Za-z0-9]([A-Za-z0-9._-]{0,61}[A-Za-z0-9])?")


def test_a_job_is_one_attempt() -> None:
    """The operator counts attempts, and Kubernetes starts none by itself."""
    body = manifests.job(request(attempt=4, profile={"failedTtlSecondsAfterFinished": 3600}))
    assert body["metadata"]["name"] == job_name(UID, 4)
    assert body["spec"]["backoffLimit"] == 0
    assert body["spec"]["podReplacementPolicy"] == "Failed"
    assert body["spec"]["ttlSecondsAfterFinished"] == 3600
    assert body["spec"]["template"]["spec"]["restartPolicy"] == "Never"


def test_the_map_of_positions_reads_back() -> None:
    """The copy owns the map, so it is deleted with it. Other content counts as no map."""
    child = Child(kind=STREAM_COPY, namespace="team", name="orders", uid=UID)
    body = manifests.positions_config_map(child, MAPPED)
    assert manifests.positions_of(body) == MAPPED
    assert [owner["uid"] for owner in body["metadata"]["ownerReferences"]] == [UID]
    for spoiled in (None, {}, {"data": None}, {"data": {"positions.json": "{}"}}):
        assert manifests.positions_of(spoiled) is None


@given(
    numbers=st.lists(st.tuples(*[st.integers(0, 2**63 - 1)] * 4), min_size=1, max_size=5),
    names=st.lists(st.text("abc", min_size=1, max_size=255), min_size=1, max_size=5),
)
def test_a_map_takes_no_more_room_than_the_plan(
    numbers: list[tuple[int, int, int, int]], names: list[str]
) -> None:
    """If the plan fits into a ConfigMap, the map fits, too: no other bound exists."""
    streams = [StreamName(scope="in", stream=name) for name in names]
    segments = [segment_plan(b, start=a, number=c) for a, b, c, _ in numbers]
    plan = stream_plan(*segments).model_copy(
        update={"sources": tuple(SourceStream(stream=stream) for stream in streams)}
    )
    mapped = [
        MappedSegment(segment=c, start=a, end=b, target_segment=d, shift=-a)
        for a, b, c, d in numbers
    ]
    sources = [MappedSource(stream=str(stream), segments=()) for stream in streams]
    sources[0] = MappedSource(stream=str(streams[0]), segments=tuple(mapped))
    positions = PositionMap(target=str(TARGET), same_positions=False, sources=tuple(sources))
    assert len(positions.model_dump_json()) < len(whole_plan(plan).model_dump_json())


@pytest.mark.parametrize("profile", [{}, RICH])
@pytest.mark.parametrize("login", [None, "login"])
@pytest.mark.parametrize("fields", [{}, {"runtime": {"executors": 2}}])
def test_pods_are_restricted(
    profile: dict[str, Any], login: str | None, fields: dict[str, Any]
) -> None:
    """A namespace that enforces the strictest standard admits the pods for any request."""
    made = request(profile=profile, login=login, **fields)
    for pod in (pod_of(made), executor(made)["spec"]):
        assert violations(pod) == []
        (container,) = pod["containers"]
        assert container["securityContext"]["readOnlyRootFilesystem"] is True
        assert pod["enableServiceLinks"] is False


@settings(max_examples=20)
@given(
    name=NAMES,
    uid=UIDS,
    attempt=ATTEMPTS,
    executors=st.sampled_from([None, 0, 3]),
    size=st.sampled_from([1, GIB, 20 * GIB]),
)
def test_the_same_request_gives_the_same_job(
    name: str, uid: str, attempt: int, executors: int | None, size: int
) -> None:
    """Two operators, or one before and after a restart, make the same objects."""
    runtime = {} if executors is None else {"executors": executors}

    def made() -> list[Object]:
        one = request(name=name, uid=uid, attempt=attempt, size=size, runtime=runtime)
        return [manifests.job(one), manifests.run_config_map(one)]

    assert json.dumps(made()) == json.dumps(made())


def test_a_volume_is_given_to_the_pods_group_once() -> None:
    """Otherwise each start would change each file, and an archive has many files."""
    made = request(runtime={"executors": 1}, profile=RICH)
    for pod in (pod_of(made), executor(made)["spec"]):
        assert pod["securityContext"]["fsGroupChangePolicy"] == "OnRootMismatch"


def test_a_driver_without_executors_gets_no_token() -> None:
    """It makes no calls to the API server. Executors never do."""
    alone, leading = request(), request(runtime={"executors": 1}, profile=RICH)
    assert pod_of(alone)["automountServiceAccountToken"] is False
    assert "serviceAccountName" not in pod_of(alone)
    assert pod_of(leading)["automountServiceAccountToken"] is True
    assert pod_of(leading)["serviceAccountName"] == "runner"
    for made in (alone, leading):
        assert executor(made)["spec"]["automountServiceAccountToken"] is False
        assert "serviceAccountName" not in executor(made)["spec"]


def test_credentials_are_files_that_nobody_can_change() -> None:
    """Drivers and executors mount each Secret once, read-only, with its two keys."""
    made = request(login="login", runtime={"executors": 1})
    for pod in (pod_of(made), executor(made)["spec"]):
        secrets = {v["name"]: v["secret"] for v in pod["volumes"] if "secret" in v}
        (volume,) = secrets
        assert secrets[volume]["secretName"] == "login"
        assert [item["key"] for item in secrets[volume]["items"]] == ["username", "password"]
        assert secrets[volume]["defaultMode"] == 0o440
        (mount,) = [m for m in pod["containers"][0]["volumeMounts"] if m["name"] == volume]
        assert mount["mountPath"] == f"{CREDENTIALS_DIR}/login"
        assert mount["readOnly"] is True


def test_a_store_that_asks_for_no_login_gets_none() -> None:
    """No Secret is mounted without need."""
    assert not any("secret" in volume for volume in pod_of(request())["volumes"])


def test_both_stores_secrets_are_mounted_once_each() -> None:
    """One Secret for both stores is one volume. Two Secrets are two volumes."""
    there = StoreAddress(uri="tcp://there:9090", secret="one")  # noqa: S106 - a name
    for source, expected in (("one", ["one"]), ("two", ["one", "two"])):
        here = StoreAddress(uri="tcp://here:9090", secret=source)
        plan = StreamCopyPlan(sources=(here,), target=there, streams=PLAN.streams)
        made = request()
        made = JobRequest(
            child=made.child,
            attempt=1,
            spec=made.spec,
            plan=plan,
            profile=made.profile,
            settings=made.settings,
        )
        volumes = [v["secret"]["secretName"] for v in pod_of(made)["volumes"] if "secret" in v]
        assert volumes == expected


def test_only_tmp_can_be_written() -> None:
    """All else is mounted read-only, and the size of /tmp is bounded."""
    made = request(login="login", profile={"driver": {"scratchSize": "3Gi"}})
    mounts = driver(made)["volumeMounts"]
    assert [m["mountPath"] for m in mounts if not m.get("readOnly")] == ["/tmp"]  # noqa: S108
    (scratch,) = [v["emptyDir"] for v in pod_of(made)["volumes"] if "emptyDir" in v]
    assert scratch == {"sizeLimit": "3Gi"}


def test_the_driver_finds_its_files_where_it_is_told() -> None:
    """Plan, controls and template are mounted at the paths of the command line."""
    made = request(runtime={"executors": 2}, profile=RICH)
    args = driver(made)["args"]
    assert args[:4] == ["sluice", "--log-json", "--log-level=info", "driver"]
    assert "--plan=/etc/sluice/run/plan.json" in args
    assert "--controls=/etc/sluice/controls/controls.json" in args
    assert "--executor-template=/etc/sluice/run/executor.yaml" in args
    assert {"--slots=3", "--executors=2", "--executor-cores=1"} <= set(args)
    assert "--spark-conf=spark.executor.extraJavaOptions=-Xss4m" in args
    volumes = {volume["name"]: volume for volume in pod_of(made)["volumes"]}
    run = manifests.run_config_map(made)
    assert volumes["run"]["configMap"]["name"] == run["metadata"]["name"]
    assert run["data"].keys() == {"plan.json", "executor.yaml"}
    assert StreamCopyPlan.model_validate_json(run["data"]["plan.json"]) == made.plan
    controls = manifests.controls_config_map(made.child, made.spec, 1)
    assert volumes["controls"]["configMap"]["name"] == controls["metadata"]["name"]
    assert controls["data"].keys() == {"controls.json"}


def test_an_executors_memory_is_not_all_its_jvms() -> None:
    """Python keeps the rest of the memory, whatever size a tenant chooses."""
    sizes = {"resources": {"memory": "2Gi"}}
    made = request(runtime={"executors": 1, "executor": sizes})
    (heap,) = [arg for arg in driver(made)["args"] if arg.startswith("--executor-memory")]
    assert heap == "--executor-memory=512Mi"
    (container,) = executor(made)["spec"]["containers"]
    assert container["resources"]["limits"]["memory"] == str(2 * GIB)


def test_processors_have_a_limit_only_if_somebody_asks_for_one() -> None:
    """Without a limit a pod may use spare cores of its node.

    A quota of the namespace may require a limit.
    """
    sizes = {"resources": {"cpu": "500m", "cpuLimit": 2}}
    made = request(runtime={"executors": 1, "driver": sizes, "executor": sizes})
    (container,) = executor(made)["spec"]["containers"]
    for resources in (driver(made)["resources"], container["resources"]):
        assert resources["requests"]["cpu"] == "500m"
        assert resources["limits"]["cpu"] == "2000m"
    assert "cpu" not in driver(request())["resources"]["limits"]


def test_the_smallest_executor_that_may_be_asked_for_has_what_spark_insists_on() -> None:
    """It has the JVM's heap, and beside it the least memory that Python needs."""
    least = request(runtime={"executor": {"resources": {"memory": "768Mi"}}}).spec.runtime.executor
    assert least is not None
    assert least.resources.memory == Bytes("1", "1Ti").parse(EXECUTOR_HEAP) + _LEAST_OVERHEAD


def test_the_driver_knows_who_it_is() -> None:
    """Log lines name the resource and the attempt. The pod's own facts come from the cluster."""
    env = {entry["name"]: entry for entry in driver(request(attempt=5))["env"]}
    assert env["SLUICE_RESOURCE"]["value"] == "StreamCopy/team/orders"
    assert env["SLUICE_ATTEMPT"]["value"] == "5"
    assert env["SLUICE_CREDENTIALS_DIR"]["value"] == CREDENTIALS_DIR
    assert env["HOME"]["value"] == "/tmp"  # noqa: S108 - the pod's own
    facts = {"POD_NAME", "POD_UID", "POD_NAMESPACE", "POD_IP"}
    assert all("fieldRef" in env[name]["valueFrom"] for name in facts)
    assert not any("secretKeyRef" in json.dumps(entry) for entry in env.values())


def test_a_plan_is_written_once_and_whole() -> None:
    """The ConfigMap is immutable, and the plan is read as it was written."""
    body = manifests.plan_config_map(request().child, PLAN)
    assert body["immutable"] is True
    assert StreamCopyPlan.model_validate_json(body["data"]["plan.json"]) == PLAN


@pytest.mark.parametrize(
    ("limits", "controls"),
    [
        ({}, {"bytesPerSecond": None, "inFlightBytes": None}),
        ({"bytesPerSecond": "1Mi"}, {"bytesPerSecond": 1 << 20, "inFlightBytes": None}),
        ({"inFlightBytes": "4Mi"}, {"bytesPerSecond": None, "inFlightBytes": 4 << 20}),
    ],
)
def test_controls_are_the_limits_in_bytes(limits: dict[str, str], controls: object) -> None:
    """A limit that the spec leaves out is absent."""
    assert json.loads(manifests.controls_data(spec(limits=limits))["controls.json"]) == controls
