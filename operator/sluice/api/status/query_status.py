"""Define the status of a StreamQuery."""

from __future__ import annotations

from pydantic import Field

from sluice.api.status.common import (
    Count,
    Failure,
    LongText,
    Number,
    ObjectRef,
    ResourceStatus,
    ShortText,
    StatusModel,
    Text,
    Time,
    Token,
)


class QueryVersionStatus(StatusModel):
    """The version of the query that its ledger says runs."""

    number: Count = Field(description="Its number, from 1. A change of the query makes a new one.")
    hash: ShortText = Field(description="The SHA-256 of its plan.")
    columns: LongText = Field(default="", description="The columns of the result, in SQL.")


class QueryLatencyStatus(StatusModel):
    """How long batches take, from the beginning of one until the next one can begin."""

    p50_milliseconds: Count = Field(default=0, description="Half of the last hundred took no more.")
    p99_milliseconds: Count = Field(default=0, description="99 of 100 took no more.")


class QueryProgressStatus(StatusModel):
    """How far a query is, as the operator reads it from the stores."""

    batch: Count | None = Field(
        default=None, description="The last batch of the version whose rows are in all sinks."
    )
    rows: Count = Field(default=0, description="The rows that all versions have written.")
    lag_bytes: Count | None = Field(
        default=None, description="Bytes in the sources behind that batch."
    )
    lag: ShortText | None = Field(default=None, description="The same, for a table.")
    watermark: Time | None = Field(
        default=None,
        description="Windows that end before this time are closed. Events before it are late.",
    )
    late_events: Count = Field(
        default=0,
        description="Events that came later than eventTime.latenessSeconds allows, in all "
        "versions. Those of closed windows are left out.",
    )
    malformed_events: Count = Field(
        default=0,
        description="Events that did not fit format and schema, in all versions, and were left out "
        "(malformed: Drop).",
    )
    state_rows: Count = Field(
        default=0,
        description="Rows that the engine keeps between batches: of windows that are not closed, "
        "and of joins.",
    )
    state_bytes: Count = Field(default=0, description="Their bytes in memory.")
    latency: QueryLatencyStatus | None = Field(
        default=None, description="How long batches take. Absent before the second one."
    )
    latency_summary: ShortText | None = Field(default=None, description="The same, for a table.")
    time: Time | None = Field(default=None, description="When this was read.")


class QueryVerificationStatus(StatusModel):
    """The verification of a query's results that goes on, or the last one."""

    number: Number = Field(default=0, description="How many verifications have begun.")
    scheduled_time: Time | None = Field(
        default=None,
        description="When it was due, by spec.verify.schedule. Absent if it was due for another "
        "reason.",
    )
    last_handled_requested_at: Token | None = Field(
        default=None,
        description="The value of the annotation sluice.dev/verifyRequestedAt for which a "
        "verification began last.",
    )
    job_ref: ObjectRef | None = Field(default=None, description="The Job that carries it out.")
    start_time: Time | None = Field(default=None, description="When it began.")
    completion_time: Time | None = Field(default=None, description="When its result was known.")
    result: ShortText | None = Field(
        default=None,
        description="Equal; Different; Inconclusive if the query has left out late events, which "
        "the other engine counts; NotRun if nothing was compared. Absent while it goes on.",
    )
    message: Text | None = Field(default=None, description="What it does, waits for, or has found.")
    version: Count | None = Field(default=None, description="The version that was verified.")
    batch: Count | None = Field(default=None, description="The last batch that was compared.")
    rows: Count | None = Field(
        default=None, description="The rows that all sinks have of the version, up to that batch."
    )
    missing: Count | None = Field(
        default=None, description="Rows that were computed, and that sinks lack."
    )
    extra: Count | None = Field(
        default=None, description="Rows that sinks have, and that were not computed."
    )
    last_success_time: Time | None = Field(
        default=None, description="When results were last found to be equal."
    )
    next_time: Time | None = Field(default=None, description="When the next one is due.")
    schedule_error: Text | None = Field(
        default=None, description="Why none is ever due by spec.verify.schedule."
    )

    @property
    def under_way(self) -> bool:
        """Whether it has begun, and its end is not known."""
        return self.start_time is not None and self.completion_time is None


class StreamQueryStatus(ResourceStatus):
    """Which version of the query runs, and how far it is."""

    query_id: ShortText | None = Field(
        default=None,
        alias="queryID",
        description="The identity of the query. It names its ledger and its checkpoint.",
    )
    admitted_time: Time | None = Field(
        default=None, description="When the operator first used StreamStores for this resource."
    )
    result: Text | None = Field(
        default=None,
        description="The first stream that takes the results, for a table, and how many follow.",
    )
    url: Text | None = Field(
        default=None,
        description="The address of the query's page, or its path at the gateway. Absent if the "
        "administrator offers no gateway.",
    )
    version: QueryVersionStatus | None = Field(
        default=None, description="The version that runs, or ran last."
    )
    progress: QueryProgressStatus | None = Field(default=None, description="How far the query is.")
    verification: QueryVerificationStatus | None = Field(
        default=None, description="The verification that goes on, or the last one."
    )
    job_ref: ObjectRef | None = Field(
        default=None, description="The Job of the attempt that runs, or ran last."
    )
    attempts: Number = Field(default=0, description="How many attempts have begun.")
    job_generation: Count = Field(
        default=0,
        description="The generation of the resource for which the last attempt's Job was made.",
    )
    ended_attempt: Number = Field(
        default=0, description="The last attempt whose end this status has taken in."
    )
    ledger_attempt: Count = Field(
        default=0,
        description="The attempt that the ledger had when the last one began. The query runs once "
        "it has a later one.",
    )
    failures: Number = Field(
        default=0, description="How many attempts have failed since a batch was last written."
    )
    retry_time: Time | None = Field(default=None, description="When the next attempt begins.")
    last_failure: Failure | None = Field(default=None, description="What went wrong the last time.")
    last_handled_requested_at: Token | None = Field(
        default=None,
        description="The value of the annotation sluice.dev/requestedAt that the operator acted on "
        "last.",
    )
    start_time: Time | None = Field(default=None, description="When the first attempt began.")
    completion_time: Time | None = Field(
        default=None, description="With mode: Once: when the query was done."
    )
