"""The operator's objects for a copy of a scope, where they differ from those of a stream."""

from __future__ import annotations

import base64
import gzip
import json
from typing import TYPE_CHECKING, Any

import pytest

from sluice.core.workloads.plan import compressed
from sluice.kube.jobs import manifests
from sluice.kube.jobs.pods import executors_for
from support.reconcile.copies import PLAN, UID
from support.reconcile.requests import driver, executor, pod_of, request, scope_plan, scope_request

if TYPE_CHECKING:
    from sluice.kube.api.kinds import Object


def packed(data: bytes) -> Object:
    """Make a ConfigMap with these bytes in place of a plan."""
    return {"binaryData": {"plan.json.gz": base64.b64encode(data).decode()}}


def test_children_belong_to_the_scopes_copy() -> None:
    """Each is deleted with the copy, and a driver knows its copy."""
    made = scope_request()
    for body in (
        manifests.job(made),
        manifests.run_config_map(made),
        manifests.plan_config_map(made.child, made.plan),
        manifests.controls_config_map(made.child, made.spec, 1),
    ):
        (owner,) = body["metadata"]["ownerReferences"]
        assert (owner["kind"], owner["name"], owner["uid"]) == ("ScopeCopy", "shop", UID)
        assert owner["apiVersion"] == "sluice.dev/v1alpha1"
    for container in (driver(made), executor(made)["spec"]["containers"][0]):
        env = {entry["name"]: entry.get("value") for entry in container["env"]}
        assert env["SLUICE_RESOURCE"] == "ScopeCopy/team/shop"


def test_a_plan_of_many_streams_is_compressed() -> None:
    """Uncompressed, it fits no ConfigMap. Its main facts stand beside it as text."""
    plan = scope_plan(1000)
    body = manifests.plan_config_map(scope_request().child, plan)
    assert body["immutable"] is True
    assert "data" not in body
    assert len(json.dumps(body)) < len(plan.model_dump_json()) / 8
    assert manifests.plan_of(body) == plan
    notes = body["metadata"]["annotations"]
    assert notes["sluice.dev/plan-hash"] == plan.hash
    assert notes["sluice.dev/streams"] == "1000"
    assert notes["sluice.dev/bytes"] == str(plan.bytes)
    assert notes["sluice.dev/run"] == "1"


def test_a_plan_of_one_stream_is_text() -> None:
    """Users read it with kubectl."""
    body = manifests.plan_config_map(request().child, PLAN)
    assert body["data"].keys() == {"plan.json"}
    assert manifests.plan_of(body) == PLAN


@pytest.mark.parametrize(
    "body",
    [
        {},
        {"data": None},
        {"binaryData": {}},
        packed(b""),
        packed(b"no gzip"),
        packed(gzip.compress(b"{}")),
        packed(gzip.compress(PLAN.model_dump_json().encode())[:-9]),
        {"binaryData": {"plan.json.gz": "!"}},
    ],
)
def test_what_holds_no_plan_gives_none(body: Object) -> None:
    """Users who may write ConfigMaps may have damaged it."""
    assert manifests.plan_of(body) is None


def test_a_bomb_is_no_plan(monkeypatch: pytest.MonkeyPatch) -> None:
    """The operator never unpacks more than the size of a plan."""
    plan = scope_plan(10)
    size = len(plan.model_dump_json())
    body = packed(compressed(plan))
    monkeypatch.setattr(manifests, "MOST_PLAN_JSON", size)
    assert manifests.plan_of(body) == plan
    monkeypatch.setattr(manifests, "MOST_PLAN_JSON", size - 1)
    assert manifests.plan_of(body) is None


def test_the_driver_of_a_scope_finds_its_plan() -> None:
    """The plan is compressed beside the template, at the path of the command line.

    Made twice, it is the same.
    """
    made = scope_request()
    run = manifests.run_config_map(made)
    assert "--plan=/etc/sluice/run/plan.json.gz" in driver(made)["args"]
    assert run["binaryData"].keys() == {"plan.json.gz"}
    assert run["data"].keys() == {"executor.yaml"}
    assert manifests.plan_of(run) == made.plan
    volumes = {volume["name"]: volume for volume in pod_of(made)["volumes"]}
    assert volumes["run"]["configMap"]["name"] == run["metadata"]["name"]
    assert json.dumps(manifests.run_config_map(made)) == json.dumps(run)


@pytest.mark.parametrize(
    ("fields", "parallelism", "stop"),
    [
        ({}, None, False),
        ({"parallelism": 4}, 4, False),
        ({"failurePolicy": "Stop"}, None, True),
    ],
)
def test_controls_of_a_scope_are_more_than_limits(
    fields: dict[str, Any], parallelism: int | None, *, stop: bool
) -> None:
    """They are all settings that may be changed while the driver runs."""
    made = scope_request(limits={"bytesPerSecond": "1Mi"}, **fields)
    assert json.loads(manifests.controls_data(made.spec)["controls.json"]) == {
        "bytesPerSecond": 1 << 20,
        "inFlightBytes": None,
        "parallelism": parallelism,
        "stopAtFailure": stop,
    }


def test_executors_come_by_the_size_of_all_streams() -> None:
    """One executor runs for each 8 GiB of all streams together."""
    plan = scope_plan(3)
    large = [
        stream.model_copy(
            update={
                "segments": (stream.segments[0].model_copy(update={"end": 3 << 30}),),
            }
        )
        for stream in plan.streams
    ]
    assert executors_for(scope_request(plan)) == 0
    assert executors_for(scope_request(plan.model_copy(update={"streams": tuple(large)}))) == 2
