from datetime import UTC, datetime
from typing import Any

import pytest

from sluice.api.status.common import ProgressStatus
from sluice.api.status.copy_status import StreamCopyStatus
from sluice.api.status.ephemeral_status import EphemeralStreamStatus
from sluice.api.status.scope_status import ScopeCopyStatus, StreamCounts
from sluice.core.catalogue import ENDS, meaning
from sluice.core.reconcile.shared import conditions
from sluice.core.reconcile.shared.conditions import Saying
from sluice.core.reconcile.shared.notices import notice_of

NOW = datetime(2026, 1, 2, 3, 4, 5, tzinfo=UTC)
NEW = StreamCopyStatus()


def said(status: Any, wanted: Any) -> Any:
    """Return the status with other conditions."""
    merged = conditions.merge(status.conditions, wanted, generation=1, now=NOW)
    return status.model_copy(update={"conditions": merged})


def copied() -> StreamCopyStatus:
    """Return a finished copy with texts that must not leave the cluster."""
    progress = ProgressStatus(bytes=9, total_bytes=9, events=1, percent=100, summary="100%")
    status = NEW.model_copy(
        update={
            "source": "shop/secret-stream",
            "completion_time": NOW,
            "attempts": 2,
            "progress": progress,
        }
    )
    saying = Saying("Copied", "10.0.0.1:9090 was kind")
    found: StreamCopyStatus = said(status, conditions.succeeded(saying, verified=None))
    return found


def test_a_success_is_told_with_numbers_and_times_only() -> None:
    """The message is the catalogue's, and the facts have no text of the status."""
    notice = notice_of(said(NEW, conditions.working(Saying("Publishing", ""))), copied())
    assert notice is not None
    assert (notice.outcome, notice.reason) == ("Succeeded", "Copied")
    assert notice.message == meaning("Copied") != ""
    assert notice.facts == {
        "completionTime": "2026-01-02T03:04:05Z",
        "attempts": 2,
        "failures": 0,
        "progress": {"bytes": 9, "totalBytes": 9, "events": 1, "percent": 100},
    }


def test_an_end_is_told_once() -> None:
    """A repeated status causes no notice."""
    assert notice_of(copied(), copied()) is None


@pytest.mark.parametrize("reason", ["AuthenticationFailed", "PartiallySucceeded", "Unheard"])
def test_whatever_stalls_is_told_as_a_failure(reason: str) -> None:
    """Examples are a failure, a partly copied scope, and an unknown reason."""
    before = said(NEW, conditions.working(Saying("Copying", "")))
    after = said(NEW, conditions.stalled(Saying(reason, "tcp://10.0.0.1 said: secret")))
    notice = notice_of(before, after)
    assert notice is not None
    assert (notice.outcome, notice.reason) == ("Failed", reason)
    assert "10.0.0.1" not in notice.message


def test_a_stalled_resource_with_another_reason_is_told_again() -> None:
    """The first cause is mended, and the second one shows."""
    before = said(NEW, conditions.stalled(Saying("SecretNotFound", "")))
    after = said(NEW, conditions.stalled(Saying("AuthenticationFailed", "")))
    assert notice_of(before, after) is not None


def test_a_scope_tells_the_numbers_of_its_streams() -> None:
    """The notice has the numbers of the copied and of the failed streams."""
    counts = StreamCounts(total=3, copied=2, failed=1, summary="2/3")
    status = ScopeCopyStatus().model_copy(update={"streams": counts})
    after = said(status, conditions.stalled(Saying("PartiallySucceeded", "")))
    notice = notice_of(ScopeCopyStatus(), after)
    assert notice is not None
    assert notice.facts["streams"] == {
        "total": 3,
        "copied": 2,
        "failed": 1,
        "stopped": 0,
        "leftOut": 0,
    }


@pytest.mark.parametrize(
    ("reason", "told"), [("Released", True), ("Claimed", False), ("Scheduled", False)]
)
def test_a_lasting_state_is_no_end(reason: str, *, told: bool) -> None:
    """A final release of an EphemeralStream causes a notice. Owning streams does not."""
    before = EphemeralStreamStatus()
    after = said(before, conditions.ready(Saying(reason, "")))
    assert (notice_of(before, after) is not None) == told
    assert (reason in ENDS) == told


def test_an_ephemeral_stream_that_stalls_is_told_without_its_streams() -> None:
    """A notice has numbers and times only, no names."""
    held = EphemeralStreamStatus(streams=("helper",), stream_count=1)
    found = notice_of(held, said(held, conditions.stalled(Saying("StoreNotShared", "no"))))
    assert found is not None
    assert found.facts == {"streamCount": 1}
