from datetime import UTC, datetime, timedelta, timezone
from typing import Any

import pytest

from sluice.api.status.common import (
    MOST_HISTORY,
    MOST_TOKEN,
    Attempt,
    Condition,
    ConditionType,
    Failure,
    ObjectRef,
    ProgressStatus,
    VerificationStatus,
)
from sluice.api.status.copy_status import StreamCopyStatus
from sluice.api.status.store_status import StreamStoreStatus

NOON = datetime(2026, 5, 4, 12, 0, 0, tzinfo=UTC)
READY = Condition(
    type=ConditionType.READY,
    status="True",
    reason="Copied",
    message="done",
    observed_generation=3,
    last_transition_time=NOON,
)
FULL = StreamCopyStatus(
    observed_generation=3,
    conditions=(READY,),
    copy_id="ab" * 16,
    plan_ref=ObjectRef(name="events-plan"),
    plan_hash="cd" * 32,
    job_ref=ObjectRef(name="events-1"),
    start_cut="0=0",
    end_cut="0=700",
    progress=ProgressStatus(
        bytes=350,
        total_bytes=700,
        events=7,
        percent=50,
        summary="50 %",
        bytes_per_second=10,
        rate="10 B/s",
        eta_seconds=35,
        time=NOON,
    ),
    attempts=2,
    failures=1,
    retry_time=NOON,
    last_failure=Failure(
        reason="StoreBusy",
        category="Backend",
        message="busy",
        field="spec.source",
        remedy="wait",
        attempt=1,
        time=NOON,
    ),
    last_handled_requested_at="now",
    start_time=NOON,
    completion_time=NOON,
    verification=VerificationStatus(digest="ef" * 32, bytes=700, events=7, segments=1, time=NOON),
    history=(
        Attempt(
            attempt=1,
            job="events-1",
            start_time=NOON,
            end_time=NOON,
            outcome="Failed",
            reason="StoreBusy",
        ),
    ),
)


def test_what_is_written_is_read_back() -> None:
    """A status with every field set equals itself after a way through Kubernetes' JSON."""
    assert StreamCopyStatus.read(FULL.dump()) == FULL


def test_a_status_is_written_in_camel_case() -> None:
    """Names are the API's, times are whole seconds in UTC, and absent fields are left out."""
    assert StreamCopyStatus(copy_id="ab", conditions=(READY,), start_time=NOON).dump() == {
        "observedGeneration": -1,
        "conditions": [
            {
                "type": "Ready",
                "status": "True",
                "reason": "Copied",
                "message": "done",
                "observedGeneration": 3,
                "lastTransitionTime": "2026-05-04T12:00:00Z",
            }
        ],
        "copyID": "ab",
        "attempts": 0,
        "failures": 0,
        "startTime": "2026-05-04T12:00:00Z",
        "history": [],
    }


def test_no_status_is_an_empty_one() -> None:
    """A resource that the operator never looked at has an empty status of generation -1."""
    assert StreamStoreStatus.read(None) == StreamStoreStatus.read({}) == StreamStoreStatus()
    assert StreamStoreStatus().observed_generation == -1


@pytest.mark.parametrize(
    "more",
    [
        {"phase": "Running"},
        {"progress": {"bytes": 1, "lag": 5}},
        {"conditions": [{**READY.dump(), "type": "Degraded", "severity": "low"}]},
    ],
    ids=["field", "nested field", "condition"],
)
def test_a_newer_status_is_read(more: dict[str, Any]) -> None:
    """Fields and condition types of a later version do not prevent the rest from being read."""
    read = StreamCopyStatus.read({"copyID": "ab", **more})
    assert read.copy_id == "ab"
    assert (read.progress is not None) == ("progress" in more)
    assert len(read.conditions) == len(more.get("conditions", ()))


@pytest.mark.parametrize(
    "broken",
    [
        {"progress": {"bytes": "many"}},
        {"progress": 7},
        {"conditions": [{"type": "Ready"}]},
        {"history": "long"},
        {"observedGeneration": None},
        {"startTime": "noon"},
        {"startTime": "2026-05-04T12:00:00"},
        {"attempts": -1, "failures": []},
    ],
    ids=str,
)
def test_what_cannot_be_read_counts_as_absent(broken: dict[str, Any]) -> None:
    """A field with a wrong shape is ignored, and the other fields are read."""
    assert StreamCopyStatus.read({"copyID": "ab", **broken}) == StreamCopyStatus(copy_id="ab")


def test_times_are_kept_as_kubernetes_keeps_them() -> None:
    """A status rounds times down to seconds of UTC when it is made, before it is stored."""
    east = NOON.astimezone(timezone(timedelta(hours=2))) + timedelta(milliseconds=700)
    assert StreamCopyStatus(start_time=east) == StreamCopyStatus(start_time=NOON)


def test_long_texts_are_cut() -> None:
    """A failure's message and field are cut to the lengths that the API allows."""
    failure = Failure(reason="Long", category="Backend", message="x" * 5000, field="y" * 5000)
    assert len(failure.message) == 4096
    assert failure.message.endswith("x...")
    assert failure.field is not None
    assert len(failure.field) == 512


def test_a_request_can_be_compared_after_it_was_cut() -> None:
    """The status keeps the first characters of a long annotation, without dots at the end."""
    asked = "x" * (MOST_TOKEN + 1)
    handled = StreamCopyStatus(last_handled_requested_at=asked).last_handled_requested_at
    assert handled == asked[:MOST_TOKEN]
    assert StreamCopyStatus(last_handled_requested_at=None).dump() == StreamCopyStatus().dump()


def test_the_last_attempts_are_remembered() -> None:
    """The history keeps only the latest attempts."""
    attempts = tuple(Attempt(attempt=number, job=f"job-{number}") for number in range(1, 25))
    history = StreamCopyStatus(history=attempts).history
    assert history == attempts[-MOST_HISTORY:]


def test_a_changed_status_is_cut_too() -> None:
    """`model_copy` cuts texts, lists and times as the constructor does. Other fields stay."""
    later = NOON + timedelta(milliseconds=700)
    attempts = tuple(Attempt(attempt=number, job=f"job-{number}") for number in range(1, 25))
    update = {"end_cut": "x" * 5000, "history": attempts, "start_time": later}
    changed = FULL.model_copy(update=update)
    assert changed.end_cut is not None
    assert len(changed.end_cut) == 4096
    assert changed.history == attempts[-MOST_HISTORY:]
    assert changed.start_time == NOON
    assert changed.model_copy(update={key: getattr(FULL, key) for key in update}) == FULL
    assert FULL.model_copy() == FULL


def test_a_condition_is_found_by_its_type() -> None:
    """The lookup returns None for a type that is absent."""
    assert FULL.condition(ConditionType.READY) == READY
    assert FULL.condition("Stalled") is None


def test_a_condition_has_the_type_as_plain_text() -> None:
    """A condition that is read back equals the original: its type is plain text in both."""
    assert type(READY.type) is str
    assert Condition.model_validate(READY.dump()) == READY
