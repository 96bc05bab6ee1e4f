"""The definitions on a real API server, which accepts, stores, explains and shows resources."""

import json
import re
from collections.abc import Iterator
from datetime import UTC, datetime
from http import HTTPStatus
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from kubernetes import client, config

import localcluster
from localcluster import LocalClusterError
from sluice.api.load import load
from sluice.api.registry import KINDS, KindSpec
from sluice.api.schema.schema import structural
from sluice.api.schema.structural import fields
from sluice.api.status.archive_status import ArchiveSummary, StreamArchiveStatus
from sluice.api.status.common import Condition, ProgressStatus
from sluice.api.status.copy_status import FollowStatus, StreamCopyStatus
from sluice.api.status.store_status import StreamStoreStatus
from sluice.core.values.text import rate, size
from sluice.errors import InvalidSpec, SluiceError
from support.cases.largest import largest
from support.cases.resources import ARCHIVE, COPY, STORE, changed, text
from support.kube.apply import Applier
from support.search import FAR

NOW = datetime(2026, 5, 4, 12, 0, tzinfo=UTC)
GOOD_STORES = {
    "minimal": STORE,
    "name": changed(STORE, "spec.pravega.controllerURI", "tcp://controller.pravega.svc:9090"),
    "IPv6": changed(STORE, "spec.pravega.controllerURI", "tcp://[fd00::1]:65535"),
    "login": changed(STORE, "spec.pravega.auth", {"basic": {"secretRef": {"name": "login"}}}),
    "longest name": changed(STORE, "metadata.name", "a" * 63),
}
GOOD_COPIES = {
    "minimal": COPY,
    "suspended": changed(COPY, "spec.suspend", value=True),
    "longest names": changed(COPY, "spec.source.stream", "a" * 249),
    "other store": changed(COPY, "spec.target.storeRef.name", "remote"),
    "same stream of another store": changed(
        changed(COPY, "spec.target", {**COPY["spec"]["source"]}),
        "spec.target.storeRef",
        {"name": "remote"},
    ),
    "onExists": changed(COPY, "spec.target.onExists", "Fail"),
    "limits": changed(COPY, "spec.limits", {"bytesPerSecond": "200Mi", "inFlightBytes": "64Mi"}),
    "least limits": changed(COPY, "spec.limits", {"bytesPerSecond": 1024, "inFlightBytes": "1Mi"}),
    "most limits": changed(COPY, "spec.limits", {"bytesPerSecond": "1Ti", "inFlightBytes": "1Gi"}),
    "no limits": changed(COPY, "spec.limits", {}),
    "retries": changed(changed(COPY, "spec.backoffLimit", 0), "spec.activeDeadlineSeconds", 60),
    "most retries": changed(COPY, "spec.backoffLimit", 100),
    "profile": changed(COPY, "spec.runtime.profile", "large"),
    "driver alone": changed(COPY, "spec.runtime", {"executors": 0, "driver": {}}),
    "executors": changed(
        COPY,
        "spec.runtime",
        {
            "executors": 256,
            "driver": {"resources": {"cpu": "500m", "memory": "1Gi"}},
            "executor": {"resources": {"cpu": 2, "memory": 4294967296}},
        },
    ),
    "small pods": changed(
        COPY,
        "spec.runtime",
        {
            "driver": {"resources": {"memory": "512Mi"}},
            "executor": {"resources": {"memory": "768Mi"}},
        },
    ),
    "a limit of processors": changed(
        COPY, "spec.runtime.driver.resources", {"cpu": "500m", "cpuLimit": 2}
    ),
    "fractions of a processor": changed(COPY, "spec.runtime.driver.resources.cpu", "1.5"),
}
QUANTITIES = [
    "spec.limits.bytesPerSecond",
    "spec.limits.inFlightBytes",
    "spec.runtime.driver.resources.cpu",
    "spec.runtime.executor.resources.memory",
]
SPELLINGS = st.one_of(
    st.integers(-(1 << 63), (1 << 63) - 1),
    st.sampled_from([0, 1, 99, 100, 255, 256, 257, 1023, 1024, (1 << 20) - 1, 1 << 30, 1 << 40]),
    st.from_regex(r"[0-9]{1,17}(k|m|M|G|T|P|E|Ki|Mi|Gi|Ti|Pi|ki|n|u|e3)?", fullmatch=True),
    st.from_regex(r"[+-]?[0-9]{0,4}(\.[0-9]{0,4})?(m|M|Gi)?", fullmatch=True),
    st.text(max_size=20),
    st.booleans(),
    st.floats(allow_nan=False, allow_infinity=False).filter(lambda number: number % 1),
)


@pytest.mark.parametrize("kind", KINDS, ids=lambda kind: kind.name)
def test_a_definition_is_established(
    kube: localcluster.Cluster, definitions: list[str], kind: KindSpec
) -> None:
    """The API server accepts the names, serves the kind, and finds no fault in the schema."""
    command = ("get", "crd", f"{kind.plural}.sluice.dev", "--output=json")
    found = json.loads(kube.kubectl(*command))["status"]["conditions"]
    conditions = {condition["type"]: condition["status"] for condition in found}
    assert conditions == {"NamesAccepted": "True", "Established": "True"}


@pytest.mark.parametrize("name", GOOD_STORES)
def test_a_good_store_is_taken(applier: Applier, name: str) -> None:
    """The API server and the model accept a store without faults."""
    assert not applier.refusal_of_new(GOOD_STORES[name])
    assert load(text(GOOD_STORES[name], COPY)).stores


@pytest.mark.parametrize("name", GOOD_COPIES)
def test_a_good_copy_is_taken(applier: Applier, name: str) -> None:
    """The API server and the model accept a copy without faults."""
    assert not applier.refusal_of_new(GOOD_COPIES[name])
    assert load(text(GOOD_COPIES[name])).copies


@pytest.fixture(scope="module")
def api(kube: localcluster.Cluster) -> client.CustomObjectsApi:
    """Return a client that needs no process for each question."""
    return client.CustomObjectsApi(config.new_client_from_config(str(kube.kubeconfig)))


@pytest.mark.parametrize("path", QUANTITIES)
@settings(
    max_examples=30 * FAR,
    derandomize=True,
    suppress_health_check=[HealthCheck.function_scoped_fixture],
)
@given(written=SPELLINGS)
def test_a_quantity_has_one_verdict(
    applier: Applier, api: client.CustomObjectsApi, path: str, written: object
) -> None:
    """API server and model agree about each value in place of a quantity."""
    wanted = changed(COPY, path, written)
    place = ("sluice.dev", "v1alpha1", applier.namespace, "streamcopies")
    try:
        api.create_namespaced_custom_object(*place, wanted, dry_run="All")
        status = HTTPStatus.CREATED
    except client.ApiException as error:
        status = HTTPStatus(error.status)
    try:
        load(text(wanted))
        expected = HTTPStatus.CREATED
    except InvalidSpec:
        expected = HTTPStatus.UNPROCESSABLE_ENTITY
    assert status == expected


@pytest.mark.parametrize("kind", KINDS, ids=lambda kind: kind.name)
def test_every_field_is_explained(applier: Applier, kind: KindSpec) -> None:
    """`kubectl explain` shows the model's description of each field."""
    parts = structural(kind)["properties"]
    # kubectl explain prints this. A call of it for each field would take a minute.
    served = json.loads(applier.run("get", "--raw", f"/openapi/v3/apis/{applier.group}/v1alpha1"))
    (published,) = (
        schema["properties"]
        for name, schema in served["components"]["schemas"].items()
        if name.endswith(f".{kind.name}")
    )
    for part in ("spec", "status"):
        said = applier.run("explain", f"{kind.plural}.{part}")
        for words in (parts[part]["description"], *_described(parts[part]["properties"])):
            assert _squeezed(words) in _squeezed(said)
        described = {path: field["description"] for path, field in fields(published[part])}
        assert described == {path: field["description"] for path, field in fields(parts[part])}


def _described(properties: dict[str, Any]) -> Iterator[str]:
    return (field["description"] for field in properties.values())


def _squeezed(words: str) -> str:
    """Return a text without white space, at which lines may be broken."""
    return "".join(words.split())


def test_only_what_is_frozen_is_filled_in(applier: Applier) -> None:
    """A resource is stored as written, except fields whose defaults must not change later."""
    stored = applier.apply(changed(COPY, "metadata.name", "defaults"))
    kept = {"scopePolicy": "MustExist", "onExists": "Fail", "sealWhenDone": False}
    filled = COPY["spec"]["target"] | kept
    ends = {"mode": "Snapshot", "onTruncation": "Fail", "sourceOnComplete": "Retain"}
    assert stored["spec"] == COPY["spec"] | ends | {"target": filled}
    assert stored["status"] == {"observedGeneration": -1}
    assert applier.apply(changed(STORE, "metadata.name", "defaults"))["status"] == {
        "observedGeneration": -1
    }


def test_a_status_is_taken_and_read_back(unwatched: Applier) -> None:
    """The operator's status is stored unchanged, even if every text has its full length."""
    name = "status"
    unwatched.apply(changed(COPY, "metadata.name", name))
    schema = structural(next(kind for kind in KINDS if kind.name == "StreamCopy"))
    wanted = StreamCopyStatus.read(largest(schema["properties"]["status"]))
    assert len(wanted.conditions) == 16
    assert len(wanted.history) == 10
    assert unwatched.write_status("streamcopies", name, wanted.dump()) == wanted.dump()
    assert StreamCopyStatus.read(wanted.dump()) == wanted


@pytest.mark.parametrize(
    ("status", "said"),
    [
        ({"conditions": [{"type": "Ready", "status": "true"}]}, "status.conditions[0].status"),
        ({"progress": {"percent": 101}}, "status.progress.percent"),
        ({"copyID": "a" * 129}, "status.copyID"),
        ({"startTime": "noon"}, "status.startTime"),
        ({"history": [{"attempt": n, "job": "a"} for n in range(11)]}, "status.history"),
    ],
    ids=["condition", "percent", "length", "time", "history"],
)
def test_a_wrong_status_is_refused(unwatched: Applier, status: dict[str, Any], said: str) -> None:
    """A status must match its schema, whichever client writes it."""
    unwatched.apply(changed(COPY, "metadata.name", "wrong"))
    with pytest.raises(LocalClusterError) as caught:
        unwatched.write_status("streamcopies", "wrong", status)
    assert said in str(caught.value)


def test_conditions_of_two_writers_stay(unwatched: Applier) -> None:
    """Applying one condition leaves that of another field manager alone."""
    resource = changed(STORE, "metadata.name", "shared")
    unwatched.apply(resource)
    for writer in ("Ready", "Stalled"):
        condition = Condition(type=writer, status="True", reason="Test", last_transition_time=NOW)
        status = StreamStoreStatus(observed_generation=1, conditions=(condition,))
        unwatched.apply(
            {**resource, "status": status.dump()},
            "--server-side",
            "--subresource=status",
            f"--field-manager={writer}",
            "--force-conflicts",
        )
    stored = json.loads(unwatched.get("streamstores", "shared", "--output=json"))
    read = StreamStoreStatus.read(stored["status"])
    assert [condition.type for condition in read.conditions] == ["Ready", "Stalled"]


def test_columns_tell_the_story(unwatched: Applier) -> None:
    """`kubectl get` fits into 80 characters. `-o wide` also shows source and target."""
    name = "orders-of-europe"
    unwatched.apply(changed(COPY, "metadata.name", name))
    reason = max((found.__name__ for found in errors(SluiceError)), key=len)
    condition = Condition(type="Ready", status="Unknown", reason=reason, last_transition_time=NOW)
    progress = ProgressStatus(
        summary="100%", rate=rate(123e6), eta_seconds=86_000, size=size(108e6), events=1_000_000
    )
    status = StreamCopyStatus(
        conditions=(condition,),
        progress=progress,
        attempts=3,
        source="main/shop/monday and 2 more",
        target="main/backup/orders",
        duration="1m23s",
        follow=FollowStatus(lag_seconds=2),
    )
    unwatched.write_status("streamcopies", name, status.dump())
    head, row = unwatched.get("streamcopies", name).splitlines()
    assert head.split() == ["NAME", "READY", "REASON", "PROGRESS", "RATE", "AGE"]
    assert len(row.rstrip()) <= 80
    for cell in (name, "Unknown", reason, "100%", "123 MB/s"):
        assert cell in row
    head, row = unwatched.get("streamcopies", name, "--output=wide").splitlines()
    columns = ["SOURCE", "TARGET", "SIZE", "EVENTS", "DURATION", "ETA S", "ATTEMPTS", "LAG S"]
    assert re.split(r" {2,}", head.split("AGE")[1].strip()) == columns
    cells = [status.source, status.target, "108 MB", "1000000", "1m23s", "86000", "3", "2"]
    assert re.split(r" {2,}", row.strip())[-8:] == cells


def test_columns_tell_what_an_archive_holds(unwatched: Applier) -> None:
    """`-o wide` shows stores, size and events up to the last run, its duration and the next run."""
    unwatched.apply(changed(ARCHIVE, "metadata.name", "kept"))
    status = StreamArchiveStatus(
        source="main/shop/orders",
        target="archives/shop/orders",
        archive=ArchiveSummary(runs=3, bytes=108_000_000, size=size(108e6), events=1_000_000),
        duration="1m23s",
        next_run_time=NOW,
    )
    unwatched.write_status("streamarchives", "kept", status.dump())
    head, row = unwatched.get("streamarchives", "kept", "--output=wide").splitlines()
    columns = ["SOURCE", "TARGET", "SIZE", "EVENTS", "DURATION", "LAST RUN", "NEXT RUN"]
    columns += ["LAST DRILL", "RATE"]
    assert re.split(r" {2,}", head.split("AGE")[1].strip()) == columns
    cells = [status.source, status.target, "108 MB", "1000000", "1m23s", "2026-05-04T12:00:00Z"]
    assert re.split(r" {2,}", row.strip())[-6:] == cells


def test_stores_and_copies_are_streams(applier: Applier) -> None:
    """`kubectl get streams` and the short names find stores and copies."""
    applier.apply(changed(COPY, "metadata.name", "listed"))
    applier.apply(changed(STORE, "metadata.name", "listed"))
    listed = applier.run("get", "streams", "--output=name").split()
    assert {"streamcopy.sluice.dev/listed", "streamstore.sluice.dev/listed"} <= set(listed)
    wide = applier.run("get", "sst", "listed", "--output=wide").splitlines()
    assert wide[0].split()[:4] == ["NAME", "READY", "REASON", "USERS"]
    assert "tcp://127.0.0.1:9090" in wide[1]


def test_what_kubectl_prints_can_be_read(applier: Applier) -> None:
    """The command line reads the output of `kubectl get -o yaml` as a file."""
    name = "printed"
    applier.apply(changed(COPY, "metadata.name", name))
    applier.apply(changed(STORE, "metadata.name", name))
    applier.write_status("streamcopies", name, {"attempts": 3})
    kinds = ("streamcopy", "streamstore")
    printed = "---\n".join(applier.run("get", kind, name, "--output=yaml") for kind in kinds)
    read = load(printed)
    assert read.copies[0].spec == load(text(COPY)).copies[0].spec
    assert (applier.namespace, name) in read.stores


def test_a_copy_that_was_not_looked_at_is_not_current(unwatched: Applier) -> None:
    """Tools that compare generations see that the operator has not seen the resource yet."""
    unwatched.apply(changed(COPY, "metadata.name", "fresh"))
    stored = json.loads(unwatched.get("streamcopies", "fresh", "--output=json"))
    assert stored["status"]["observedGeneration"] == -1
    assert stored["metadata"]["generation"] == 1


def errors(root: type[SluiceError]) -> Iterator[type[SluiceError]]:
    """Yield all subclasses of an error. Their names are reasons."""
    for found in root.__subclasses__():
        yield found
        yield from errors(found)
