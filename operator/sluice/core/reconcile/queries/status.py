"""Build the statuses of StreamQueries."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING, Any, Final

from sluice.api.status.common import ConditionType, Failure, ObjectRef
from sluice.api.status.query_status import (
    QueryLatencyStatus,
    QueryProgressStatus,
    QueryVersionStatus,
)
from sluice.core.reconcile.shared import conditions
from sluice.core.reconcile.shared.conditions import Saying
from sluice.core.reconcile.shared.jobs import job_name
from sluice.core.reconcile.shared.verdict import Verdict, judge
from sluice.core.values import text
from sluice.core.values.trouble import sentence

if TYPE_CHECKING:
    from collections.abc import Mapping

    from sluice.api.status.query_status import StreamQueryStatus
    from sluice.core.query.ledger import BatchRecord, QueryReading
    from sluice.core.reconcile.queries.world import QuerySeen
    from sluice.core.reconcile.shared.conditions import Tri
    from sluice.core.values.trouble import Trouble

DECIDED: Final = frozenset(
    {
        "InvalidSpec",
        "InvalidQuery",
        "QueryChanged",
        "ResultTooLarge",
        "StateTooLarge",
        "MalformedEvents",
        "SourceTruncated",
        "CheckpointLost",
        "CheckpointDiverged",
        "JournalDamaged",
    }
)
"""Reasons that end every attempt of the same spec in the same way. Only a person mends them, and
each attempt starts a JVM."""

PASSING: Final = frozenset({"QuerySuperseded"})
"""Reasons that may pass, though the driver that meets them has to end: another attempt has taken
the ledger, and may have ended since."""

_SHORT: Final = 95
"""Milliseconds from which on a time is told in seconds."""

_LATEST: Final = datetime(9999, 1, 1, tzinfo=UTC).timestamp() * 1000
"""The last time that a watermark may be, in milliseconds: a tenant's events decide about it."""


class QueryStatus:
    """Builder of the status to write.

    Args:
        query: the query, with its present status.
        now: the time for conditions and fields that change.
    """

    def __init__(self, query: QuerySeen, now: datetime) -> None:
        self._query = query
        self._now = now
        self._change: dict[str, Any] = {
            "observed_generation": query.generation,
            "query_id": query.query_id,
            "result": _result(query),
            "url": query.url,
            "last_handled_requested_at": (
                query.requested_at or query.status.last_handled_requested_at
            ),
        }
        if query.changed or query.asked:
            self._change |= {"failures": 0, "retry_time": None, "completion_time": None}

    def admitted(self) -> None:
        """Write that the operator uses StreamStores for the query."""
        self._change["admitted_time"] = self._query.status.admitted_time or self._now

    def begins(self, attempt: int, reading: QueryReading | None) -> None:
        """Write that an attempt begins. `reading` is that of before."""
        self._change |= {
            "attempts": attempt,
            "job_ref": ObjectRef(name=job_name(self._query.uid, attempt)),
            "job_generation": self._query.generation,
            "start_time": self._query.status.start_time or self._now,
            "retry_time": None,
            "completion_time": None,
        }
        if reading is not None:
            self._change["ledger_attempt"] = reading.state.attempt

    def still_asked(self) -> None:
        """Leave the annotation's request open: another attempt has yet to begin."""
        del self._change["last_handled_requested_at"]

    def of_generation(self) -> None:
        """Write that the Job is that of the present spec, whose change was none for it."""
        self._change["job_generation"] = self._query.generation

    def measured(self, reading: QueryReading) -> None:
        """Write what the ledger says. A new batch ends a row of failures."""
        state, before = reading.state, self._query.status
        version = state.version
        if version is None:
            return
        self._change["version"] = QueryVersionStatus(
            number=version.number, hash=version.plan.hash, columns=version.plan.compiled.columns
        )
        last, lag = state.last, reading.lag_bytes
        said = QueryProgressStatus(
            batch=None if last is None else last.batch,
            rows=state.rows,
            lag_bytes=lag,
            lag=None if lag is None else text.size(lag),
            watermark=None if last is None else _time(last.watermark),
            late_events=state.late,
            malformed_events=state.malformed,
            state_rows=0 if last is None else last.state_rows,
            state_bytes=0 if last is None else last.state_bytes,
            latency=_latency(last),
            latency_summary=_took(last),
            time=self._now,
        )
        was = before.progress
        moved = was is None or (was.batch, was.rows) != (said.batch, said.rows)
        if moved and last is not None:
            self._change["failures"] = 0
        if was is not None and was.model_copy(update={"time": None}) == said.model_copy(
            update={"time": None}
        ):
            said = was  # nothing new, so nothing is written
        self._change["progress"] = said

    def fail(self, trouble: Trouble, *, attempt: int | None) -> tuple[StreamQueryStatus, Verdict]:
        """Report a failure. Return the status, and what follows from the failure.

        Args:
            trouble: the failure.
            attempt: the attempt that failed; None if none could begin.
        """
        failures = self._failures + 1
        again = trouble.reason in PASSING
        judged = trouble.model_copy(update={"retryable": True}) if again else trouble
        verdict = judge(judged, failures=failures, limit=None)
        if attempt is not None and trouble.reason in DECIDED:
            verdict = Verdict(final=True, wait=None)
        wait = verdict.wait
        if attempt is not None:
            self._change["ended_attempt"] = attempt
        self._change |= {
            "failures": failures,
            "retry_time": None if wait is None else self._now + timedelta(seconds=wait),
            "last_failure": Failure(
                reason=trouble.reason,
                category=trouble.category.value,
                message=trouble.message,
                field=trouble.field,
                remedy=trouble.remedy,
                attempt=attempt,
                time=self._now,
            ),
        }
        said = Saying(trouble.reason, str(trouble))
        if wait is None:
            self._change["completion_time"] = self._now
        return (self.stalled if verdict.final else self.working)(said), verdict

    @property
    def _failures(self) -> int:
        return int(self._change.get("failures", self._query.status.failures))

    def done(self, attempt: int) -> StreamQueryStatus:
        """Report that a query with mode: Once is done by an attempt."""
        self._change |= {
            "ended_attempt": attempt,
            "completion_time": self._query.status.completion_time or self._now,
            "failures": 0,
            "last_failure": None,
        }
        said = Saying("Completed", f"All that the sources had is read. {self._so_far()}")
        return self._written(conditions.succeeded(said, verified=None))

    def running(self) -> StreamQueryStatus:
        """Report that the query runs, and has written a batch."""
        said = Saying("Running", f"The query runs. {self._so_far()}")
        if self._query.once:
            return self.working(said)
        return self._written(conditions.ready(said))

    def working(self, saying: Saying) -> StreamQueryStatus:
        """Report that the query starts, or waits."""
        return self._written(conditions.working(saying, bounded=self._query.once))

    def stalled(self, saying: Saying) -> StreamQueryStatus:
        """Report that the query waits for a person."""
        return self._written(conditions.stalled(saying, bounded=self._query.once))

    def suspended(self) -> StreamQueryStatus:
        """Report that the query is suspended, and nothing of it runs."""
        said = Saying("Suspended", f"No pod runs. {self._so_far()}")
        return self._written(conditions.suspended(said, bounded=self._query.once))

    def retrying(self) -> StreamQueryStatus:
        """Report again why the last attempt failed, while the next one is waited for."""
        failure = self._query.status.last_failure
        if failure is None:
            return self.unchanged()
        said = sentence(failure.message, field=failure.field, remedy=failure.remedy or "")
        return self.working(Saying(failure.reason, said))

    def unchanged(self) -> StreamQueryStatus:
        """Keep the conditions, for the present generation."""
        kept: dict[ConditionType, tuple[Tri, Saying]] = {
            kind: (found.status, Saying(found.reason, found.message))
            for kind in ConditionType
            if kind is not ConditionType.VERIFIED  # see _verified
            and (found := self._query.status.condition(kind)) is not None
        }
        return self._written(kept)

    def _so_far(self) -> str:
        version = self._change.get("version", self._query.status.version)
        progress = self._change.get("progress", self._query.status.progress)
        if version is None or progress is None or progress.batch is None:
            return "No batch was written yet."
        # The counts are in status.progress: a message that changes with each batch is no message.
        late = " Some events were late: see lateEvents." if progress.late_events else ""
        return f"Version {version.number} writes {version.columns}.{late}"

    def _written(self, wanted: Mapping[ConditionType, tuple[Tri, Saying]]) -> StreamQueryStatus:
        before = self._query.status
        said = conditions.merge(
            before.conditions,
            {**self._verified(), **wanted},
            generation=self._query.generation,
            now=self._now,
        )
        return before.model_copy(update={**self._change, "conditions": said})

    def _verified(self) -> dict[ConditionType, tuple[Tri, Saying]]:
        """Return what the last verification has found. It stays until the next one."""
        found = self._query.status.condition(ConditionType.VERIFIED)
        if found is None or self._query.spec.verify is None:
            return {}
        return {ConditionType.VERIFIED: (found.status, Saying(found.reason, found.message))}


def _result(query: QuerySeen) -> str:
    first, *others = (f"{place.store}: {place.title}" for _, place in query.spec.goals)
    return first + (f" and {len(others)} more" if others else "")


def _latency(last: BatchRecord | None) -> QueryLatencyStatus | None:
    if last is None or last.latency is None:
        return None
    half, most = last.latency
    return QueryLatencyStatus(p50_milliseconds=half, p99_milliseconds=most)


def _took(last: BatchRecord | None) -> str | None:
    """Return how long batches take, for a table: 0.7 s (p99 1.2 s), or 12 ms (p99 0.1 s)."""
    if last is None or last.latency is None:
        return None
    half, most = map(_passed, last.latency)
    return f"{half} (p99 {most})"


def _passed(millis: int) -> str:
    return f"{millis} ms" if millis < _SHORT else f"{millis / 1000:.1f} s"


def _time(millis: int | None) -> datetime | None:
    if millis is None or not 0 < millis < _LATEST:
        return None
    return datetime.fromtimestamp(millis / 1000, UTC)
