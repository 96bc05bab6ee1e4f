"""Define the status of a StreamArchive."""

from __future__ import annotations

from functools import partial
from typing import Annotated, Final

from pydantic import BeforeValidator, ConfigDict, Field

from sluice.api.rules import following
from sluice.api.status.common import (
    CopyingStatus,
    Count,
    Gaps,
    Name,
    Number,
    ObjectRef,
    ShortText,
    StatusModel,
    Text,
    Time,
    Token,
    head,
)

MOST_RUNS: Final = 20
"""Runs that a status lists; it counts all of them."""


class RunStatus(StatusModel):
    """A run of the archive that can be restored."""

    run: Count = Field(description="The run's number.")
    time: Time | None = Field(
        default=None, description="The time up to which the run holds the stream."
    )
    bytes: Count = Field(default=0, description="Bytes of the stream that the run holds.")
    events: Count | None = Field(default=None, description="Events in these bytes.")
    verified: bool = Field(
        default=False,
        description="Whether all that the run added was read back and compared before the run was "
        "recorded.",
    )


class ArchiveSummary(StatusModel):
    """What the archive holds, as its last head says."""

    last_head: Count = Field(default=0, description="The number of the last head; 0 before any.")
    sha256: ShortText = Field(
        default="",
        description="The SHA-256 of the last head. Note it to check later whether anything before "
        "it was changed.",
    )
    runs: Number = Field(default=0, description="Runs that can be restored.")
    bytes: Count = Field(default=0, description="Bytes of the stream that the last run holds.")
    size: ShortText = Field(default="", description="These bytes, for a table.")
    events: Count | None = Field(default=None, description="Events in these bytes.")
    last_runs: Annotated[
        tuple[RunStatus, ...],
        Field(max_length=MOST_RUNS),
        BeforeValidator(partial(head, MOST_RUNS)),
    ] = Field(default=(), description=f"The last {MOST_RUNS} runs, the newest first.")
    time: Time | None = Field(default=None, description="When this was read.")


class DrillStatus(StatusModel):
    """The restore drill that goes on, or the last one, and when the next one is due."""

    scheduled_time: Time | None = Field(
        default=None,
        description="When the drill was due, by spec.verify.schedule. Absent if it was requested.",
    )
    last_handled_requested_at: Token | None = Field(
        default=None,
        description="The value of the annotation sluice.dev/drillRequestedAt for which a drill "
        "began last.",
    )
    run: Count | None = Field(default=None, description="The number of the run it restores.")
    copy_ref: ObjectRef | None = Field(
        default=None, description="The StreamCopy that restores the run, while it exists."
    )
    store: Name = Field(default="", description="The StreamStore of the scratch stream.")
    scope: Name = Field(default="", description="The scope of the scratch stream.")
    scratch: bool = Field(
        default=False, description="Whether the scratch stream may exist. It is deleted at the end."
    )
    start_time: Time | None = Field(default=None, description="When the drill began.")
    completion_time: Time | None = Field(default=None, description="When its result was known.")
    result: ShortText | None = Field(
        default=None,
        description="Passed; Failed if the run cannot be restored as it was recorded; NotRun if "
        "that is unknown. Absent while the drill goes on.",
    )
    message: Text | None = Field(
        default=None, description="What the drill does, waits for, or has found."
    )
    bytes: Count | None = Field(default=None, description="Bytes that it restored and compared.")
    events: Count | None = Field(default=None, description="Events in these bytes.")
    last_success_time: Time | None = Field(
        default=None, description="When the last drill that passed ended."
    )
    last_success_run: Count | None = Field(default=None, description="The run that it restored.")
    next_time: Time | None = Field(default=None, description="When the next drill is due.")
    since: Time | None = Field(
        default=None, description="When spec.verify was first seen. Drills count from then on."
    )


class StreamArchiveStatus(CopyingStatus):
    """The state of the archive, and when the next run is due."""

    model_config = ConfigDict(
        json_schema_extra=following(
            jobRef=("runKey", "run", "scheduledTime", "startCut", "endCut"),
            progress=("archive", "lastRunTime", "lastSuccessTime", "nextRunTime", "drill"),
            completionTime=("gaps",),
        )
    )

    run_key: ShortText | None = Field(
        default=None,
        description="Identifies the run that goes on, or the last one, by what asked for it.",
    )
    run: Count | None = Field(
        default=None, description="The number of that run in the archive, once it is planned."
    )
    scheduled_time: Time | None = Field(
        default=None, description="When that run was due, by the schedule."
    )
    start_cut: Text | None = Field(
        default=None, description="Where that run begins in the source: `segment=offset,...`."
    )
    end_cut: Text | None = Field(
        default=None, description="Where that run ends in the source: `segment=offset,...`."
    )
    archive: ArchiveSummary | None = Field(default=None, description="What the archive holds.")
    last_run_time: Time | None = Field(
        default=None, description="When the last run ended, recorded or failed."
    )
    last_success_time: Time | None = Field(
        default=None,
        description="When the last run that is recorded ended. A run that fails does not change "
        "it: the age of the last good backup counts from here.",
    )
    next_run_time: Time | None = Field(
        default=None, description="When the next run is due, by the schedule."
    )
    drill: DrillStatus | None = Field(
        default=None, description="The last restore drill. Only with spec.verify."
    )
    gaps: Gaps | None = Field(
        default=None,
        description="Bytes that the source had lost before that run read them, the first 100 gaps. "
        "Only with onTruncation: Record.",
    )
