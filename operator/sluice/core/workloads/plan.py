"""The plan of a resource: one copy, one run of an archive, or many of either for a scope.

The module also compresses plans for ConfigMaps and logs, and refuses plans that are too large.
"""

from __future__ import annotations

import gzip
import hashlib
import zlib
from typing import Final, Literal, Self

from pydantic import Field

from sluice.core.archive.plan import ArchivePlan
from sluice.core.copy.plan import StreamPlan
from sluice.core.scope.scope import ScopePlan
from sluice.core.values import text
from sluice.core.values.model import Frozen, StoreAddress
from sluice.errors import PlanTooLarge


class Plan(Frozen):
    """What a driver carries out: one of the classes below, one for each kind of resource.

    Their JSON has one form, so that a reader of any version knows which one it is: see `read_plan`.

    Attributes:
        version: of this format.
        sources: the stores to read from.
        target: the store to write to.
        streams: the copies to carry out; none where archives are made.
        scope: of many streams, the part that concerns the whole.
    """

    version: Literal[1] = 1
    sources: tuple[StoreAddress, ...]
    target: StoreAddress
    streams: tuple[StreamPlan, ...] = ()
    scope: ScopePlan | None = None

    def placed(self, like: Plan) -> Self:
        """Return this plan with the stores' addresses of another plan, which are newer."""
        return self.model_copy(update={"sources": like.sources, "target": like.target})

    @property
    def items(self) -> tuple[StreamPlan | ArchivePlan, ...]:
        """The plans of single streams, or of runs, each at its place."""
        return self.streams

    @property
    def bytes(self) -> int:
        """Bytes to copy."""
        return sum(stream.bytes for stream in self.items)

    @property
    def events(self) -> int | None:
        """Events to copy, by the source's store; None if unknown for a stream."""
        counts = [stream.events for stream in self.items]
        return None if None in counts else sum(count for count in counts if count is not None)

    @property
    def follows(self) -> bool:
        """Whether sources are followed behind the planned bytes."""
        return False

    @property
    def digest(self) -> str:
        """SHA-256 of the whole plan with the stores' addresses, in hexadecimal digits."""
        return hashlib.sha256(self.model_dump_json().encode()).hexdigest()

    @property
    def hash(self) -> str:
        """SHA-256 over the streams' hashes, and of a scope its own part, in hexadecimal digits."""
        whole = "".join(stream.hash for stream in self.items)
        if self.scope is not None:
            whole += self.scope.model_dump_json()
        return hashlib.sha256(whole.encode()).hexdigest()


class StreamCopyPlan(Plan):
    """The plan of a StreamCopy: one stream."""

    scope: None = None

    @property
    def follows(self) -> bool:
        """Whether the stream is followed."""
        return any(stream.follow for stream in self.streams)


class ScopeCopyPlan(Plan):
    """The plan of a run of a ScopeCopy.

    Attributes:
        streams: the copies, those with most bytes first.
        scope: what concerns the whole.
        runs: in place of copies, the archives that the scope's streams are put into.
    """

    scope: ScopePlan
    runs: tuple[ArchivePlan, ...] = Field(default=(), exclude_if=lambda value: not value)

    @property
    def items(self) -> tuple[StreamPlan | ArchivePlan, ...]:
        """The plan of each stream, at its place."""
        return self.runs or self.streams

    @property
    def follows(self) -> bool:
        """Whether the streams are followed, and those that the scope gets later."""
        return self.scope.following is not None


class ArchiveRunPlan(Plan):
    """The plan of a run of a StreamArchive.

    Attributes:
        archive: the run.
    """

    scope: None = None
    archive: ArchivePlan

    @property
    def items(self) -> tuple[StreamPlan | ArchivePlan, ...]:
        """The run."""
        return (self.archive,)

    @property
    def hash(self) -> str:
        """SHA-256 of the run, in hexadecimal digits."""
        return self.archive.hash


MOST_EXPANDED: Final = 128 << 20
"""The most bytes of JSON that a compressed plan may expand to. Plans in a log make fewer."""


def compressed(plan: Plan) -> bytes:
    """Compress a plan's JSON by gzip. The same plan gives the same bytes."""
    return gzip.compress(plan.model_dump_json().encode(), mtime=0)


def expanded(data: bytes, *, most: int = MOST_EXPANDED) -> ScopeCopyPlan:
    """Return the plan that was compressed to these bytes; arguments and errors as `unpacked`."""
    return ScopeCopyPlan.model_validate_json(unpacked(data, most=most))


def unpacked(data: bytes, *, most: int = MOST_EXPANDED) -> bytes:
    """Expand compressed bytes.

    Args:
        data: the bytes, which may come from any client.
        most: the most bytes to expand them to.

    Raises:
        ValueError: they are not gzip's, are cut off, or expand to more bytes.
    """
    unpacking = zlib.decompressobj(wbits=zlib.MAX_WBITS | 16)  # gzip's format
    try:
        whole = unpacking.decompress(data, most)
    except zlib.error as error:
        raise ValueError(f"these bytes are no plan: {error}") from error
    if not unpacking.eof:
        raise ValueError("these bytes are no plan: they are cut off, or make too many")
    return whole


MOST_PLAN_BYTES: Final = 960 << 10
"""The most bytes of a plan in a ConfigMap, which takes 1 MiB. The executors' template lies beside
the plan. A stream's plan is written as JSON, a scope's compressed."""

MOST_PLAN_JSON: Final = 16 << 20
"""The most bytes of a scope's plan as JSON. The operator reads it whole, and compressed to 1 MiB
it might have up to 25 MiB."""


def refusal(plan: Plan) -> PlanTooLarge | None:
    """Return the error if a plan is too large for a ConfigMap; None if it fits."""
    most, reader = MOST_PLAN_BYTES, "a ConfigMap holds"
    size = len(plan.model_dump_json().encode())
    if plan.scope is None:
        field = "spec.source.stream"
        segments = sum(len(one.segments) for one in plan.items)
        what, remedy = f"{segments} segments", None
    else:
        field = "spec.streams"
        if size > MOST_PLAN_JSON:
            most, reader = MOST_PLAN_JSON, "the operator reads"
        else:
            size = len(compressed(plan))
        what = f"{len(plan.items)} streams"
        remedy = (
            "Select fewer streams for each copy, or copy them with `sluice run`, which needs no "
            "ConfigMap; nothing was made."
        )
    if size <= most:
        return None
    return PlanTooLarge(
        f"the plan for {what} takes {text.size(size)}, and {reader} {text.size(most)} of it",
        field=field,
        remedy=remedy,
    )
