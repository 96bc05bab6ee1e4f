"""The limits of a copy."""

from __future__ import annotations

from dataclasses import dataclass

from sluice.core.pace.slicing import SLICE_BYTES, SLICE_SECONDS


@dataclass(frozen=True, slots=True, kw_only=True)
class Limits:
    """The limits of a copy. They may change at any time.

    Attributes:
        in_flight_bytes: most bytes sent to the target store and not confirmed, over all tasks.
        bytes_per_second: most bytes per second, over all tasks; None for no limit.
        slice_bytes: most bytes of one slice.
        verify_bytes: most bytes of a slice that verifies, which no time limit ends; None for
            `slice_bytes`.
        slice_seconds: after this time a task begins no other slice, and ends its slice at the end
            of the next chunk or object.
        parallelism: most streams that are worked on at once.
        stop_at_failure: whether to begin no other stream after one has failed.
    """

    in_flight_bytes: int = 16 << 20
    bytes_per_second: int | None = None
    slice_bytes: int = SLICE_BYTES
    verify_bytes: int | None = None
    slice_seconds: float = SLICE_SECONDS
    parallelism: int = 16
    stop_at_failure: bool = False

    def window(self, slots: int) -> int:
        """Return a task's share of the bytes in flight, at least 1 MiB."""
        return max(1 << 20, self.in_flight_bytes // slots)
