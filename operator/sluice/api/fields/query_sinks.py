"""Define what takes the results of a query."""

from __future__ import annotations

from typing import Annotated, Final, Self

from pydantic import ConfigDict, Field, model_validator

from sluice.api.fields.backends import Holds, either
from sluice.api.fields.common import ApiModel, InOwnStore, NewNameInStore, OwnStoreRef
from sluice.api.rules import one_of

_WHAT: Final = "kind of sink"


class ResultStream(InOwnStore):
    """A stream that results are appended to, each row as an event in JSON."""

    store_ref: OwnStoreRef = Field(
        description=f"The StreamStore that holds the stream. Its kind is {either(Holds.LIVE)}."
    )
    scope: NewNameInStore = Field(description="The stream's scope, which must exist.")
    stream: NewNameInStore = Field(
        description="The stream's name. The query makes the stream, and appends to no other."
    )
    segments: Annotated[int, Field(ge=1, le=256, strict=True)] = Field(
        default=1, description="The number of its segments, which stays."
    )

    @property
    def title(self) -> str:
        """The stream with its scope, for messages."""
        return f"{self.scope}/{self.stream}"


class LiveStream(ResultStream):
    """A stream of results for viewers. It keeps the last rows, and goes with the query."""

    keep_seconds: Annotated[int, Field(ge=60, le=31_536_000, strict=True)] = Field(
        default=21_600,
        description="The store drops rows that are older than this, now and then.",
    )


class QuerySink(ApiModel):
    """A place that takes the results, each row exactly once."""

    model_config = ConfigDict(json_schema_extra=one_of(_WHAT, "stream", "live"))

    stream: ResultStream | None = Field(
        default=None,
        description="A stream that results are appended to. It stays when the query is deleted.",
    )
    live: LiveStream | None = Field(
        default=None,
        description="A stream for viewers: it keeps the rows of the last keepSeconds, and is "
        "deleted with the query.",
    )

    @model_validator(mode="after")
    def _one_kind(self) -> Self:
        if (self.stream is None) == (self.live is None):
            raise ValueError(f"exactly one {_WHAT} is needed: stream, live")
        return self

    @property
    def place(self) -> tuple[str, ResultStream]:
        """The stream, behind the name of its field."""
        if self.live is not None:
            return "live", self.live
        if self.stream is None:
            raise TypeError("a sink without a stream")
        return "stream", self.stream
