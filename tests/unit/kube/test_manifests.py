from __future__ import annotations

import json
import re
from typing import TYPE_CHECKING, Any

import pytest
import yaml
from hypothesis import given, settings
from hypothesis import strategies as st

from sluice.api.quantities import Bytes
from sluice.core.model import StoreAddress
from sluice.core.plan import Plan
from sluice.core.reconcile.copy_status import job_name, plan_name
from sluice.kube import manifests, names
from sluice.kube.names import Child
from sluice.kube.pods import CREDENTIALS_DIR, EXECUTOR_HEAP, JobRequest, executors_for
from sluice.kube.settings import OperatorSettings, Profile
from sluice.pipelines.sparkconf import _LEAST_OVERHEAD
from support.copies import PLAN, UID, spec
from support.plans import segment_plan, stream_plan, whole_plan
from support.pod_security import violations

if TYPE_CHECKING:
    from sluice.kube.client import Object

NAMES = st.from_regex(r"[a-z0-9]([a-z0-9-]{0,61}[a-z0-9])?", fullmatch=True)
UIDS = st.uuids().map(str)
ATTEMPTS = st.integers(1, 1_000_000_000)
LABEL = re.compile(r"[A-Za-z0-9]([A-Za-z0-9._-]{0,61}[A-Za-z0-9])?")
GIB = 1 << 30
RICH = {
    "image": "registry.example/sluice:1",
    "serviceAccountName": "runner",
    "slots": 3,
    "maxExecutors": 4,
    "nodeSelector": {"disk": "fast"},
    "tolerations": [{"key": "batch", "operator": "Exists"}],
    "affinity": {"nodeAffinity": {}},
    "priorityClassName": "low",
    "labels": {"team": "data", names.UID_LABEL: "mine", "app.kubernetes.io/name": "mine"},
    "annotations": {"mesh": "off"},
    "sparkConf": {"spark.executor.extraJavaOptions": "-Xss4m"},
}


def request(
    *,
    name: str = "orders",
    uid: str = UID,
    attempt: int = 1,
    size: int | None = None,
    login: str | None = None,
    profile: dict[str, Any] | None = None,
    operator: dict[str, Any] | None = None,
    **fields: Any,
) -> JobRequest:
    """What an attempt's Job is made from; fields of the spec may be set."""
    plan = PLAN if size is None else whole_plan(stream_plan(segment_plan(size)))
    if login is not None:
        target = StoreAddress(uri="tcp://there:9090", secret=login)
        plan = Plan(source=plan.source, target=target, streams=plan.streams)
    own = {"image": "localhost/sluice:dev", "executorNamespaces": ["team"]} | (operator or {})
    return JobRequest(
        child=Child(namespace="team", name=name, uid=uid),
        attempt=attempt,
        spec=spec(**fields),
        plan=plan,
        profile=Profile.model_validate(profile or {}),
        settings=OperatorSettings.model_validate(own),
    )


def pod_of(made: JobRequest) -> Object:
    """The driver's pod."""
    pod: Object = manifests.job(made)["spec"]["template"]["spec"]
    return pod


def driver(made: JobRequest) -> Object:
    """The driver's container."""
    (container,) = pod_of(made)["containers"]
    return dict(container)


def executor(made: JobRequest) -> Object:
    """The executors' pod, as Spark reads it."""
    template: Object = yaml.safe_load(manifests.run_config_map(made)["data"]["executor.yaml"])
    return template


# -- names and labels


@settings(max_examples=30)
@given(name=NAMES, uid=UIDS, attempt=ATTEMPTS)
def test_names_fit_whatever_a_copy_is_called(name: str, uid: str, attempt: int) -> None:
    """Every object can be made, and a Job's pods can add to its name."""
    made = request(name=name, uid=uid, attempt=attempt)
    bodies = [
        manifests.job(made),
        manifests.run_config_map(made),
        manifests.plan_config_map(made.child, made.plan),
        manifests.controls_config_map(made.child, made.spec),
    ]
    for body in bodies:
        assert re.fullmatch(r"[a-z0-9]([a-z0-9-]{0,61}[a-z0-9])?", body["metadata"]["name"])
        for value in body["metadata"]["labels"].values():
            assert LABEL.fullmatch(value)
    assert len(bodies[0]["metadata"]["name"]) <= 63 - len("-x7k2p")
    assert len({body["metadata"]["name"] for body in bodies}) == len(bodies)


@given(first=st.tuples(NAMES, UIDS), second=st.tuples(NAMES, UIDS))
def test_no_two_copies_share_a_name(first: tuple[str, str], second: tuple[str, str]) -> None:
    """Neither do copies of one name that follow each other."""
    if first[1] != second[1]:
        assert plan_name(*first) != plan_name(*second)
        assert names.controls_name(*first) != names.controls_name(*second)
        assert job_name(first[1], 1) != job_name(second[1], 1)


def test_children_go_with_their_copy() -> None:
    """Each has its copy for an owner, and is found by its labels."""
    made = request()
    for body in (
        manifests.job(made),
        manifests.run_config_map(made),
        manifests.plan_config_map(made.child, made.plan),
        manifests.controls_config_map(made.child, made.spec),
    ):
        (owner,) = body["metadata"]["ownerReferences"]
        assert (owner["kind"], owner["name"], owner["uid"]) == ("StreamCopy", "orders", UID)
        assert owner["controller"] is True
        assert body["metadata"]["namespace"] == "team"
        assert body["metadata"]["labels"][names.UID_LABEL] == UID


def test_a_profile_does_not_hide_the_labels_that_pods_are_found_by() -> None:
    """An administrator's labels are added; those that the operator looks for stay."""
    made = request(profile=RICH, attempt=7)
    pods = manifests.job(made)["spec"]["template"]["metadata"], executor(made)["metadata"]
    for meta in pods:
        assert meta["labels"]["team"] == "data"
        assert meta["labels"][names.UID_LABEL] == UID
        assert meta["labels"]["app.kubernetes.io/name"] == "sluice"
        assert meta["annotations"] == {"mesh": "off"}
    assert [meta["labels"]["app.kubernetes.io/component"] for meta in pods] == [
        "driver",
        "executor",
    ]
    assert pods[0]["labels"][names.ATTEMPT_LABEL] == "7"


# -- the Job


def test_a_job_is_one_attempt() -> None:
    """The operator counts attempts; Kubernetes starts none of its own."""
    body = manifests.job(request(attempt=4, profile={"ttlSecondsAfterFinished": 3600}))
    assert body["metadata"]["name"] == job_name(UID, 4)
    assert body["spec"]["backoffLimit"] == 0
    assert body["spec"]["podReplacementPolicy"] == "Failed"
    assert body["spec"]["ttlSecondsAfterFinished"] == 3600
    assert body["spec"]["template"]["spec"]["restartPolicy"] == "Never"


@pytest.mark.parametrize("profile", [{}, RICH])
@pytest.mark.parametrize("login", [None, "login"])
@pytest.mark.parametrize("fields", [{}, {"runtime": {"executors": 2}}])
def test_pods_are_restricted(
    profile: dict[str, Any], login: str | None, fields: dict[str, Any]
) -> None:
    """A namespace that enforces the strictest standard admits them, whatever is asked for."""
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
    """Two operators, or one before and after a restart, mean the same objects."""
    runtime = {} if executors is None else {"executors": executors}

    def made() -> list[Object]:
        one = request(name=name, uid=uid, attempt=attempt, size=size, runtime=runtime)
        return [manifests.job(one), manifests.run_config_map(one)]

    assert json.dumps(made()) == json.dumps(made())


def test_a_driver_without_executors_gets_no_token() -> None:
    """It needs nothing of the API server; executors never do."""
    alone, leading = request(), request(runtime={"executors": 1}, profile=RICH)
    assert pod_of(alone)["automountServiceAccountToken"] is False
    assert "serviceAccountName" not in pod_of(alone)
    assert pod_of(leading)["automountServiceAccountToken"] is True
    assert pod_of(leading)["serviceAccountName"] == "runner"
    for made in (alone, leading):
        assert executor(made)["spec"]["automountServiceAccountToken"] is False
        assert "serviceAccountName" not in executor(made)["spec"]


def test_credentials_are_files_that_nobody_can_change() -> None:
    """Each Secret once, its two keys, read-only, in drivers and executors alike."""
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
    """No Secret is mounted for nothing."""
    assert not any("secret" in volume for volume in pod_of(request())["volumes"])


def test_both_stores_secrets_are_mounted_once_each() -> None:
    """One Secret for both stores is one volume; two are two."""
    there = StoreAddress(uri="tcp://there:9090", secret="one")  # noqa: S106 - a name
    for source, expected in (("one", ["one"]), ("two", ["one", "two"])):
        here = StoreAddress(uri="tcp://here:9090", secret=source)
        plan = Plan(source=here, target=there, streams=PLAN.streams)
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
    """Everything else is mounted read-only, and what /tmp takes is bounded."""
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
    assert Plan.model_validate_json(run["data"]["plan.json"]) == made.plan
    controls = manifests.controls_config_map(made.child, made.spec)
    assert volumes["controls"]["configMap"]["name"] == controls["metadata"]["name"]
    assert controls["data"].keys() == {"controls.json"}


def test_an_executors_memory_is_not_all_its_jvms() -> None:
    """Whatever size a tenant asks for, Python keeps the rest of it."""
    sizes = {"resources": {"memory": "2Gi"}}
    made = request(runtime={"executors": 1, "executor": sizes})
    (heap,) = [arg for arg in driver(made)["args"] if arg.startswith("--executor-memory")]
    assert heap == "--executor-memory=512Mi"
    (container,) = executor(made)["spec"]["containers"]
    assert container["resources"]["limits"]["memory"] == str(2 * GIB)


def test_the_smallest_executor_that_may_be_asked_for_has_what_spark_insists_on() -> None:
    """Its JVM's heap, and beside it the least that has to remain for Python."""
    least = request(runtime={"executor": {"resources": {"memory": "768Mi"}}}).spec.runtime.executor
    assert least is not None
    assert least.resources.memory == Bytes("1", "1Ti").parse(EXECUTOR_HEAP) + _LEAST_OVERHEAD


def test_the_driver_knows_who_it_is() -> None:
    """Log lines name the resource and the attempt; the pod's own facts come from the cluster."""
    env = {entry["name"]: entry for entry in driver(request(attempt=5))["env"]}
    assert env["SLUICE_RESOURCE"]["value"] == "StreamCopy/team/orders"
    assert env["SLUICE_ATTEMPT"]["value"] == "5"
    assert env["SLUICE_CREDENTIALS_DIR"]["value"] == CREDENTIALS_DIR
    assert env["HOME"]["value"] == "/tmp"  # noqa: S108 - the pod's own
    facts = {"POD_NAME", "POD_UID", "POD_NAMESPACE", "POD_IP"}
    assert all("fieldRef" in env[name]["valueFrom"] for name in facts)
    assert not any("secretKeyRef" in json.dumps(entry) for entry in env.values())


def test_a_plan_is_written_once_and_whole() -> None:
    """The ConfigMap cannot be changed, and gives the plan back as it was."""
    body = manifests.plan_config_map(request().child, PLAN)
    assert body["immutable"] is True
    assert Plan.model_validate_json(body["data"]["plan.json"]) == PLAN


@pytest.mark.parametrize(
    ("limits", "controls"),
    [
        ({}, {"bytesPerSecond": None, "inFlightBytes": None}),
        ({"bytesPerSecond": "1Mi"}, {"bytesPerSecond": 1 << 20, "inFlightBytes": None}),
        ({"inFlightBytes": "4Mi"}, {"bytesPerSecond": None, "inFlightBytes": 4 << 20}),
    ],
)
def test_controls_are_the_limits_in_bytes(limits: dict[str, str], controls: object) -> None:
    """Where the spec sets none, there is none."""
    assert json.loads(manifests.controls_data(spec(limits=limits))["controls.json"]) == controls


# -- sizes


def test_a_tenants_sizes_go_over_the_profiles() -> None:
    """Memory is asked for and allowed alike; what is left out is the profile's."""
    sizes = {"cpu": "1500m", "memory": "3Gi"}
    asked = driver(request(runtime={"driver": {"resources": sizes}}))["resources"]
    assert asked["requests"] == {"cpu": "1500m", "memory": str(3 * GIB)}
    assert asked["limits"]["memory"] == str(3 * GIB)
    assert driver(request())["resources"] == Profile().driver.resources


def test_making_a_job_changes_no_profile() -> None:
    """What one tenant asks for is not what the next one gets."""
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
    """None for little, one for every 8 GiB, at most what the profile allows."""
    made = request(size=size, operator={"executorNamespaces": namespaces}, **fields)
    assert executors_for(made) == expected
    assert any(arg.startswith("--executors") for arg in driver(made)["args"]) == (expected > 0)


def test_the_runtimes_hash_follows_what_pods_are_made_of() -> None:
    """Whatever changes a pod changes the hash; limits and deadlines do not."""

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
    """Its image, places and priority are in every pod; what it leaves out is not written."""
    made = request(profile=RICH, operator={"imagePullSecrets": ["pull"]})
    for pod in (pod_of(made), executor(made)["spec"]):
        assert pod["containers"][0]["image"] == "registry.example/sluice:1"
        assert pod["imagePullSecrets"] == [{"name": "pull"}]
        for field in ("nodeSelector", "tolerations", "affinity", "priorityClassName"):
            assert pod[field] == RICH[field]
            assert field not in pod_of(request())
    assert driver(request())["image"] == "localhost/sluice:dev"
