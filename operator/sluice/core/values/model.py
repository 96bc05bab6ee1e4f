"""Values that every layer shares: streams, segments, ranges, configurations.

They are immutable and serialisable. Offsets and lengths are bytes, times are milliseconds since
1970, key ranges are half-open parts of [0, 1).
"""

from __future__ import annotations

from enum import StrEnum
from typing import TYPE_CHECKING, Annotated, Final

from pydantic import BaseModel, ConfigDict, Field
from pydantic.alias_generators import to_camel

from sluice.api.fields.backends import BACKENDS, Backend, BackendName, Holds
from sluice.api.fields.common import ObjectName

if TYPE_CHECKING:
    from collections.abc import Iterable

_BUNDLE: Final = r"^_?[a-z0-9]([a-z0-9.-]*[a-z0-9])?/[-._a-zA-Z0-9]+$"
"""A Secret, or a ConfigMap behind `_`, and its key. Tenants may have written what is read."""

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


class StreamRetention(Frozen):
    """A stream's retention policy; units by `type`. `maximum` 0 means no upper bound is set."""

    type: RetentionType = RetentionType.NONE
    minimum: int = 0
    maximum: int = 0


class StreamConfig(Frozen):
    """What a stream is configured with."""

    scaling: Scaling = Scaling()
    retention: StreamRetention = StreamRetention()
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


class StoreHealth(Frozen):
    """A store's answer to the question whether it is there.

    Attributes:
        latency: seconds that its catalog took to answer; None of a volume, which only pods reach
            that mount it.
        protocol: the version of the protocol that its servers speak; None of a place for archives.
    """

    latency: float | None = None
    protocol: int | None = None


class ArchivedRun(Frozen):
    """One run of an archive, which never changes.

    Attributes:
        path: of the archive in its store; empty where the archive is all that the store holds.
        run: its number.
        sha256: of its manifest, in hexadecimal digits: it names all that the run holds.
    """

    path: str
    run: int
    sha256: str

    def __str__(self) -> str:
        """The run, for people."""
        return f"run {self.run} of the archive{f' {self.path}' if self.path else ''}"


def is_none(value: object) -> bool:
    """Whether a field is left out of JSON: what was written down before it was there stays so."""
    return value is None


VOLUME: Final = "volume://"
"""Before the address of a volume: the name of its claim and a path follow."""


class StoreAddress(Frozen):
    """Where a store is and under which name its credentials are found, never the credentials.

    A bucket or a volume holds archives; with `archive` it is the address of one run, which is read
    as a store that holds one stream.

    Attributes:
        backend: the kind of store.
        uri: its entry point: `tcp://host:port`, `s3://bucket/prefix`, or `volume://CLAIM/path`, a
            directory below the folder of volumes (see `sluice.config`). `file:///path` is a
            directory of this machine, as people name it on the command line.
        secret: the name of the Secret with `username` and `password`, for S3 `accessKeyId` and
            `secretAccessKey`; each process reads it from the credentials folder (see
            `sluice.config`), so no task or plan carries it.
        endpoint: the URL of an S3 that is not Amazon's.
        region: the bucket's.
        ca: the file in the credentials folder, as `NAME/KEY`, with the certificates in PEM that an
            S3 is trusted by, besides the system's.
        archive: the run that is read.
    """

    backend: BackendName = "pravega"
    uri: str
    secret: ObjectName | None = None
    endpoint: str | None = Field(default=None, exclude_if=is_none)
    region: str | None = Field(default=None, exclude_if=is_none)
    ca: Annotated[str, Field(max_length=512, pattern=_BUNDLE)] | None = Field(
        default=None, exclude_if=is_none
    )
    archive: ArchivedRun | None = Field(default=None, exclude_if=is_none)

    @property
    def kind(self) -> Backend:
        """The kind of store that is there."""
        return BACKENDS[self.backend]

    @property
    def holds_archives(self) -> bool:
        """Whether it is a place for archives, and not a store or what is read as one."""
        return self.kind.holds is Holds.ARCHIVES and self.archive is None

    @property
    def claim(self) -> str | None:
        """The claim of the volume, where it is one that pods mount."""
        if not self.kind.mounted or not self.uri.startswith(VOLUME):
            return None
        return self.uri.removeprefix(VOLUME).partition("/")[0]
