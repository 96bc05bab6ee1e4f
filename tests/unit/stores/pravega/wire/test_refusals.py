from uuid import UUID

import pytest

from sluice.errors import (
    BackendError,
    InvalidEventNumber,
    NoSuchSegment,
    SegmentExists,
    SegmentSealed,
    SegmentTruncated,
    StoreMoving,
    StoreRejected,
    TokenExpired,
)
from sluice.stores.pravega.wire import refusals as r
from sluice.stores.pravega.wire.wire import FrameType

NAME = "scope/stream/0.#epoch.0"
EXPECTED: list[tuple[r.Refusal, type[BackendError]]] = [
    (r.SegmentHasMoved(1, NAME, "elsewhere"), StoreMoving),
    (r.SegmentIsSealed(1, NAME), SegmentSealed),
    (r.SegmentAlreadyExists(1, NAME), SegmentExists),
    (r.SegmentIsMissing(1, NAME), NoSuchSegment),
    (r.EventNumberRefused(UUID(int=1), 1, "", 7), InvalidEventNumber),
    (r.SegmentIsTruncated(1, NAME, 4711), SegmentTruncated),
    (r.OperationUnsupported(1, "seal"), StoreRejected),
    (r.TokenRefused(1, "trace", 0), TokenExpired),
    (r.ErrorMessage(1, NAME, "disk on fire"), StoreRejected),
]


def test_every_error_reply_of_the_protocol_has_a_meaning() -> None:
    """The table and this test cover all nine error replies."""
    numbers = {50, 51, 52, 53, 55, 56, 57, 60, 61}
    assert set(r.REFUSALS) == {FrameType(number) for number in numbers}
    assert {refusal.TYPE for refusal, _ in EXPECTED} == set(r.REFUSALS)


@pytest.mark.parametrize(("refusal", "expected"), EXPECTED, ids=lambda value: str(value)[:20])
def test_a_refusal_is_an_error_that_names_its_segment(
    refusal: r.Refusal, expected: type[BackendError]
) -> None:
    """Each reply becomes its own class of error about the segment that was asked for."""
    error = r.error_of(refusal, NAME)
    assert type(error) is expected
    assert NAME in error.message
    assert getattr(error, "segment", NAME) == NAME


def test_a_truncation_says_where_the_segment_begins() -> None:
    """The error has the first offset that still exists."""
    error = r.error_of(r.SegmentIsTruncated(1, NAME, 4711), NAME)
    assert isinstance(error, SegmentTruncated)
    assert error.start_offset == 4711


def test_a_long_complaint_is_cut() -> None:
    """A stack trace from the store does not fill Sluice's logs."""
    assert len(r.error_of(r.ErrorMessage(1, NAME, "x" * 60_000), NAME).message) < 500
