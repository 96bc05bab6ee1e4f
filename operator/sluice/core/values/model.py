"""Values that every layer shares: streams, segments, ranges, configurations.

They are immutable and serialisable. Offsets and lengths are bytes, times are milliseconds since
1970, key ranges are half-open parts of [0, 1).
"""

from __future__ import annotations

from enum import StrEnum
from typing import TYPE_CHECKING, Annotated, Final

from pydantic import BaseModel, ConfigDict, Field
from pydantic.alias_generators import to_camel

from sluice.api.fields.backends import BACKENDS, UNNAMED, Backend, BackendName, Holds
from sluice.api.fields.common import ObjectName

if TYPE_CHECKING:
    from collections.abc import Iterable

_SERVER: Final = r"^[A-Za-z0-9]([A-Za-z0-9.-]*[A-Za-z0-9])?$"

_BUNDLE: Final = r"^_?[a-z0-9]([a-z0-9.-]*[a-z0-9])?/[-._a-zA-Z0-9]+$"
"""`NAME/KEY` of a Secret, or `_NAME/KEY` of a ConfigMap. Strict, as tenants may write it."""

ROUNDING: Final = 1e-9
"""Key ranges that differ by less are equal: stores divide [0, 1) in floating point."""


class Frozen(BaseModel):
    """An immutable value that refuses unknown fields; camelCase in JSON."""

    model_config = ConfigDict(
        # Validators are built when they are first used: a process uses few of all models.
        defer_build=True,
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
        """Return `scope/stream`, as people and stores write it."""
        return f"{self.scope}/{self.stream}"


class KeyRange(Frozen):
    """The half-open part [low, high) of [0, 1) whose hashed routing keys go to one segment."""

    low: float = Field(ge=0, le=1)
    high: float = Field(ge=0, le=1)

    def overlaps(self, other: KeyRange) -> bool:
        """Tell whether a routing key can be in both; edges that differ by rounding are equal."""
        return self.low < other.high - ROUNDING and other.low < self.high - ROUNDING

    def is_like(self, other: KeyRange) -> bool:
        """Tell whether the two differ by rounding at most."""
        return abs(self.low - other.low) < ROUNDING and abs(self.high - other.high) < ROUNDING


def break_in(ranges: Iterable[KeyRange]) -> tuple[float, float] | None:
    """Find the first place where ranges fail to cover [0, 1), each key once.

    Args:
        ranges: in the order of their keys.

    Returns:
        The end of the keys covered so far, and the beginning of the next range. The second is lower
        if ranges share keys, and higher if keys are left out. None if the ranges cover [0, 1).
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
    """The quantity that a stream's retention limits."""

    NONE = "None"
    TIME = "Milliseconds"
    SIZE = "Bytes"


class StreamRetention(Frozen):
    """A stream's retention policy; units by `type`. `maximum` 0 means no upper bound is set."""

    type: RetentionType = RetentionType.NONE
    minimum: int = 0
    maximum: int = 0


class StreamConfig(Frozen):
    """A stream's configuration."""

    scaling: Scaling = Scaling()
    retention: StreamRetention = StreamRetention()
    tags: tuple[str, ...] = ()


class SegmentInfo(Frozen):
    """A segment as the store describes it: readable bytes are [start, length)."""

    start: int
    length: int
    sealed: bool


class TransactionState(StrEnum):
    """The state of a transaction. The store forgets a transaction about a day after its end."""

    OPEN = "open"
    COMMITTING = "committing"
    COMMITTED = "committed"
    ABORTING = "aborting"
    ABORTED = "aborted"
    UNKNOWN = "unknown"

    @property
    def is_passing(self) -> bool:
        """Whether its end is decided and not carried out yet."""
        return self in {TransactionState.COMMITTING, TransactionState.ABORTING}


class StoreHealth(Frozen):
    """A store's answer to a health check.

    Attributes:
        latency: seconds that its catalog took to answer; None for a volume, which is reachable
            only from pods that mount it.
        protocol: the version of the protocol that its servers speak; None for a store of archives.
    """

    latency: float | None = None
    protocol: int | None = None


class ArchivedRun(Frozen):
    """One run of an archive, which never changes.

    Attributes:
        path: the archive's path in its store; empty if the archive is the whole store.
        run: the run's number.
        sha256: the SHA-256 of the run's manifest, in hexadecimal digits. The manifest names all
            that the run holds, so the digest identifies its content.
    """

    path: str
    run: int
    sha256: str

    def __str__(self) -> str:
        """Return the run, for people."""
        return f"run {self.run} of the archive{f' {self.path}' if self.path else ''}"


def is_none(value: object) -> bool:
    """Tell whether a field is left out of JSON.

    Documents written before the field existed keep their exact text, and with it their hashes.
    """
    return value is None


VOLUME: Final = "volume://"
"""Prefix of a volume's address: the name of its claim and a path follow."""


class StoreAddress(Frozen):
    """The address of a store and the name of its credentials, never the credentials.

    A bucket or a volume holds archives. With `archive`, this is the address of one run, which is
    read as a store that holds one stream.

    Attributes:
        backend: the kind of store.
        uri: its entry point, in a form of its kind. `volume://CLAIM/path` is a directory below the
            folder of volumes (see `sluice.config`); on the command line, `file:///path` is a
            directory of this machine.
        secret: the name of the Secret with the keys of its kind. Each process reads it from the
            credentials folder (see `sluice.config`), so no task or plan carries it.
        endpoint: the URL of an S3 service that is not Amazon's.
        region: the bucket's region.
        ca: a file in the credentials folder, as `NAME/KEY`, with certificates in PEM. An S3 service
            is trusted by these, besides the system's; a store of live streams by these alone.
        server_name: the name that the certificates of a live store's servers have to have; that of
            each server's host when left out.
        client_certificate: the name of the Secret with `tls.crt` and `tls.key`, to show to servers,
            or proxies in front of them, that ask for a certificate.
        archive: the run that is read.
    """

    backend: BackendName = UNNAMED
    uri: str
    secret: ObjectName | None = None
    endpoint: str | None = Field(default=None, exclude_if=is_none)
    region: str | None = Field(default=None, exclude_if=is_none)
    ca: Annotated[str, Field(max_length=512, pattern=_BUNDLE)] | None = Field(
        default=None, exclude_if=is_none
    )
    server_name: Annotated[str, Field(max_length=253, pattern=_SERVER)] | None = Field(
        default=None, exclude_if=is_none
    )
    client_certificate: ObjectName | None = Field(default=None, exclude_if=is_none)
    archive: ArchivedRun | None = Field(default=None, exclude_if=is_none)

    @property
    def kind(self) -> Backend:
        """The kind of the store."""
        return BACKENDS[self.backend]

    @property
    def server(self) -> str | None:
        """The URL of the server that a client connects to first; None for a volume."""
        kind = self.kind
        if kind.mounted:
            return None
        if kind.public_server is None:
            return self.uri
        url = self.endpoint or kind.public_server.format(region=self.region or kind.region)
        return url.removesuffix("/")

    @property
    def holds_archives(self) -> bool:
        """Whether the address is that of a store of archives, not of one run or of live streams."""
        return self.kind.holds is Holds.ARCHIVES and self.archive is None

    @property
    def claim(self) -> str | None:
        """The name of the volume's claim; None if it is not a volume that pods mount."""
        if not self.kind.mounted or not self.uri.startswith(VOLUME):
            return None
        return self.uri.removeprefix(VOLUME).partition("/")[0]
