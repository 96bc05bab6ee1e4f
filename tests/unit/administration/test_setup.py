"""The objects of a first copy, made once and never changed, and the Job that fills the store."""

from __future__ import annotations

import asyncio
import json
from copy import deepcopy
from typing import TYPE_CHECKING, Any

import pytest

from sluice.administration import setup
from sluice.administration.setup import (
    differences,
    ensure,
    ensure_namespace,
    operators_image,
    run_job,
)
from sluice.core.values.model import StoreAddress
from sluice.errors import InvalidSpec
from sluice.kube.api.kinds import DEPLOYMENT, JOB, POD, STREAM_STORE
from sluice.kube.api.responses import Refused
from sluice.kube.jobs.sample import PodImage, sample_job
from support.kube.api_server import ApiServer
from support.reconcile.jobs import ENDED, SAID

if TYPE_CHECKING:
    from collections.abc import Callable

    from sluice.core.values.trouble import Trouble
    from sluice.kube.api.kinds import Object

STORE: Any = {
    "apiVersion": "sluice.dev/v1alpha1",
    "kind": "StreamStore",
    "metadata": {"name": "main", "namespace": "demo"},
    "spec": {"pravega": {"controllerURI": "tcp://here:9090"}},
}
LABELS = {"app.kubernetes.io/name": "sluice", "app.kubernetes.io/component": "operator"}


@pytest.fixture(autouse=True)
def _fast(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(setup, "LOOK", 0)


def made(server: ApiServer, body: Object = STORE) -> bool:
    """Ensure that the StreamStore exists, and tell whether it was made."""
    return asyncio.run(ensure(server.api, STREAM_STORE, "demo", body))[1]


def test_an_object_is_made_once_and_then_left() -> None:
    """A second run changes nothing and accepts fields that other clients added."""
    server = ApiServer()
    assert made(server)
    login = {"auth": {"basic": {"secretRef": {"name": "login"}}}}
    spec = {"pravega": STORE["spec"]["pravega"] | login}
    server.edit(STREAM_STORE, "main", "demo", spec=spec)
    changes = list(server.changes)
    assert not made(server)
    assert server.changes == changes


def test_an_object_that_differs_is_refused_by_the_name_of_the_field() -> None:
    """The object stays unchanged, and the message has both values."""
    server = ApiServer()
    made(server)
    other = STORE | {"spec": {"pravega": {"controllerURI": "tcp://there:9090"}}}
    changes = list(server.changes)
    with pytest.raises(InvalidSpec, match=r"'tcp://here:9090' in place of 'tcp://there") as caught:
        made(server, other)
    assert caught.value.field == "spec.pravega.controllerURI"
    assert server.changes == changes


def test_an_object_that_is_being_deleted_is_no_object_to_keep() -> None:
    """The user has to wait or choose another name."""
    server = ApiServer()
    meta = STORE["metadata"] | {"deletionTimestamp": ENDED, "finalizers": ["x"]}
    server.put(STREAM_STORE, STORE | {"metadata": meta})
    with pytest.raises(InvalidSpec, match="is being deleted"):
        made(server)


def test_differences_are_those_of_wanted_fields() -> None:
    """In mappings and lists, at any depth."""
    wanted = {"a": 1, "b": {"c": [1, {"d": 2}]}, "e": [1]}
    found = {"a": 1, "b": {"c": [1, {"d": 3, "x": 4}], "y": 5}, "e": [1, 2], "z": 6}
    assert list(differences(wanted, found)) == [("b.c[1].d", 2, 3), ("e", [1], [1, 2])]


class Refusing(ApiServer):
    """An API server that refuses to read."""

    def __init__(self, status: int, why: str) -> None:
        super().__init__()
        self.error = Refused("no", status=status, why=why)

    async def get(self, *_: Any) -> Object | None:
        """Refuse."""
        raise self.error


def test_a_cluster_without_sluice_says_what_to_install() -> None:
    """The API server has no path for the kind."""
    with pytest.raises(InvalidSpec, match="knows no StreamStore") as caught:
        made(Refusing(404, ""))
    assert "crds.yaml" in caught.value.remedy


def test_a_user_of_one_namespace_need_not_read_it() -> None:
    """The next call shows whether the namespace exists."""
    assert not asyncio.run(ensure_namespace(Refusing(403, "Forbidden").api, "demo"))
    server = ApiServer()
    assert asyncio.run(ensure_namespace(server.api, "demo"))
    assert not asyncio.run(ensure_namespace(server.api, "demo"))


def deployment(name: str, namespace: str) -> Object:
    """Return an operator's Deployment."""
    container = {"name": "operator", "image": f"{name}:1", "imagePullPolicy": "Never"}
    pod = {"containers": [container], "imagePullSecrets": [{"name": "pull"}]}
    meta = {"name": name, "namespace": namespace, "labels": LABELS}
    return {"metadata": meta, "spec": {"template": {"spec": pod}}}


def test_the_image_is_that_of_the_operator_in_its_namespace() -> None:
    """An operator that a tenant labels in another namespace does not count. Two are ambiguous."""
    server = ApiServer()
    server.put(DEPLOYMENT, deployment("evil", "tenant"))
    with pytest.raises(InvalidSpec, match="there are 0 operators"):
        asyncio.run(operators_image(server.api, "sluice-system"))
    server.put(DEPLOYMENT, deployment("sluice", "sluice-system"))
    found = asyncio.run(operators_image(server.api, "sluice-system"))
    assert found == PodImage("sluice:1", "Never", ("pull",))
    server.put(DEPLOYMENT, deployment("second", "sluice-system"))
    with pytest.raises(InvalidSpec, match="there are 2 operators"):
        asyncio.run(operators_image(server.api, "sluice-system"))


class Cluster(ApiServer):
    """An API server whose Jobs end as scripted.

    Args:
        ends: for each Job that is made, its end: `Complete`, or the reason of its failure.
    """

    def __init__(self, *ends: str | Object) -> None:
        super().__init__()
        self._ends = list(ends)

    async def create(self, kind: Any, namespace: str | None, body: Object) -> Object | None:
        """Make an object; a Job gets its pod, and ends."""
        found = await super().create(kind, namespace, body)
        if found is not None and kind is JOB:
            self._run(found)
        return found

    def _run(self, job: Object) -> None:
        meta, end = job["metadata"], self._ends.pop(0)
        owner = {"uid": meta["uid"], "kind": "Job", "name": meta["name"], "controller": True}
        labels = {"job-name": meta["name"]}
        state: Object = {"phase": "Succeeded"}
        if isinstance(end, dict):
            state = {"phase": "Pending", "containerStatuses": [end]}
        elif end != "Complete":
            said = {"name": "sample", "image": "i", "state": {"terminated": {"message": end}}}
            state = {"phase": "Failed", "containerStatuses": [said]}
        pod_meta = {"name": f"{meta['uid']}-pod", "namespace": "demo", "labels": labels}
        self.put(POD, {"metadata": pod_meta | {"ownerReferences": [owner]}, "status": state})
        if not isinstance(end, dict):
            self.end(meta["name"], "Complete" if end == "Complete" else "Failed")

    def end(self, name: str, kind: str, **more: str) -> None:
        """Give a Job its last condition."""
        condition = {"type": kind, "status": "True", "lastTransitionTime": ENDED, **more}
        self.edit(JOB, name, "demo", status={"conditions": [condition]})


FAILED = json.dumps(SAID)
SAMPLE_JOB = sample_job("demo", StoreAddress(uri="tcp://here:9090"), PodImage("sluice:1"))
NAME = SAMPLE_JOB["metadata"]["name"]


def ran(server: ApiServer, say: Callable[[str], None] = print) -> Trouble | None:
    """Run the Job, and return why it failed."""
    return asyncio.run(run_job(server.api, SAMPLE_JOB, say))


def test_a_job_that_failed_says_why_and_the_next_run_makes_it_anew() -> None:
    """A run after a success makes the Job anew, too: the store may be empty since."""
    server = Cluster(FAILED, "Complete", "Complete")
    trouble = ran(server)
    assert trouble is not None
    assert (trouble.reason, trouble.message) == (SAID["reason"], SAID["message"])
    assert ran(server) is None
    assert ran(server) is None
    assert [change[0] for change in server.changes if change[1] == "Job"].count("delete") == 2


def test_a_pod_that_does_not_start_is_told_and_blamed_at_the_deadline() -> None:
    """Kubernetes deletes the pod at the deadline, so its last reason counts."""
    waiting = {"reason": "ErrImagePull", "message": "no such image"}
    server = Cluster({"name": "sample", "image": "i", "state": {"waiting": waiting}})
    told: list[str] = []

    def say(words: str) -> None:
        told.append(words)
        server.end(NAME, "Failed", reason="DeadlineExceeded")
        for pod in server.all(POD):
            server.destroy(POD, pod["metadata"]["name"], "demo")

    trouble = ran(server, say)
    assert len(told) == 1
    assert trouble is not None
    assert "no such image" in trouble.message


def test_a_job_that_another_made_is_refused() -> None:
    """The refusal names the field that differs."""
    server = ApiServer()
    pod = SAMPLE_JOB["spec"]["template"]["spec"]
    container = pod["containers"][0] | {"image": "other"}
    template = {"spec": pod | {"containers": [container]}, "metadata": {"labels": {}}}
    meta = {"name": NAME, "namespace": "demo", "labels": {}}
    server.put(JOB, {"metadata": meta, "spec": {"template": template}})
    with pytest.raises(InvalidSpec, match=f"Job {NAME} is there"):
        ran(server)


DEFAULTS: Any = {
    "spec": {
        "completionMode": "NonIndexed",
        "manualSelector": False,
        "podReplacementPolicy": "TerminatingOrFailed",
        "selector": {"matchLabels": {"batch.kubernetes.io/controller-uid": "u"}},
        "suspend": False,
    },
    "spec.template.metadata": {"annotations": {"made-by": "a webhook"}},
    "spec.template.spec": {
        "dnsPolicy": "ClusterFirst",
        "hostNetwork": False,
        "initContainers": [],
        "nodeSelector": {"pool": "batch"},
        "schedulerName": "default-scheduler",
        "terminationGracePeriodSeconds": 30,
        "tolerations": [{"operator": "Exists"}],
    },
    "spec.template.spec.containers.0": {
        "terminationMessagePath": "/dev/termination-log",
        "terminationMessagePolicy": "File",
    },
}
"""What the API server and an administrator's rules add to a Job."""


def there(changes: Any) -> Cluster:
    """Return an API server that has the Job, with changes of these parts, and its pod."""
    job: Any = deepcopy(SAMPLE_JOB)
    for path, fields in changes.items():
        part = job
        for name in path.split("."):
            part = part[int(name) if name.isdigit() else name]
        part |= fields
    server = Cluster("Complete", "Complete")
    asyncio.run(server.create(JOB, "demo", job))
    return server


def test_a_job_of_an_earlier_run_is_adopted_with_what_the_api_server_adds() -> None:
    """The finished Job is deleted and made anew. None of the added fields changes its work."""
    server = there(DEFAULTS)
    assert ran(server) is None
    assert [change[0] for change in server.changes if change[1] == "Job"].count("delete") == 1


@pytest.mark.parametrize(
    ("path", "field", "value"),
    [
        ("spec", "completions", 0),
        ("spec", "managedBy", "example.com/nobody"),
        ("spec", "manualSelector", True),
        ("spec", "podFailurePolicy", {"rules": []}),
        ("spec.template.spec", "hostAliases", [{"ip": "10.0.0.1", "hostnames": ["here"]}]),
        ("spec.template.spec", "initContainers", [{"name": "first", "image": "other"}]),
        ("spec.template.spec", "volumes", [{"name": "x", "hostPath": {"path": "/"}}]),
        ("spec.template.spec.containers.0", "args", ["true"]),
        ("spec.template.spec.containers.0", "command", ["true"]),
        ("spec.template.spec.containers.0", "envFrom", [{"configMapRef": {"name": "other"}}]),
        ("spec.template.spec.containers.0", "image", "other"),
        ("spec.template.spec.containers.0", "lifecycle", {"postStart": {}}),
    ],
)
def test_a_forged_job_of_its_name_is_refused(path: str, field: str, value: Any) -> None:
    """The Job is refused for any other content, even after success.

    It stays, and the error names the field.
    """
    server = there({path: {field: value}})
    with pytest.raises(InvalidSpec, match=f"Job {NAME} is there") as caught:
        ran(server)
    found = str(caught.value.field).replace("[0]", ".0")
    assert found.startswith(f"{path}.{field}")
    assert "Delete it, and run sluice init again" in caught.value.remedy
    assert [change[0] for change in server.changes if change[1] == "Job"] == ["create"]
