"""Jobs, pods and events as a cluster has them, and what is read of them."""

from __future__ import annotations

import json
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sluice.core.reconcile.world import JobPhase, JobSeen
from sluice.errors import Category
from sluice.kube.jobs import attempt_of, is_gone, job_seen, termination
from sluice.kube.names import ATTEMPT_LABEL, RUNTIME_ANNOTATION

if TYPE_CHECKING:
    from sluice.kube.client import Object

MADE, STARTED, ENDED = (f"2026-01-02T03:04:0{second}Z" for second in (0, 1, 9))
SAID = {
    "outcome": "Failed",
    "reason": "DigestMismatch",
    "category": "Integrity",
    "retryable": False,
    "message": "staged bytes differ",
    "remedy": "Run again.",
    "field": None,
}


def job(*conditions: str, **changes: Any) -> Object:
    """A Job of attempt 3, in which these conditions hold; fields of its status may be set."""
    found = [{"type": kind, "status": "True", "lastTransitionTime": ENDED} for kind in conditions]
    return {
        "metadata": {
            "name": "sluice-0123456789-3",
            "labels": {ATTEMPT_LABEL: "3"},
            "annotations": {RUNTIME_ANNOTATION: "new"},
            "creationTimestamp": MADE,
        },
        "status": {"startTime": STARTED, "conditions": found, **changes},
    }


def pod(phase: str, *containers: Object, **changes: Any) -> Object:
    """A pod of that Job with the states of these containers; fields of its status may be set."""
    return {
        "metadata": {"name": "sluice-0123456789-3-x7k2p"},
        "status": {"phase": phase, "containerStatuses": list(containers), **changes},
    }


def driver(**state: Any) -> Object:
    """The driver's container in a state: `waiting`, `running` or `terminated`."""
    return {"name": "driver", "image": "localhost/sluice:dev", "state": state}


def terminated(reason: str = "Error", code: int = 1, message: str = "") -> Object:
    """The driver's container at its end."""
    return driver(terminated={"reason": reason, "exitCode": code, "message": message})


def event(reason: str, message: str) -> Object:
    """An event about the Job or its pod."""
    return {"reason": reason, "message": message, "lastTimestamp": STARTED}


def look(body: Object, *pods: Object, events: tuple[Object, ...] = ()) -> JobSeen:
    """What is seen of a Job."""
    return job_seen(body, pods, events, runtime="new")


# -- how far it is


@pytest.mark.parametrize(
    ("body", "pods", "phase"),
    [
        pytest.param(job(), [], JobPhase.PENDING, id="no pod yet"),
        pytest.param(job(), [pod("Pending")], JobPhase.PENDING, id="pending pod"),
        pytest.param(job(), [pod("Running", driver(running={}))], JobPhase.RUNNING, id="running"),
        pytest.param(job(), [pod("Failed", terminated())], JobPhase.RUNNING, id="just failed"),
        pytest.param(job(), [pod("Succeeded")], JobPhase.SUCCEEDED, id="just succeeded"),
        pytest.param(job(failed=1), [], JobPhase.RUNNING, id="pod deleted, not told yet"),
        pytest.param(job("SuccessCriteriaMet"), [], JobPhase.PENDING, id="another condition"),
        pytest.param(job("SuccessCriteriaMet", "Complete"), [], JobPhase.SUCCEEDED, id="complete"),
        pytest.param(job("FailureTarget", "Failed"), [], JobPhase.FAILED, id="failed"),
        pytest.param({"metadata": job()["metadata"]}, [], JobPhase.PENDING, id="no status yet"),
    ],
)
def test_the_phase_is_the_jobs_word_and_before_that_its_pods(
    body: Object, pods: list[Object], phase: JobPhase
) -> None:
    """It runs as soon as its pod does, and has ended when it says so, or its pod has succeeded."""
    assert look(body, *pods).phase is phase


def test_a_job_is_known_by_its_labels_and_times() -> None:
    """Its attempt, when it began and ended, and whether it goes."""
    seen = look(job("Complete"))
    assert (seen.name, seen.attempt) == ("sluice-0123456789-3", 3)
    assert seen.started == datetime(2026, 1, 2, 3, 4, 1, tzinfo=UTC)
    assert seen.ended == datetime(2026, 1, 2, 3, 4, 9, tzinfo=UTC)
    assert not seen.deleting
    leaving = job()
    leaving["metadata"]["deletionTimestamp"] = ENDED
    assert look(leaving).deleting
    new = {"metadata": job()["metadata"]}
    assert look(new).started == datetime(2026, 1, 2, 3, 4, 0, tzinfo=UTC)
    assert look(new).ended is None


@pytest.mark.parametrize(("runtime", "outdated"), [("new", False), ("old", True), (None, False)])
def test_a_job_for_another_runtime_is_outdated(runtime: str | None, *, outdated: bool) -> None:
    """Where nobody can tell what runtime is wanted, none is."""
    assert job_seen(job(), (), (), runtime=runtime).outdated == outdated


def test_a_damaged_label_is_no_attempt() -> None:
    """It counts as before the first one."""
    for labels in ({}, {"labels": {}}, {"labels": {ATTEMPT_LABEL: "x"}}):
        assert attempt_of({"metadata": labels}) == 0
    assert attempt_of(job()) == 3


@pytest.mark.parametrize(
    ("phase", "gone"),
    [
        ("Pending", False),
        ("Running", False),
        ("Unknown", False),
        ("Succeeded", True),
        ("Failed", True),
    ],
)
def test_a_pod_is_gone_when_its_containers_are(phase: str, *, gone: bool) -> None:
    """One of which nothing is heard may still write."""
    assert is_gone(pod(phase)) == gone
    assert not is_gone({"metadata": {"name": "new"}})


# -- why it does not start

UNSCHEDULABLE = {
    "type": "PodScheduled",
    "status": "False",
    "reason": "Unschedulable",
    "message": "0/3 nodes are available: 3 Insufficient memory.",
}
QUOTA = (
    'Error creating: pods "x" is forbidden: exceeded quota: small, requested: requests.cpu=500m, '
    "used: requests.cpu=1, limited: requests.cpu=1"
)
REFUSED = 'Error creating: pods "x" is forbidden: violates PodSecurity "restricted:latest"'
MISSING_LOGIN = 'MountVolume.SetUp failed for volume "credentials-0" : secret "login" not found'
MISSING_KEY = (
    'MountVolume.SetUp failed for volume "credentials-0" : '
    "references non-existent secret key: password"
)
NO_PLAN = 'MountVolume.SetUp failed for volume "run" : configmap "orders-plan" not found'
BACK_OFF = {"reason": "ImagePullBackOff", "message": 'Back-off pulling image "nowhere/sluice"'}
NO_CONFIG = {"reason": "CreateContainerConfigError", "message": "container has runAsNonRoot"}


@pytest.mark.parametrize(
    ("pods", "events", "reason", "words"),
    [
        pytest.param([], [], None, "", id="nothing yet"),
        pytest.param([pod("Pending")], [], None, "", id="just pending"),
        pytest.param(
            [pod("Pending", driver(waiting={"reason": "ContainerCreating"}))],
            [event("Pulling", "Pulling image"), event("Scheduled", "Successfully assigned")],
            None,
            "",
            id="starting",
        ),
        pytest.param(
            [pod("Pending", conditions=[UNSCHEDULABLE])],
            [],
            "Unschedulable",
            "Insufficient memory",
            id="unschedulable",
        ),
        pytest.param(
            [pod("Pending", conditions=[UNSCHEDULABLE | {"status": "True"}])],
            [],
            None,
            "",
            id="scheduled",
        ),
        pytest.param(
            [pod("Pending", driver(waiting=BACK_OFF))],
            [],
            "ImagePullFailed",
            "nowhere/sluice",
            id="no image",
        ),
        pytest.param(
            [pod("Pending", driver(waiting=NO_CONFIG))],
            [],
            "PodRefused",
            "runAsNonRoot",
            id="no container",
        ),
        pytest.param([], [event("FailedCreate", QUOTA)], "QuotaExceeded", "small", id="quota"),
        pytest.param(
            [], [event("FailedCreate", REFUSED)], "PodRefused", "restricted", id="refused"
        ),
        pytest.param(
            [pod("Pending")],
            [event("FailedMount", MISSING_LOGIN)],
            "SecretNotFound",
            'secret "login" not found',
            id="no secret",
        ),
        pytest.param(
            [pod("Pending")],
            [event("FailedMount", MISSING_KEY)],
            "SecretNotFound",
            "password",
            id="no key",
        ),
        pytest.param(
            [pod("Pending")], [event("FailedMount", NO_PLAN)], "PodRefused", "plan", id="no plan"
        ),
        pytest.param([], [event("FailedMount", NO_PLAN)], None, "", id="mount of a pod of before"),
        pytest.param(
            [],
            [event("FailedCreate", REFUSED), event("FailedCreate", QUOTA)],
            "QuotaExceeded",
            "small",
            id="the latest event counts",
        ),
    ],
)
def test_why_a_driver_does_not_start_is_in_the_clusters_own_words(
    pods: list[Object], events: list[Object], reason: str | None, words: str
) -> None:
    """The pod's word comes first, then the latest event that tells of trouble."""
    trouble = look(job(), *pods, events=tuple(events)).trouble
    assert (trouble.reason if trouble else None) == reason
    assert words in (trouble.message if trouble else "")


@pytest.mark.parametrize(
    ("pods", "words"),
    [
        ([], "its Job has made no pod"),
        (
            [pod("Pending")],
            "pod sluice-0123456789-3-x7k2p is Pending: no scheduler has taken it up",
        ),
        (
            [pod("Pending") | {"spec": {"nodeName": "n1"}}],
            "pod sluice-0123456789-3-x7k2p is Pending: on node n1, without containers",
        ),
        (
            [pod("Pending", driver(waiting={"reason": "ContainerCreating"}))],
            "pod sluice-0123456789-3-x7k2p is Pending: ContainerCreating",
        ),
        (
            [
                pod(
                    "Pending",
                    initContainerStatuses=[
                        driver(waiting={"reason": "CreateContainerConfigError"})
                    ],
                )
            ],
            "pod sluice-0123456789-3-x7k2p is Pending: CreateContainerConfigError",
        ),
        ([pod("Running", driver(running={}))], ""),
    ],
)
def test_a_pod_that_does_not_run_says_how_far_it_is(pods: list[Object], words: str) -> None:
    """For who wonders why, where nothing is known to be wrong."""
    assert look(job(), *pods).words == words


def test_a_driver_that_runs_has_no_trouble() -> None:
    """What the events told of its start is over."""
    seen = look(job(), pod("Running", driver(running={})), events=(event("FailedMount", NO_PLAN),))
    assert seen.trouble is None


def test_a_long_message_is_cut_and_on_one_line() -> None:
    """A condition is no place for a page."""
    seen = look(job(), events=(event("FailedCreate", "no\n  room " * 1000),))
    assert seen.trouble is not None
    assert len(seen.trouble.message) == 1000
    assert "\n" not in seen.trouble.message


# -- why it failed


@pytest.mark.parametrize(
    ("pods", "reason", "words"),
    [
        pytest.param([], "DriverLost", "gone", id="no pod"),
        pytest.param(
            [pod("Failed", terminated(message=json.dumps(SAID)))],
            "DigestMismatch",
            "staged bytes differ",
            id="its own word",
        ),
        pytest.param(
            [pod("Failed", terminated("OOMKilled", 137))],
            "DriverOutOfMemory",
            "more memory",
            id="out of memory",
        ),
        pytest.param(
            [pod("Failed", terminated("OOMKilled", 137, json.dumps(SAID)))],
            "DigestMismatch",
            "staged",
            id="its own word counts before how it ended",
        ),
        pytest.param(
            [pod("Failed", terminated(code=143))], "DriverLost", "exit code 143", id="no word"
        ),
        pytest.param(
            [pod("Failed", terminated(message="Traceback (most recent call last)"))],
            "DriverLost",
            "exit code 1",
            id="no word but noise",
        ),
        pytest.param(
            [pod("Failed", reason="Evicted", message="The node was low on resource: memory.")],
            "DriverEvicted",
            "low on resource",
            id="evicted",
        ),
        pytest.param(
            [pod("Failed", reason="OutOfmemory", message="Node didn't have enough resource")],
            "DriverLost",
            "OutOfmemory: Node didn't have enough",
            id="refused by its node",
        ),
        pytest.param(
            [
                pod(
                    "Failed",
                    {"name": "mesh", "image": "m", "state": {"terminated": {"exitCode": 0}}},
                    terminated(message=json.dumps(SAID)),
                )
            ],
            "DigestMismatch",
            "staged",
            id="beside another container",
        ),
    ],
)
def test_why_a_driver_failed(pods: list[Object], reason: str, words: str) -> None:
    """By its own word if it left one, or else by what befell its pod."""
    trouble = look(job("Failed"), *pods).trouble
    assert trouble is not None
    assert (trouble.reason, words in trouble.message) == (reason, True)


def test_what_befalls_a_pod_is_tried_again() -> None:
    """Only the driver itself can say that there is no use in it."""
    for pods in ([], [pod("Failed", terminated())], [pod("Failed", reason="Evicted")]):
        trouble = look(job("Failed"), *pods).trouble
        assert trouble is not None
        assert trouble.retryable
        assert trouble.category is Category.INFRASTRUCTURE


def test_a_termination_message_is_read_as_it_was_written() -> None:
    """All that it says of the failure is kept."""
    said = termination(json.dumps(SAID | {"field": "spec.target"}))
    assert said is not None
    assert (said.reason, said.category, said.field) == (
        "DigestMismatch",
        Category.INTEGRITY,
        "spec.target",
    )
    assert said.retryable is False


@pytest.mark.parametrize(
    "message",
    [
        None,
        "",
        "no JSON",
        "[]",
        "null",
        '"Failed"',
        json.dumps(SAID)[:-9],
        json.dumps({"outcome": "Succeeded"}),
        json.dumps({"outcome": "Failed"}),
        json.dumps(SAID | {"outcome": "Weird"}),
        json.dumps(SAID | {"category": "Weird"}),
        json.dumps(SAID | {"reason": "no reason!"}),
        json.dumps(SAID | {"reason": ""}),
        json.dumps(SAID | {"unknown": 1}),
        "[" * 2000,
    ],
)
def test_a_damaged_termination_message_is_none(message: str | None) -> None:
    """A status can hold what is read, whatever a container writes."""
    assert termination(message) is None


@given(st.text())
def test_no_termination_message_is_too_much(message: str) -> None:
    """Nothing that a container can write makes reading it fail."""
    assert termination(message) is None
