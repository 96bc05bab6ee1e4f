"""Decide what to do next about a StreamQuery.

A query has one driver at a time, the Job of its latest attempt. What the driver has done is in the
ledger beside the first sink. So the status is a report. It only remembers attempts: how many have
begun and ended, for which generation of the spec, failures in a row, and the time of the next one.
"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Final

from sluice.api.status.common import ConditionType
from sluice.core.reconcile.queries import verifying
from sluice.core.reconcile.queries.status import QueryStatus
from sluice.core.reconcile.queries.world import (
    DropLive,
    ProtectQuery,
    QueryDecision,
    StartDriver,
    StopDriver,
    UnprotectQuery,
)
from sluice.core.reconcile.shared.conditions import Saying
from sluice.core.reconcile.shared.jobs import JobPhase
from sluice.core.reconcile.shared.store_seen import store_trouble
from sluice.core.values.trouble import Trouble
from sluice.errors import AccessDenied, DriverLost

if TYPE_CHECKING:
    from sluice.api.status.query_status import StreamQueryStatus
    from sluice.core.reconcile.queries.world import QueryAction, QuerySeen, QueryWorld
    from sluice.core.reconcile.shared.jobs import JobSeen

POLL_SECONDS: Final = 1.0
"""Seconds between two looks at pods that start or have to end."""

LOOK_SECONDS: Final = 10.0
"""Seconds between two looks at a query that runs."""

WAIT_SECONDS: Final = 30.0
"""Seconds between two looks at a query that waits for its StreamStore, which wakes it then."""

_CANNOT: Final = "The query cannot be deleted yet: "

_HOPELESS: Final = frozenset({"InvalidSpec"})
"""Reasons that waiting does not mend."""

_MOST_AHEAD: Final = 1000
"""By how much the number of a Job may be above that of the status, which may be lost. Users may
have written a higher one."""

_WITHDRAWN: Final = frozenset({"AccessDenied", "InvalidSpec"})
"""Reasons for which a running driver is stopped: it may not use a store any more."""


def asks_stores(query: QuerySeen, world: QueryWorld) -> bool:
    """Tell whether the stores are to be asked how far the query is."""
    return query.deleted is None and world.ready and not query.settled


def reconcile_query(query: QuerySeen, world: QueryWorld) -> QueryDecision:
    """Decide what to do now, about the driver and about a verification of the results."""
    trouble = _stores_trouble(query, world) or _withdrawn(world)
    return verifying.beside(query, world, _about_driver(query, world), trouble)


def _about_driver(query: QuerySeen, world: QueryWorld) -> QueryDecision:
    status = QueryStatus(query, world.now)
    if query.deleted is not None:
        return _deleted(query, world, status)
    if world.reading is not None:
        status.measured(world.reading)
    job = latest_job(query, world)
    late = tuple(
        StopDriver(one.name)
        for one in world.jobs
        if one is not job and one.active and not one.deleting
    )
    if late and (job is None or not job.active):
        return QueryDecision(status=_stopping(status), actions=late, again=POLL_SECONDS)
    if query.settled and (job is None or not job.active):
        done = query.once and query.status.last_failure is None
        free = query.finalizer and done and not query.spec.live
        return QueryDecision(status=status.unchanged(), actions=(UnprotectQuery(),) * free)
    decision = _decide(query, world, status, job)
    return replace(decision, actions=(*late, *decision.actions))


def latest_job(query: QuerySeen, world: QueryWorld) -> JobSeen | None:
    """Return the Job of the latest attempt; None if there is none."""
    most = query.status.attempts + _MOST_AHEAD
    return next((one for one in reversed(world.jobs) if one.attempt <= most), None)


def after_query_failure(query: QuerySeen, world: QueryWorld, trouble: Trouble) -> QueryDecision:
    """Decide what to do after an action that failed."""
    status = QueryStatus(query, world.now)
    if query.deleted is not None:
        said = Saying(trouble.reason, f"{_CANNOT}{trouble}")
        return QueryDecision(status=status.working(said), again=WAIT_SECONDS)
    if query.settled and query.status.last_failure is None:  # only the finalizer is left
        return QueryDecision(status=status.unchanged(), again=WAIT_SECONDS)
    failed, verdict = status.fail(trouble, attempt=None)
    return QueryDecision(status=failed, again=verdict.wait or WAIT_SECONDS)


def _deleted(query: QuerySeen, world: QueryWorld, status: QueryStatus) -> QueryDecision:
    """Stop the driver, then let the resource go.

    Results, ledger and checkpoint stay, but for live sinks and what lies beside them.
    """
    if not query.finalizer:
        return QueryDecision(status=status.unchanged())
    stops = tuple(StopDriver(job.name) for job in world.jobs if not job.deleting)
    if query.force_orphan:
        return QueryDecision(status=status.unchanged(), actions=(*stops, UnprotectQuery()))
    said = status.working(Saying("Deleting", "The driver is being stopped. The results stay."))
    if world.jobs or world.pods:
        return QueryDecision(status=said, actions=stops, again=POLL_SECONDS)
    if not query.spec.live:
        return QueryDecision(status=said, actions=(UnprotectQuery(),))
    ready = query.status.condition(ConditionType.READY)
    if ready is not None and ready.message.startswith(_CANNOT):
        said = status.unchanged()  # until it can be deleted
    else:
        said = status.working(Saying("Deleting", "The streams of live sinks are being deleted."))
    return QueryDecision(status=said, actions=(DropLive(), UnprotectQuery()))


def _decide(
    query: QuerySeen, world: QueryWorld, status: QueryStatus, job: JobSeen | None
) -> QueryDecision:
    if job is not None and job.deleting:
        return QueryDecision(status=_stopping(status), again=POLL_SECONDS)
    running = job if job is not None and job.active else None
    if query.spec.suspend:
        return _suspended(world, status, running)
    trouble = _stores_trouble(query, world) or _withdrawn(world)
    if trouble is not None:
        return _blocked(query, status, trouble, running)
    status.admitted()
    if running is not None:
        return _running(query, world, status, running)
    if job is not None and _is_news(query, job):
        return _ended(query, status, job)
    return _begin(query, world, status, job)


def _stopping(status: QueryStatus) -> StreamQueryStatus:
    return status.working(Saying("Stopping", "The driver is being stopped."))


def _suspended(world: QueryWorld, status: QueryStatus, running: JobSeen | None) -> QueryDecision:
    stops: tuple[QueryAction, ...] = () if running is None else (StopDriver(running.name),)
    if running is None and world.pods == 0:
        return QueryDecision(status=status.suspended())
    said = Saying("Stopping", "spec.suspend is true: the driver is being stopped.")
    return QueryDecision(status=status.working(said), actions=stops, again=POLL_SECONDS)


def _blocked(
    query: QuerySeen, status: QueryStatus, trouble: Trouble, running: JobSeen | None
) -> QueryDecision:
    """Wait for a StreamStore. A driver that may still use it is patient by itself."""
    said = Saying(trouble.reason, str(trouble))
    stops: tuple[QueryAction, ...] = ()
    if query.asked and running is None:
        status.still_asked()  # the last attempt may have ended unseen
    if running is not None and (trouble.reason in _WITHDRAWN or _is_stale(query)):
        stops = (StopDriver(running.name),)
    stalled = trouble.reason in _HOPELESS
    wanted = status.stalled(said) if stalled else status.working(said)
    return QueryDecision(status=wanted, actions=stops, again=WAIT_SECONDS)


def _is_stale(query: QuerySeen) -> bool:
    """Tell whether the spec was changed since the Job of the last attempt was made."""
    return query.status.job_generation != query.generation


def _running(
    query: QuerySeen, world: QueryWorld, status: QueryStatus, job: JobSeen
) -> QueryDecision:
    guard: tuple[QueryAction, ...] = () if query.finalizer else (ProtectQuery(),)
    stop = (StopDriver(job.name),)
    if job.outdated:
        said = Saying("Restarting", "The spec was changed: the query goes on with the new one.")
        return QueryDecision(status=status.working(said), actions=stop, again=POLL_SECONDS)
    if _is_stale(query) and world.hindrance is not None:
        return replace(_hindered(world.hindrance, status), actions=stop)
    status.of_generation()
    waited = (world.now - job.started).total_seconds()
    again = min(max(POLL_SECONDS, waited / 10), LOOK_SECONDS)
    if job.phase is JobPhase.PENDING or job.waiting is not None or job.pod is None:
        said = Saying("Starting", "The driver starts.")
        if job.trouble is not None:
            said = Saying(job.trouble.reason, str(job.trouble))
        elif job.words:
            said = Saying("Starting", f"The driver starts: {job.words}")
        return QueryDecision(status=status.working(said), actions=guard, again=again)
    if world.trouble is not None:
        said = Saying(world.trouble.reason, str(world.trouble))
        return QueryDecision(status=status.working(said), actions=guard, again=LOOK_SECONDS)
    if not _goes_on(query, world):
        said = Saying("Starting", "The driver runs, and has written no batch yet.")
        return QueryDecision(status=status.working(said), actions=guard, again=again)
    return QueryDecision(status=status.running(), actions=guard, again=LOOK_SECONDS)


def _goes_on(query: QuerySeen, world: QueryWorld) -> bool:
    """Tell whether the present attempt has written a batch, or has nothing to read.

    A driver that is refused takes no attempt in the ledger. Kubernetes may have replaced the pod,
    and the new one has another attempt in the ledger.
    """
    reading = world.reading
    if reading is None or reading.state.attempt <= query.status.ledger_attempt:
        return False
    last = reading.state.last
    return last is not None and (last.attempt == reading.state.attempt or reading.lag_bytes == 0)


def _is_news(query: QuerySeen, job: JobSeen) -> bool:
    """Tell whether the end of the last attempt is not in the status yet, and still counts."""
    present = job.attempt == query.status.attempts and not _is_stale(query)
    return present and job.attempt > query.status.ended_attempt and not job.outdated


def _ended(query: QuerySeen, status: QueryStatus, job: JobSeen) -> QueryDecision:
    """Report the end of an attempt."""
    if query.asked:  # maybe after this end, which no look had seen
        status.still_asked()
    if job.phase is JobPhase.SUCCEEDED and query.once:
        free = query.finalizer and not (query.spec.live or query.asked)
        return QueryDecision(
            status=status.done(job.attempt),
            actions=(UnprotectQuery(),) * free,
            again=POLL_SECONDS if query.asked else None,
        )
    trouble = job.trouble or Trouble.of(DriverLost("the driver ended without a word"))
    failed, verdict = status.fail(trouble, attempt=job.attempt)
    return QueryDecision(status=failed, again=POLL_SECONDS if query.asked else verdict.wait)


def _hindered(trouble: Trouble, status: QueryStatus) -> QueryDecision:
    """Report why no driver can be made. It may be mended a moment later, as a claim."""
    said = Saying(trouble.reason, str(trouble))
    return QueryDecision(status=status.stalled(said), again=WAIT_SECONDS)


def _begin(
    query: QuerySeen, world: QueryWorld, status: QueryStatus, job: JobSeen | None
) -> QueryDecision:
    """Begin an attempt, unless there is a reason to wait."""
    at = query.status.retry_time
    if at is not None and world.now < at and not (query.changed or query.asked):
        again = max(0.05, (at - world.now).total_seconds())
        return QueryDecision(status=status.retrying(), again=again)
    if world.hindrance is not None:
        return _hindered(world.hindrance, status)
    if world.pods:
        return QueryDecision(status=_stopping(status), again=POLL_SECONDS)
    attempt = max(query.status.attempts, 0 if job is None else job.attempt) + 1
    status.begins(attempt, world.reading)
    said = Saying("Starting", "The driver starts.")
    return QueryDecision(
        status=status.working(said),
        actions=(ProtectQuery(), StartDriver(attempt)),
        again=POLL_SECONDS,
    )


def _stores_trouble(query: QuerySeen, world: QueryWorld) -> Trouble | None:
    """Tell why a store cannot be used; None if all can."""
    for (path, place), store in zip(query.spec.places, world.stores, strict=True):
        field = f"{path}.{place.store_field}"
        found = store_trouble(field, place.store, store, begun=query.finalizer)
        if found is not None:
            return found
    return None


def _withdrawn(world: QueryWorld) -> Trouble | None:
    """Return why a store may not be used any more, if that came out when it was asked."""
    trouble = world.trouble
    denied = trouble is not None and trouble.reason == AccessDenied.__name__
    return trouble if denied else None
