"""What the operator reports of a ScopeCopy."""

from __future__ import annotations

from functools import partial
from typing import Annotated, Final

from pydantic import BeforeValidator, ConfigDict, Field

from sluice.api.fields.rules import following
from sluice.api.status.common import (
    CopyingStatus,
    Count,
    Name,
    Number,
    ObjectRef,
    Reason,
    ShortText,
    StatusModel,
    Text,
    Time,
    cut,
    head,
)

MOST_FAILED: Final = 50
"""Failed streams that a status names; it counts all of them."""

MOST_TABLES: Final = 50
"""Key-value tables that a status names."""

MOST_REASONS: Final = 16
"""Reasons to leave streams out that a status counts."""

MOST_RESULTS: Final = 64
"""ConfigMaps that hold the results of one copy."""

_MOST_MESSAGE = 512

_Message = Annotated[
    str, Field(max_length=_MOST_MESSAGE), BeforeValidator(partial(cut, _MOST_MESSAGE))
]


class StreamCounts(StatusModel):
    """How many streams there are to copy, and what became of them."""

    total: Number = Field(default=0, description="Streams to copy.")
    copied: Number = Field(default=0, description="Those whose target is whole.")
    failed: Number = Field(default=0, description="Those that cannot be copied.")
    stopped: Number = Field(
        default=0,
        description="Those that were not begun, since another one had failed "
        "(failurePolicy: Stop).",
    )
    left_out: Number = Field(
        default=0, description="Streams of the scope that are not to be copied, in none of these."
    )
    summary: ShortText = Field(
        default="", description="Copied streams of all that are to be copied, for a table."
    )


class FailedStream(StatusModel):
    """A stream that cannot be copied."""

    stream: Name = Field(description="Its name.")
    target: Name = Field(description="The name that its target has, or would have.")
    reason: Reason = Field(description="What went wrong, in one word of the catalogue.")
    message: _Message = Field(default="", description="What went wrong, and what to do.")


class LeftOutCount(StatusModel):
    """Streams that are not copied, for one reason."""

    reason: Reason = Field(
        description="NotSelected, Internal, Ephemeral, Exists (onExists: Skip), Own (targets of "
        "this copy, where source and target are one scope), or Later (archives without a run up to "
        "until)."
    )
    count: Number = Field(default=0, description="How many there are.")


class BoundsTaken(StatusModel):
    """When it was read how far each stream goes."""

    begin_time: Time = Field(description="When the first stream was asked.")
    end_time: Time = Field(description="When the last one was.")
    spread_milliseconds: Count = Field(
        default=0,
        description="The time between the two. What was written to one stream within it may be "
        "copied while what was written to another is not.",
    )


class ScopeCopyStatus(CopyingStatus):
    """How far the copy of a scope is and what became of it."""

    model_config = ConfigDict(
        json_schema_extra=following(
            source=("target",),
            jobRef=("run", "bounds"),
            progress=("streams", "failedStreams", "leftOut", "keyValueTables"),
            completionTime=("resultRefs",),
        )
    )

    target: Text | None = Field(
        default=None,
        description="The scope that it is copied to, or the folder of the archives, for a table.",
    )
    run: Number = Field(
        default=0,
        description="Which run it is: the first has number 1, and what failed is copied in "
        "another one if sluice.dev/requestedAt asks for it.",
    )
    bounds: BoundsTaken | None = Field(
        default=None, description="When it was read how far each stream goes."
    )
    streams: StreamCounts | None = Field(
        default=None, description="How many streams there are, and what became of them."
    )
    failed_streams: Annotated[
        tuple[FailedStream, ...],
        Field(max_length=MOST_FAILED),
        BeforeValidator(partial(head, MOST_FAILED)),
    ] = Field(default=(), description=f"The first {MOST_FAILED} streams that cannot be copied.")
    left_out: Annotated[
        tuple[LeftOutCount, ...],
        Field(max_length=MOST_REASONS),
        BeforeValidator(partial(head, MOST_REASONS)),
    ] = Field(default=(), description="Why streams are not to be copied, and how many.")
    key_value_tables: Annotated[
        tuple[Name, ...],
        Field(max_length=MOST_TABLES),
        BeforeValidator(partial(head, MOST_TABLES)),
    ] = Field(
        default=(),
        description=f"The first {MOST_TABLES} key-value tables of the scope, which are not copied.",
    )
    result_refs: Annotated[
        tuple[ObjectRef, ...],
        Field(max_length=MOST_RESULTS),
        BeforeValidator(partial(head, MOST_RESULTS)),
    ] = Field(
        default=(),
        description="The ConfigMaps that say what is known of each stream: which are to be copied, "
        "and once the copy is over, what became of them.",
    )
