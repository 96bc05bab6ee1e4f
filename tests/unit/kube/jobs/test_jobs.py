"""An attempt's phase and failure, as read from its Job and its pods."""

from __future__ import annotations

import json
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sluice.core.query.recount import Recount, SinkRecount
from sluice.core.reconcile.shared.jobs import JobPhase
from sluice.errors import Category
from sluice.kube.api.names import ATTEMPT_LABEL
from sluice.kube.jobs.jobs import attempt_of, is_gone, job_seen, termination
from sluice.pipelines.driver.termination import message as message_of
from support.reconcile.jobs import ENDED, SAID, driver, job, look, pod, terminated

if TYPE_CHECKING:
    from sluice.kube.api.kinds import Object


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
    """It runs as soon as its pod does. It has ended when it says so, or when its pod succeeded."""
    assert look(body, *pods).phase is phase


def test_a_job_is_known_by_its_labels_and_times() -> None:
    """They tell its attempt, its begin and end, and whether it is being deleted."""
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
    """If the wanted runtime is unknown, no Job is outdated."""
    assert job_seen(job(), (), (), runtime=runtime).outdated == outdated


def test_a_damaged_label_is_no_attempt() -> None:
    """The Job counts as before the first attempt."""
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
    """A container of unknown state may still write."""
    assert is_gone(pod(phase)) == gone
    assert not is_gone({"metadata": {"name": "new"}})


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
    """The driver's own message counts if it left one, otherwise the fate of its pod."""
    trouble = look(job("Failed"), *pods).trouble
    assert trouble is not None
    assert (trouble.reason, words in trouble.message) == (reason, True)


def test_what_befalls_a_pod_is_tried_again() -> None:
    """Only the driver itself can say that a retry is useless."""
    for pods in ([], [pod("Failed", terminated())], [pod("Failed", reason="Evicted")]):
        trouble = look(job("Failed"), *pods).trouble
        assert trouble is not None
        assert trouble.retryable
        assert trouble.category is Category.INFRASTRUCTURE


def test_a_termination_message_is_read_as_it_was_written() -> None:
    """All that the message says of the failure is kept."""
    said = termination(json.dumps(SAID | {"field": "spec.target"}))
    assert said is not None
    assert (said.reason, said.category, said.field) == (
        "DigestMismatch",
        Category.INTEGRITY,
        "spec.target",
    )
    assert said.retryable is False


RECOUNT = Recount(
    version=1, batch=7, late=0, sinks=(SinkRecount(sink="a/b", rows=9, missing=0, extra=1),)
)


def test_the_report_of_a_verification_is_read_as_it_was_written() -> None:
    """A Job that has not succeeded has none."""
    said = terminated(code=0, message=message_of(None, RECOUNT).decode())
    assert look(job("Complete"), pod("Succeeded", said)).recount == RECOUNT
    assert look(job("Failed"), pod("Failed", said)).recount is None
    assert look(job("Complete")).recount is None


@pytest.mark.parametrize(
    "change",
    [
        {"sinks": []},
        {"sinks": None},
        {"batch": -1},
        {"batch": 1 << 57},
        {"version": "1"},
        {"more": 1},
        {"sinks": [{"sink": "a/b", "rows": 1, "missing": -1, "extra": 1}]},
        {"sinks": [{"sink": "a" * 600, "rows": 1, "missing": 0, "extra": 0}]},
    ],
    ids=str,
)
def test_a_report_that_is_made_up_counts_as_none(change: dict[str, Any]) -> None:
    """A status can hold each number, whatever a container writes."""
    told = {"outcome": "Succeeded", "recount": RECOUNT.model_dump(mode="json") | change}
    said = terminated(code=0, message=json.dumps(told))
    assert look(job("Complete"), pod("Succeeded", said)).recount is None


def test_a_job_that_had_too_little_time_says_so() -> None:
    """Kubernetes has deleted its pods by then, so they tell nothing."""
    body = job("Failed")
    (failed,) = [one for one in body["status"]["conditions"] if one["type"] == "Failed"]
    failed |= {"reason": "DeadlineExceeded", "message": "Job was active longer than its deadline"}
    trouble = look(body).trouble
    assert trouble is not None
    assert "Job was active longer than its deadline" in trouble.message


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
    """A status can hold the result, whatever a container writes."""
    assert termination(message) is None


@given(st.text())
def test_no_termination_message_is_too_much(message: str) -> None:
    """Reading never fails, whatever a container writes."""
    assert termination(message) is None


@pytest.mark.parametrize(
    ("label", "number"),
    [("7", 7), ("999999999", 999999999), ("9999999999", 0), ("²", 0), ("-1", 0), ("", 0)],
)
def test_no_label_makes_a_number_that_no_status_takes(label: str, number: int) -> None:
    """Users may write the label, and the operator must not fail at every look."""
    assert attempt_of({"metadata": {"labels": {ATTEMPT_LABEL: label}}}) == number
