"""Define the status of a ScopeCopy."""

from __future__ import annotations

from functools import partial
from typing import Annotated, Final

from pydantic import BeforeValidator, ConfigDict, Field

from sluice.api.rules import following
from sluice.api.scalars.texts import Reason, cut
from sluice.api.status.common import (
    Count,
    HookedStatus,
    Name,
    Number,
    ObjectRef,
    ShortText,
    StatusModel,
    Time,
    head,
)
from sluice.api.status.follow_status import ScopeCutoverStatus, ScopeFollowStatus

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
    """How many streams are to be copied, and how many ended in which way."""

    total: Number = Field(default=0, description="Streams to copy.")
    copied: Number = Field(default=0, description="Streams whose target is complete.")
    failed: Number = Field(default=0, description="Streams that cannot be copied.")
    stopped: Number = Field(
        default=0,
        description="Streams that were not begun, since another stream had failed "
        "(failurePolicy: Stop).",
    )
    left_out: Number = Field(
        default=0,
        description="Streams of the scope that are not to be copied. The other numbers do not "
        "count them.",
    )
    summary: ShortText = Field(
        default="",
        description="How many of the streams to copy are copied, or followed, for a table.",
    )


class FailedStream(StatusModel):
    """A stream that cannot be copied."""

    stream: Name = Field(description="The stream's name.")
    target: Name = Field(description="The name that its target has, or would have.")
    reason: Reason = Field(description="What went wrong, in one word of the catalogue.")
    message: _Message = Field(default="", description="What went wrong, and what to do.")


class LeftOutCount(StatusModel):
    """How many streams are not copied for one reason."""

    reason: Reason = Field(
        description="NotSelected, Internal, Ephemeral, Exists (onExists: Skip), Own (targets of "
        "this copy, where source and target are one scope), Later (archives without a run up to "
        "until), or NotInRun (archives that the run of the scope did not add to)."
    )
    count: Number = Field(default=0, description="How many streams are left out for this reason.")


class BoundsTaken(StatusModel):
    """When the ends of the streams were read."""

    begin_time: Time = Field(description="When the first stream was read.")
    end_time: Time = Field(description="When the last stream was read.")
    spread_milliseconds: Count = Field(
        default=0,
        description="The time between the two. Events that were written to one stream within it "
        "may be copied, while events that were written to another are not.",
    )


class ScopeCopyStatus(HookedStatus):
    """The progress and the result of a scope's copy."""

    model_config = ConfigDict(
        json_schema_extra=following(
            jobRef=("runKey", "run", "scheduledTime", "bounds"),
            progress=(
                "lastRunTime",
                "lastSuccessTime",
                "nextRunTime",
                "streams",
                "failedStreams",
                "leftOut",
                "keyValueTables",
            ),
            completionTime=("resultRefs", "cutover", "follow"),
        )
    )

    run: Number = Field(
        default=0,
        description="The number of the run, from 1. A new value of the annotation "
        "sluice.dev/requestedAt begins another run, for the streams that are not copied yet. With "
        "a schedule: the number of the last recorded run of the scope, for source.archive.run of a "
        "restore; 0 before any.",
    )
    run_key: ShortText | None = Field(
        default=None,
        description="With a schedule: identifies the run that goes on, or the last one, by what "
        "asked for it.",
    )
    scheduled_time: Time | None = Field(
        default=None, description="When that run was due, by the schedule."
    )
    last_run_time: Time | None = Field(
        default=None,
        description="With a schedule: when the last run ended, recorded or failed.",
    )
    last_success_time: Time | None = Field(
        default=None,
        description="With a schedule: when the last run ended that has archived every stream. A "
        "run that fails, or in which a stream fails, does not change it: the age of the last good "
        "backup counts from here.",
    )
    next_run_time: Time | None = Field(
        default=None, description="When the next run is due, by the schedule."
    )
    bounds: BoundsTaken | None = Field(
        default=None, description="When the ends of the streams were read."
    )
    streams: StreamCounts | None = Field(
        default=None,
        description="How many streams are to be copied, and how many ended in which way.",
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
    ] = Field(default=(), description="Why streams are left out, and how many for each reason.")
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
        description="The ConfigMaps with an entry for each stream: which are to be copied, and "
        "once the copy is over, how each ended. With mode: Continuous also those that have joined, "
        "and which are followed.",
    )
    cutover: ScopeCutoverStatus | None = Field(
        default=None,
        description="The end of a copy that follows its streams, once it is asked for.",
    )
    follow: ScopeFollowStatus | None = Field(
        default=None,
        description="How far the streams of a copy are followed. Written when it says something "
        "new, and at least every five minutes.",
    )
