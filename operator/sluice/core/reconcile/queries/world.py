"""A StreamQuery and its surroundings as values, and the operator's decision about it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from sluice.core.reconcile.shared.store_seen import StoreSeen

if TYPE_CHECKING:
    from datetime import datetime

    from sluice.api.kinds.streamquery import StreamQuerySpec
    from sluice.api.status.query_status import StreamQueryStatus
    from sluice.core.query.ledger import QueryReading
    from sluice.core.reconcile.shared.conditions import Saying
    from sluice.core.reconcile.shared.jobs import JobSeen
    from sluice.core.values.trouble import Trouble


@dataclass(frozen=True, slots=True, kw_only=True)
class QuerySeen:
    """A StreamQuery.

    Attributes:
        name, namespace, uid, generation: of the resource.
        query_id: its identity.
        spec: what the user wants.
        status: what the operator has written.
        url: the address of its page, or its path; None if there is no gateway.
        requested_at: the annotation sluice.dev/requestedAt.
        verify_requested_at: the annotation sluice.dev/verifyRequestedAt.
        verify_due: the time of a verification that is due by the schedule and has not begun.
        verify_later: the time of the next one after now.
        verify_trouble: why the schedule has no such times.
        finalizer: whether it has the finalizer.
        deleted: seconds since it was deleted; None if it was not.
        force_orphan: whether it is to go whatever still runs for it.
    """

    name: str
    namespace: str
    uid: str
    generation: int
    query_id: str
    spec: StreamQuerySpec
    status: StreamQueryStatus
    url: str | None = None
    requested_at: str | None = None
    verify_requested_at: str | None = None
    verify_due: datetime | None = None
    verify_later: datetime | None = None
    verify_trouble: Trouble | None = None
    finalizer: bool = False
    deleted: float | None = None
    force_orphan: bool = False

    @property
    def once(self) -> bool:
        """Whether the query ends by itself."""
        return self.spec.mode == "Once"

    @property
    def changed(self) -> bool:
        """Whether the spec was changed since the operator last looked."""
        return self.generation != self.status.observed_generation

    @property
    def asked(self) -> bool:
        """Whether another attempt is requested, and the request was not handled yet."""
        return self.requested_at not in {None, self.status.last_handled_requested_at}

    @property
    def verify_asked(self) -> bool:
        """Whether a verification is requested that has not begun."""
        known = self.status.verification
        handled = None if known is None else known.last_handled_requested_at
        return self.spec.verify is not None and self.verify_requested_at not in {None, handled}

    @property
    def settled(self) -> bool:
        """Whether it is done, or has failed for good, without a change or a request since."""
        return self.status.completion_time is not None and not (self.changed or self.asked)


@dataclass(frozen=True, slots=True, kw_only=True)
class QueryWorld:
    """The surroundings of a StreamQuery.

    Attributes:
        now: the time of the look.
        stores: the StreamStores, one for each of `spec.places`; None if there is no such
            StreamStore, a Trouble if the query may not use it.
        hindrance: why no driver can be made: profile, image or claim; None if one can. While a
            driver runs, the claim is not looked at.
        jobs: the attempts whose Jobs still exist, the latest last.
        verifiers: the Jobs of verifications that still exist.
        pods: pods of the query that are not gone; 0 while its driver runs or starts.
        reading: how far the query is; None if the stores were not asked.
        trouble: why they could not be asked.
    """

    now: datetime
    stores: tuple[StoreSeen | Trouble | None, ...]
    hindrance: Trouble | None = None
    jobs: tuple[JobSeen, ...] = ()
    verifiers: tuple[JobSeen, ...] = ()
    pods: int = 0
    reading: QueryReading | None = None
    trouble: Trouble | None = None

    @property
    def ready(self) -> bool:
        """Whether all stores are ready."""
        return all(isinstance(store, StoreSeen) and store.ready for store in self.stores)

    @property
    def job(self) -> JobSeen | None:
        """The latest attempt's Job."""
        return self.jobs[-1] if self.jobs else None


@dataclass(frozen=True, slots=True)
class ProtectQuery:
    """Set the finalizers on the query and on its StreamStores."""


@dataclass(frozen=True, slots=True)
class UnprotectQuery:
    """Remove the query's finalizer."""


@dataclass(frozen=True, slots=True)
class StartDriver:
    """Make the Job of an attempt, and the ConfigMap that it reads."""

    attempt: int


@dataclass(frozen=True, slots=True)
class StopDriver:
    """Delete a Job and its pods."""

    job: str


@dataclass(frozen=True, slots=True)
class DropLive:
    """Delete the streams of live sinks, and the ledger that lies beside such a one."""


@dataclass(frozen=True, slots=True)
class StartVerifier:
    """Make the Job of a verification, and the ConfigMap that it reads."""

    number: int


@dataclass(frozen=True, slots=True)
class StopVerifier:
    """Delete the Job of a verification and its pods."""

    job: str


@dataclass(frozen=True, slots=True)
class TellVerification:
    """Write an event with the result of a verification."""

    saying: Saying


QueryAction = (
    ProtectQuery
    | UnprotectQuery
    | StartDriver
    | StopDriver
    | DropLive
    | StartVerifier
    | StopVerifier
    | TellVerification
)


@dataclass(frozen=True, slots=True, kw_only=True)
class QueryDecision:
    """Decision about a StreamQuery.

    Attributes:
        status: the status to write before the actions.
        actions: what to do, in this order. Each may be done twice.
        again: seconds until the next look in any case; None to wait for an event.
    """

    status: StreamQueryStatus
    actions: tuple[QueryAction, ...] = ()
    again: float | None = None
