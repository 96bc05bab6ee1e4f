"""Tell what the end of a verification says about a query's results."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Final

from sluice.api.status.common import ConditionType
from sluice.core.reconcile.shared.conditions import Saying
from sluice.core.values.text import counted
from sluice.core.values.trouble import Trouble
from sluice.errors import DriverLost

if TYPE_CHECKING:
    from datetime import datetime

    from sluice.api.status.query_status import QueryVerificationStatus, StreamQueryStatus
    from sluice.core.query.recount import Recount
    from sluice.core.reconcile.queries.world import QueryAction
    from sluice.core.reconcile.shared.conditions import Tri
    from sluice.core.reconcile.shared.jobs import JobSeen

LONGEST_WAIT: Final = 3600.0
"""The most seconds until the next look, since clocks are set."""

EQUAL, DIFFERENT, INCONCLUSIVE, NOT_RUN = "Equal", "Different", "Inconclusive", "NotRun"

_ROWS_OF_AN_EVENT: Final = 200
"""Rows that may differ for one late event: two for each window that it is in. More differ for
another reason."""


@dataclass(frozen=True, slots=True, kw_only=True)
class VerificationStep:
    """What a verification needs now.

    Attributes:
        known: its status.
        actions: in this order.
        again: seconds until the next look in any case.
        verdict: the condition Verified, if it changes.
    """

    known: QueryVerificationStatus
    actions: tuple[QueryAction, ...] = ()
    again: float | None = None
    verdict: tuple[Tri, Saying] | None = None


def seconds_until(time: datetime | None, now: datetime) -> float | None:
    """Return the seconds until the next verification is due; None if none is."""
    if time is None:
        return None
    return min(max(0.05, (time - now).total_seconds()), LONGEST_WAIT)


def ended(known: QueryVerificationStatus, job: JobSeen, now: datetime) -> VerificationStep:
    """Write the end of a Job."""
    found = job.recount
    if found is None:
        lost = DriverLost("the Job ended without a result", remedy="Its pod's log may say why.")
        trouble = job.trouble or Trouble.of(lost)
        return not_run(known, now, str(trouble))
    kept = known.model_copy(
        update={
            "version": found.version,
            "batch": found.batch,
            "rows": found.rows,
            "missing": found.missing,
            "extra": found.extra,
        }
    )
    sinks = found.sinks[0].sink if len(found.sinks) == 1 else f"{len(found.sinks)} sinks"
    rows = f"{counted(found.rows, 'row')} of {sinks}, up to batch {found.batch}"
    if found.equal:
        said = f"{rows}, are those that DuckDB computes."
        kept = kept.model_copy(update={"last_success_time": now})
        return _over(kept, now, EQUAL, ("True", Saying("ResultsMatch", said)))
    differs = f"{rows}, are not those that DuckDB computes: {_differences(found)}."
    if found.missing + found.extra <= found.late * _ROWS_OF_AN_EVENT:
        said = (
            f"{differs} {counted(found.late, 'event')} came late, and DuckDB counts them. So this "
            "says nothing about the results."
        )
        return _over(kept, now, INCONCLUSIVE, ("Unknown", Saying("ResultsInconclusive", said)))
    said = f"{differs} `sluice query verify` shows some of them."
    return _over(kept, now, DIFFERENT, ("False", Saying("ResultsDiffer", said)))


def _differences(found: Recount) -> str:
    return f"{found.missing:,} are missing, {found.extra:,} too many"


def not_run(
    known: QueryVerificationStatus,
    now: datetime,
    message: str,
    actions: tuple[QueryAction, ...] = (),
) -> VerificationStep:
    """End a verification that has compared nothing."""
    last = ""
    if known.last_success_time is not None:
        last = f" They last matched at {known.last_success_time:%Y-%m-%dT%H:%M:%SZ}."
    said = f"The results were not verified, which says nothing about them. {message}{last}"
    verdict: tuple[Tri, Saying] = ("Unknown", Saying("VerificationNotRun", said))
    return replace(_over(known, now, NOT_RUN, verdict, message), actions=actions)


def _over(
    known: QueryVerificationStatus,
    now: datetime,
    result: str,
    verdict: tuple[Tri, Saying],
    message: str | None = None,
) -> VerificationStep:
    end = {"result": result, "message": message or verdict[1].message, "completion_time": now}
    over = known.model_copy(update=end)
    return VerificationStep(known=over, again=seconds_until(over.next_time, now), verdict=verdict)


def outdated(
    status: StreamQueryStatus, known: QueryVerificationStatus
) -> tuple[Tri, Saying] | None:
    """Take back that results are right if another version runs than the one that was verified."""
    said, version = status.condition(ConditionType.VERIFIED), status.version
    if said is None or said.status != "True" or version is None:
        return None
    if known.version is None or known.version == version.number:
        return None
    words = (
        f"Version {version.number} was not verified yet. The results of version {known.version} "
        "are those that DuckDB computes."
    )
    return "Unknown", Saying("VerificationNotRun", words)
