"""The Job of a StreamQuery: restricted, with no rights, and bound to its request."""

from __future__ import annotations

import hashlib
from typing import TYPE_CHECKING, Any

import pytest

from sluice.api.kinds.streamquery import StreamQuery
from sluice.commands.query_pods import query_verifier
from sluice.core.query.request import query_request
from sluice.core.values.model import StoreAddress
from sluice.errors import InfrastructureError, InvalidSpec
from sluice.kube.api.kinds import STREAM_QUERY
from sluice.kube.api.names import Child
from sluice.kube.jobs.attempts import is_verifier
from sluice.kube.jobs.query_job import (
    CHECKPOINTS_DIR,
    REQUEST_FILE,
    QueryJob,
    query_job,
    request_config_map,
    runtime_hash,
)
from sluice.kube.jobs.verify_job import verify_config_map, verify_job
from sluice.kube.loop.settings import OperatorSettings, Profile, QuerySettings
from sluice.pipelines.driver.query_driver import read_request
from support.cases import resources
from support.kube.pod_security import violations

if TYPE_CHECKING:
    from pathlib import Path

SECRET = StoreAddress(uri="tcp://store:9090", secret="login")  # noqa: S106 - its name
SETTINGS = OperatorSettings(image="sluice:1", queries=QuerySettings(image="sluice-query:1"))


def job(*, memory: str = "", profile: Profile | None = None, **spec: Any) -> QueryJob:
    """Return the Job of the first attempt of a query with these fields of the spec."""
    runtime = {"driver": {"resources": {"memory": memory}}} if memory else {}
    body = {
        **resources.QUERY,
        "metadata": {"name": "counts", "namespace": "team-a"},
        "spec": {**resources.QUERY["spec"], "runtime": runtime, **spec},
    }
    query = StreamQuery.model_validate(body)
    return QueryJob(
        child=Child(kind=STREAM_QUERY, namespace="team-a", name="counts", uid="u"),
        attempt=1,
        spec=query.spec,
        request=query_request(query, lambda *_: SECRET, cluster="c"),
        claim="checkpoints",
        profile=profile or Profile(),
        settings=SETTINGS,
    )


def pod_of(made: QueryJob) -> dict[str, Any]:
    """Return the template of its pods."""
    template: dict[str, Any] = query_job(made)["spec"]["template"]
    return template


def test_the_pod_is_restricted_and_has_no_token() -> None:
    """The pod mounts login, request and checkpoint, and writes to the checkpoint and to /tmp."""
    template = pod_of(job())
    assert violations(template["spec"]) == []
    assert template["spec"]["automountServiceAccountToken"] is False
    assert "serviceAccountName" not in template["spec"]
    (container,) = template["spec"]["containers"]
    assert container["image"] == "sluice-query:1"
    writable = {one["mountPath"] for one in container["volumeMounts"] if not one.get("readOnly")}
    assert writable == {"/tmp", CHECKPOINTS_DIR}  # noqa: S108 - the pod's own
    (login,) = [one for one in template["spec"]["volumes"] if "secret" in one]
    assert login["secret"]["secretName"] == "login"


def test_half_of_the_memory_is_for_windows() -> None:
    """The JVM's heap follows the pod's limit, from the spec or the profile."""

    def heap(made: QueryJob) -> int:
        (container,) = pod_of(made)["spec"]["containers"]
        (found,) = [one for one in container["args"] if one.startswith("--heap=")]
        return int(found.removeprefix("--heap="))

    assert heap(job()) == 1 << 30
    assert heap(job(memory="6Gi")) == 3 << 30
    small = Profile.model_validate({"query": {"resources": {"limits": {"memory": "512Mi"}}}})
    assert heap(job(profile=small)) == 256 << 20
    free = Profile.model_validate({"query": {"resources": {}}})
    assert heap(job(profile=free)) == 1 << 30


def test_a_driver_takes_no_request_but_its_own(tmp_path: Path) -> None:
    """Users who may change ConfigMaps cannot give it other stores or another query."""
    made = job()
    config_map = request_config_map(made)
    assert config_map["immutable"] is True
    (container,) = pod_of(made)["spec"]["containers"]
    (given,) = [one for one in container["args"] if one.startswith("--request-sha256=")]
    sha256 = given.removeprefix("--request-sha256=")
    file = tmp_path / REQUEST_FILE
    file.write_text(config_map["data"][REQUEST_FILE])
    assert hashlib.sha256(file.read_bytes()).hexdigest() == sha256
    assert read_request(file, sha256) == made.request
    file.write_text(config_map["data"][REQUEST_FILE].replace("clicks", "salaries"))
    with pytest.raises(InfrastructureError, match="is not what the operator wrote"):
        read_request(file, sha256)
    with pytest.raises(InvalidSpec, match="is no request of a query"):
        read_request(tmp_path / "nothing")
    file.write_text("{}")
    with pytest.raises(InvalidSpec, match="queryId: Field required"):
        read_request(file)


@pytest.mark.parametrize(
    "change",
    [
        {"query": {"sql": "SELECT upper(event) AS event FROM clicks"}},
        {"trigger": {"intervalSeconds": 5}},
        {"limits": {"batchBytes": "1Mi"}},
        {"onChange": "Restart"},
        {"mode": "Once"},
        {"runtime": {"driver": {"resources": {"memory": "4Gi"}}}},
    ],
    ids=str,
)
def test_each_change_of_the_spec_replaces_the_job(change: dict[str, Any]) -> None:
    """Suspending does not change the Job but deletes it."""
    assert runtime_hash(job(**change)) != runtime_hash(job())
    assert runtime_hash(job(suspend=True)) == runtime_hash(job())


def test_kubernetes_replaces_the_pod_unless_that_is_in_vain() -> None:
    """A drained node is no failure. A wrong spec or damaged data end the Job."""
    spec = query_job(job())["spec"]
    assert (spec["backoffLimit"], spec["podReplacementPolicy"]) == (6, "Failed")
    ignored, failing = spec["podFailurePolicy"]["rules"]
    assert ignored["action"] == "Ignore"
    assert failing["onExitCodes"]["containerName"] == "driver"


def test_a_verification_has_a_pod_as_restricted_and_without_the_checkpoint() -> None:
    """It reads what the driver reads, and mounts nothing that it could harm."""
    made = job(memory="6Gi", verify={"timeoutSeconds": 90})
    found = verify_job(made, 7)
    spec = found["spec"]
    assert (spec["backoffLimit"], spec["activeDeadlineSeconds"]) == (0, 90)
    pod = spec["template"]["spec"]
    assert violations(pod) == []
    assert pod["automountServiceAccountToken"] is False
    (container,) = pod["containers"]
    assert container["image"] == "sluice-query:1"
    writable = {one["mountPath"] for one in container["volumeMounts"] if not one.get("readOnly")}
    assert writable == {"/tmp"}  # noqa: S108 - the pod's own
    assert f"--memory={3 << 30}" in container["args"]
    config_map = verify_config_map(made, 7)
    sha256 = hashlib.sha256(config_map["data"][REQUEST_FILE].encode()).hexdigest()
    assert f"--request-sha256={sha256}" in container["args"]
    (volume,) = [one for one in pod["volumes"] if one["name"] == "run"]
    assert volume["configMap"]["name"] == config_map["metadata"]["name"]
    assert is_verifier(found)
    assert not is_verifier(query_job(made))


def test_spec_verify_does_not_replace_the_driver() -> None:
    """A driver's Job does not depend on it."""
    assert runtime_hash(job(verify={})) == runtime_hash(job())


def test_options_of_a_verification_are_those_of_its_command() -> None:
    """The command takes each argument of the pod."""
    (container,) = verify_job(job(verify={}), 1)["spec"]["template"]["spec"]["containers"]
    words = container["args"][container["args"].index("query-verifier") + 1 :]
    assert query_verifier.make_context("query-verifier", words).params["disk"] > 1 << 20
