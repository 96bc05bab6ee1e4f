"""Decide what to do next about a StreamQuery.

A query has one driver at a time, the Job of its latest attempt. What the driver has done is in the
ledger beside the first sink. So the status is a report; only attempts, failures in a row and the
time of the next attempt are remembered by it.
"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Final

from sluice.core.reconcile.queries.status import QueryStatus
from sluice.core.reconcile.queries.world import (
    Protect,
    QueryDecision,
    StartDriver,
    StopDriver,
    Unprotect,
)
from sluice.core.reconcile.shared.conditions import Saying
from sluice.core.reconcile.shared.jobs import JobPhase
from sluice.core.values.trouble import Trouble
from sluice.errors import AccessDenied, DriverLost, StoreNotFound, StoreNotReady

if TYPE_CHECKING:
    from sluice.core.reconcile.queries.world import QueryAction, QuerySeen, QueryWorld
    from sluice.core.reconcile.shared.jobs import JobSeen
    from sluice.core.reconcile.shared.store_seen import StoreSeen

POLL_SECONDS: Final = 1.0
"""Seconds between two looks at pods that start or have to end."""

LOOK_SECONDS: Final = 10.0
"""Seconds between two looks at a query that runs."""

WAIT_SECONDS: Final = 30.0
"""Seconds between two looks at a query that waits for its StreamStore, which wakes it then."""

_HOPELESS: Final = frozenset({"InvalidSpec", "LoginNotShared"})
"""Reasons that waiting does not mend."""

_WITHDRAWN: Final = frozenset({"AccessDenied", "StoreNotShared", "LoginNotShared", "InvalidSpec"})
"""Reasons for which a running driver is stopped: it may not use a store any more."""


def asks_stores(query: QuerySeen, world: QueryWorld) -> bool:
    """Tell whether the stores are to be asked how far the query is."""
    return query.deleted is None and world.ready and not query.settled


def reconcile_query(query: QuerySeen, world: QueryWorld) -> QueryDecision:
    """Decide what to do now."""
    status = QueryStatus(query, world.now)
    if query.deleted is not None:
        return _deleted(query, world, status)
    if world.reading is not None:
        status.measured(world.reading)
    late = tuple(
        StopDriver(job.name)
        for job in world.jobs
        if job is not world.job and job.active and not job.deleting
    )
    decision = _decide(query, world, status)
    return replace(decision, actions=(*late, *decision.actions))


def after_query_failure(query: QuerySeen, world: QueryWorld, trouble: Trouble) -> QueryDecision:
    """Decide what to do after an action that failed."""
    status = QueryStatus(query, world.now)
    if query.deleted is not None:
        said = Saying(trouble.reason, f"The query cannot be deleted yet: {trouble}")
        return QueryDecision(status=status.working(said), again=WAIT_SECONDS)
    failed, verdict = status.fail(trouble, attempt=None)
    return QueryDecision(status=failed, again=verdict.wait or WAIT_SECONDS)


def _deleted(query: QuerySeen, world: QueryWorld, status: QueryStatus) -> QueryDecision:
    """Stop the driver, then let the resource go. Results, ledger and checkpoint stay."""
    if not query.finalizer:
        return QueryDecision(status=status.unchanged())
    stops = tuple(StopDriver(job.name) for job in world.jobs if not job.deleting)
    if query.force_orphan:
        return QueryDecision(status=status.unchanged(), actions=(*stops, Unprotect()))
    said = status.working(Saying("Deleting", "The driver is being stopped. The results stay."))
    if world.jobs or world.pods:
        return QueryDecision(status=said, actions=stops, again=POLL_SECONDS)
    return QueryDecision(status=said, actions=(Unprotect(),))


def _decide(query: QuerySeen, world: QueryWorld, status: QueryStatus) -> QueryDecision:
    job = world.job
    if job is not None and job.deleting:
        said = Saying("Stopping", "The driver is being stopped.")
        return QueryDecision(status=status.working(said), again=POLL_SECONDS)
    running = job if job is not None and job.active else None
    if query.spec.suspend:
        return _suspended(world, status, running)
    trouble = stores_trouble(query, world) or _withdrawn(world)
    if trouble is not None:
        return _blocked(status, trouble, running)
    status.admitted()
    if running is not None:
        return _running(query, world, status, running)
    if job is not None and job.attempt == query.status.attempts and _is_news(query, job):
        return _ended(query, status, job)
    return _begin(query, world, status)


def _suspended(world: QueryWorld, status: QueryStatus, running: JobSeen | None) -> QueryDecision:
    stops: tuple[QueryAction, ...] = () if running is None else (StopDriver(running.name),)
    if running is None and world.pods == 0:
        return QueryDecision(status=status.suspended())
    said = Saying("Stopping", "spec.suspend is true: the driver is being stopped.")
    return QueryDecision(status=status.working(said), actions=stops, again=POLL_SECONDS)


def _blocked(status: QueryStatus, trouble: Trouble, running: JobSeen | None) -> QueryDecision:
    """Wait for a StreamStore. A driver that may still use it is patient by itself."""
    said = Saying(trouble.reason, str(trouble))
    stops: tuple[QueryAction, ...] = ()
    if running is not None and trouble.reason in _WITHDRAWN:
        stops = (StopDriver(running.name),)
    stalled = trouble.reason in _HOPELESS
    wanted = status.stalled(said) if stalled else status.working(said)
    return QueryDecision(status=wanted, actions=stops, again=WAIT_SECONDS)


def _running(
    query: QuerySeen, world: QueryWorld, status: QueryStatus, job: JobSeen
) -> QueryDecision:
    guard: tuple[QueryAction, ...] = () if query.finalizer else (Protect(),)
    if job.outdated:
        said = Saying("Restarting", "The spec was changed: the query goes on with the new one.")
        return QueryDecision(
            status=status.working(said), actions=(StopDriver(job.name),), again=POLL_SECONDS
        )
    if job.phase is JobPhase.PENDING:
        said = Saying("Starting", "The driver starts.")
        if job.trouble is not None:
            said = Saying(job.trouble.reason, str(job.trouble))
        elif job.words:
            said = Saying("Starting", f"The driver starts: {job.words}")
        waited = (world.now - job.started).total_seconds()
        again = min(max(POLL_SECONDS, waited / 10), WAIT_SECONDS)
        return QueryDecision(status=status.working(said), actions=guard, again=again)
    if world.trouble is not None:
        said = Saying(world.trouble.reason, str(world.trouble))
        return QueryDecision(status=status.working(said), actions=guard, again=LOOK_SECONDS)
    if not _goes_on(query, world):
        said = Saying("Starting", "The driver runs, and has written no batch yet.")
        return QueryDecision(status=status.working(said), actions=guard, again=POLL_SECONDS)
    return QueryDecision(status=status.running(), actions=guard, again=LOOK_SECONDS)


def _goes_on(query: QuerySeen, world: QueryWorld) -> bool:
    """Tell whether the ledger has an attempt of this Job, and a batch of its version is whole.

    A driver that is refused takes no attempt in the ledger.
    """
    state = None if world.reading is None else world.reading.state
    began = state is not None and state.attempt > query.status.ledger_attempt
    return began and state is not None and state.last is not None


def _is_news(query: QuerySeen, job: JobSeen) -> bool:
    """Tell whether the end of an attempt is not in the status yet."""
    if query.changed or query.asked or job.outdated:
        return False
    failure = query.status.last_failure
    told = failure is not None and failure.attempt == job.attempt
    return not told


def _ended(query: QuerySeen, status: QueryStatus, job: JobSeen) -> QueryDecision:
    """Report the end of an attempt."""
    if job.phase is JobPhase.SUCCEEDED and query.once:
        return QueryDecision(status=status.done(), actions=(Unprotect(),) * query.finalizer)
    trouble = job.trouble or Trouble.of(DriverLost("the driver ended without a word"))
    said, verdict = status.fail(trouble, attempt=job.attempt)
    return QueryDecision(status=said, again=verdict.wait)


def _begin(query: QuerySeen, world: QueryWorld, status: QueryStatus) -> QueryDecision:
    """Begin an attempt, unless there is a reason to wait."""
    if query.settled:
        return QueryDecision(status=status.unchanged())
    at = query.status.retry_time
    if at is not None and world.now < at and not (query.changed or query.asked):
        again = max(0.05, (at - world.now).total_seconds())
        return QueryDecision(status=status.unchanged(), again=again)
    if world.hindrance is not None:
        said = Saying(world.hindrance.reason, str(world.hindrance))
        return QueryDecision(status=status.stalled(said), again=WAIT_SECONDS)
    if world.pods:
        said = Saying("Stopping", "The driver is being stopped.")
        return QueryDecision(status=status.working(said), again=POLL_SECONDS)
    attempt = query.status.attempts + 1
    status.begins(attempt, world.reading)
    said = Saying("Starting", "The driver starts.")
    return QueryDecision(
        status=status.working(said),
        actions=(Protect(), StartDriver(attempt)),
        again=POLL_SECONDS,
    )


def stores_trouble(query: QuerySeen, world: QueryWorld) -> Trouble | None:
    """Tell why a store cannot be used; None if all can."""
    for (path, place), store in zip(query.spec.places, world.stores, strict=True):
        field = f"{path}.{place.store_field}"
        found = _store_trouble(field, place.store, store, begun=query.finalizer)
        if found is not None:
            return found
    return None


def _store_trouble(
    field: str, name: str, store: StoreSeen | Trouble | None, *, begun: bool
) -> Trouble | None:
    if store is None:
        return Trouble.of(StoreNotFound(f"there is no StreamStore {name!r}", field=field))
    if isinstance(store, Trouble):
        return store
    if store.deleting and not begun:
        return Trouble.of(StoreNotReady(f"StreamStore {name!r} is being deleted", field=field))
    if store.denied is not None:
        why, remedy = store.denied.message, store.denied.remedy
        return Trouble.of(AccessDenied(f"StreamStore {name!r}: {why}", field=field, remedy=remedy))
    if not store.ready:
        return Trouble.of(StoreNotReady(f"StreamStore {name!r}: {store.why}", field=field))
    return None


def _withdrawn(world: QueryWorld) -> Trouble | None:
    """Return why a store may not be used any more, if that came out when it was asked."""
    trouble = world.trouble
    return trouble if trouble is not None and trouble.reason in _WITHDRAWN else None
