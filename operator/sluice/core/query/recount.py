"""The result of a verification, which a pod reports to the operator."""

from __future__ import annotations

from typing import Annotated

from pydantic import Field

from sluice.core.values.model import Frozen

Rows = Annotated[int, Field(ge=0, lt=1 << 57, strict=True)]
"""A count. Users may have written the report of a pod of theirs, and a status takes the sums."""


class SinkRecount(Frozen):
    """A sink, compared with what was computed anew.

    Attributes:
        sink: the stream.
        rows: the rows that it has of the version.
        missing: rows that were computed, and are not there.
        extra: rows that are there, and were not computed.
    """

    sink: Annotated[str, Field(max_length=512)]
    rows: Rows
    missing: Rows
    extra: Rows


class Recount(Frozen):
    """The sinks of a query, compared with what was computed anew.

    Attributes:
        version: the number of the query's version.
        batch: the last batch that is compared.
        late: the late events of all versions. Those of closed windows are computed, and not there.
        sinks: each sink.
    """

    version: Rows
    batch: Rows
    late: Rows
    sinks: Annotated[tuple[SinkRecount, ...], Field(min_length=1, max_length=4)]

    @property
    def rows(self) -> int:
        """The rows of all sinks."""
        return sum(one.rows for one in self.sinks)

    @property
    def missing(self) -> int:
        """The rows that sinks lack."""
        return sum(one.missing for one in self.sinks)

    @property
    def extra(self) -> int:
        """The rows that sinks have and should not."""
        return sum(one.extra for one in self.sinks)

    @property
    def equal(self) -> bool:
        """Whether each sink has the rows that were computed, each as often."""
        return not (self.missing or self.extra)
