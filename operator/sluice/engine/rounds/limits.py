"""What a copy may use."""

from __future__ import annotations

from dataclasses import dataclass

from sluice.core.values.rounds import SLICE_BYTES, SLICE_SECONDS


@dataclass(frozen=True, slots=True, kw_only=True)
class Limits:
    """What a copy may use; may change between rounds.

    Attributes:
        in_flight_bytes: bytes sent to the target store and not confirmed, over all tasks.
        bytes_per_second: over all tasks; None for no limit.
        slice_bytes: most bytes of one slice.
        verify_bytes: of one that verifies, which ends at no other time; None for as many.
        slice_seconds: after this time tasks of a round begin no other slice, and end theirs where
            the next chunk or object ends.
        parallelism: of many streams, how many are worked on at once.
        stop_at_failure: whether, of many streams, no other one is begun once one has failed.
    """

    in_flight_bytes: int = 16 << 20
    bytes_per_second: int | None = None
    slice_bytes: int = SLICE_BYTES
    verify_bytes: int | None = None
    slice_seconds: float = SLICE_SECONDS
    parallelism: int = 16
    stop_at_failure: bool = False

    def window(self, slots: int) -> int:
        """A task's share of the bytes in flight."""
        return max(1 << 20, self.in_flight_bytes // slots)
