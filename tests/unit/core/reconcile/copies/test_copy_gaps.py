from dataclasses import replace

import pytest

from sluice.api.status.copy_status import StreamCopyStatus
from sluice.core.reconcile.copies.decide import reconcile
from sluice.core.reconcile.shared.jobs import JobPhase
from sluice.core.workloads.answers import CopyGap
from support.reconcile.copies import (
    DONE,
    WHOLE,
    begun,
    job,
    message,
    plan_seen,
    reason,
    said,
    world,
)

KNOWN = CopyGap(0, 2, 1080, 2160)
UNKNOWN = CopyGap(0, 5, 70, None)
TRUNCATED = (
    "The source was truncated before 1.1 kB were read: of segment 2, offsets 1080 to 2160 are not "
    "in it"
)
SUCCEEDED = job(phase=JobPhase.SUCCEEDED)


@pytest.mark.parametrize(
    ("gaps", "sentence"),
    [
        ((KNOWN,), f"{TRUNCATED}."),
        ((UNKNOWN,), "Segment 5 was gone: what it had from offset 70 on is unknown."),
        ((UNKNOWN, KNOWN), f"{TRUNCATED}, and 1 more gap is in status.gaps."),
    ],
)
def test_what_a_copy_lacks_is_said(gaps: tuple[CopyGap, ...], sentence: str) -> None:
    """Gaps of known size come first."""
    answer = replace(WHOLE, gaps=gaps)
    decision = reconcile(begun(), world(jobs=(SUCCEEDED,), answer=answer, plan=plan_seen()))
    assert (said(decision), reason(decision)) == (DONE, "CopiedWithGaps")
    assert message(decision).endswith(sentence)
    assert isinstance(decision.status, StreamCopyStatus)
    assert [(one.segment_id, one.from_, one.to) for one in decision.status.gaps or ()] == [
        (gap.segment, gap.begin, gap.end) for gap in gaps
    ]
