"""Values that every layer shares: streams, segments, ranges, configurations.

They are immutable and serialisable. Offsets and lengths are bytes, times are milliseconds since
1970, key ranges are half-open parts of [0, 1).
"""

from __future__ import annotations

from enum import StrEnum
from typing import TYPE_CHECKING, Final, Literal

from pydantic import BaseModel, ConfigDict, Field
from pydantic.alias_generators import to_camel

if TYPE_CHECKING:
    from collections.abc import Iterable

ROUNDING: Final = 1e-9
"""Key ranges that differ by less are the same: stores divide [0, 1) in floating point."""


class Frozen(BaseModel):
    """An immutable value that refuses unknown fields; camelCase in JSON."""

    model_config = ConfigDict(
        frozen=True,
        extra="forbid",
        alias_generator=to_camel,
        validate_by_name=True,
        validate_by_alias=True,
        serialize_by_alias=True,
    )


class StreamName(Frozen):
    """A stream in its scope."""

    scope: str
    stream: str

    def __str__(self) -> str:
        """`scope/stream`, as people and stores write it."""
        return f"{self.scope}/{self.stream}"


class KeyRange(Frozen):
    """The half-open part of [0, 1) whose routing keys go to one segment."""

    low: float = Field(ge=0, le=1)
    high: float = Field(ge=0, le=1)

    def overlaps(self, other: KeyRange) -> bool:
        """Whether a routing key can be in both; edges that differ by rounding are the same."""
        return self.low < other.high - ROUNDING and other.low < self.high - ROUNDING

    def is_like(self, other: KeyRange) -> bool:
        """Whether the two differ by rounding at most."""
        return abs(self.low - other.low) < ROUNDING and abs(self.high - other.high) < ROUNDING


def break_in(ranges: Iterable[KeyRange]) -> tuple[float, float] | None:
    """Where ranges do not cover [0, 1), each key once; None where they do.

    Args:
        ranges: by rising keys.

    Returns:
        Where the keys end that are covered so far, and where the next range begins: before that if
        keys are shared, after it if some are left out.
    """
    end = 0.0
    for keys in (*ranges, KeyRange(low=1, high=1)):
        if abs(keys.low - end) > ROUNDING:
            return end, keys.low
        end = keys.high
    return None


class Segment(Frozen):
    """One segment of a stream: its id in the store and the keys it takes."""

    id: int
    keys: KeyRange


class ScaleType(StrEnum):
    """How a stream changes its number of segments."""

    FIXED = "Fixed"
    BY_EVENTS = "ByEventsPerSecond"
    BY_BYTES = "ByBytesPerSecond"


class Scaling(Frozen):
    """A stream's scaling policy. `target_rate` is events/s, or KiB/s for BY_BYTES."""

    type: ScaleType = ScaleType.FIXED
    target_rate: int = 0
    scale_factor: int = 0
    min_segments: int = 1


class RetentionType(StrEnum):
    """What a stream's retention counts."""

    NONE = "None"
    TIME = "Milliseconds"
    SIZE = "Bytes"


class Retention(Frozen):
    """A stream's retention policy; units by `type`. `maximum` 0 means no upper bound is set."""

    type: RetentionType = RetentionType.NONE
    minimum: int = 0
    maximum: int = 0


class StreamConfig(Frozen):
    """What a stream is configured with."""

    scaling: Scaling = Scaling()
    retention: Retention = Retention()
    tags: tuple[str, ...] = ()


class SegmentInfo(Frozen):
    """A segment as the store describes it: readable bytes are [start, length)."""

    start: int
    length: int
    sealed: bool


class TransactionState(StrEnum):
    """What becomes of a transaction. The store forgets it a day or so after its end."""

    OPEN = "open"
    COMMITTING = "committing"
    COMMITTED = "committed"
    ABORTING = "aborting"
    ABORTED = "aborted"
    UNKNOWN = "unknown"

    @property
    def is_passing(self) -> bool:
        """Whether something is decided that is not done yet."""
        return self in {TransactionState.COMMITTING, TransactionState.ABORTING}


class Health(Frozen):
    """A store's answer to the question whether it is there.

    Attributes:
        latency: seconds that its catalog took to answer.
        protocol: the version of the protocol that its servers speak.
    """

    latency: float
    protocol: int


class StoreAddress(Frozen):
    """Where a store is and under which name its credentials are found, never the credentials.

    Attributes:
        backend: the kind of store.
        uri: its entry point, `tcp://host:port`.
        secret: the name of the Secret with `username` and `password`; each process reads it from
            the credentials folder (see `sluice.config`), so no task or plan carries it.
    """

    backend: Literal["pravega"] = "pravega"
    uri: str
    secret: str | None = None
