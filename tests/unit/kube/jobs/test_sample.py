"""The Job that makes the sample stream."""

from __future__ import annotations

from typing import Any

from sluice.core.values.model import StoreAddress
from sluice.core.workloads.request import CONFIG_MAPS
from sluice.kube.jobs.mounts import CREDENTIALS_DIR
from sluice.kube.jobs.sample import PodImage, sample_job
from support.kube.pod_security import violations

HERE = StoreAddress(uri="tcp://here:9090")
LOGIN = StoreAddress(uri="tcp://here:9090", secret="login")  # noqa: S106 - the name of a Secret
IMAGE = PodImage("registry.example/sluice:1", "Always", ("pull",))


def pod(job: dict[str, Any]) -> dict[str, Any]:
    """Return the spec of a Job's pod."""
    found: dict[str, Any] = job["spec"]["template"]["spec"]
    return found


def test_its_pod_is_restricted_and_has_the_operators_image() -> None:
    """The pod has no token of the API server, and is not tried again."""
    job = sample_job("demo", HERE, IMAGE)
    assert violations(pod(job)) == []
    assert pod(job)["automountServiceAccountToken"] is False
    assert pod(job)["imagePullSecrets"] == [{"name": "pull"}]
    (container,) = pod(job)["containers"]
    assert (container["image"], container["imagePullPolicy"]) == IMAGE[:2]
    assert job["spec"]["backoffLimit"] == 0
    assert job["spec"]["activeDeadlineSeconds"] > 0


def test_a_login_is_mounted_and_never_an_argument() -> None:
    """The pod gets the Secret's two keys as files. The arguments only name it."""
    (container,) = pod(sample_job("demo", LOGIN, IMAGE))["containers"]
    _, command, address = container["args"]
    assert command == "sample"
    assert StoreAddress.model_validate_json(address.removeprefix("--address=")) == LOGIN
    mounted = {one["mountPath"] for one in container["volumeMounts"]}
    assert f"{CREDENTIALS_DIR}/login" in mounted


def test_certificates_of_a_store_are_mounted_with_what_names_them() -> None:
    """A store that needs a bundle of certificates gets its sample as any other store."""
    store = StoreAddress(
        uri="tls://here:9090",
        ca=f"{CONFIG_MAPS}authorities/ca.crt",
        server_name="pravega.example.com",
        client_certificate="mesh",
    )
    (container,) = pod(job := sample_job("demo", store, IMAGE))["containers"]
    _, _, address = container["args"]
    assert StoreAddress.model_validate_json(address.removeprefix("--address=")) == store
    mounted = {one["mountPath"] for one in container["volumeMounts"]}
    assert {f"{CREDENTIALS_DIR}/{CONFIG_MAPS}authorities", f"{CREDENTIALS_DIR}/mesh"} < mounted
    assert violations(pod(job)) == []


def test_other_work_has_another_name() -> None:
    """A Job that is found by its name does the wanted work."""
    jobs = [
        sample_job("demo", HERE, IMAGE),
        sample_job("demo", LOGIN, IMAGE),
        sample_job("demo", HERE, PodImage("other")),
    ]
    names = {job["metadata"]["name"] for job in jobs}
    assert len(names) == len(jobs)
    assert sample_job("demo", HERE, IMAGE) == jobs[0]
