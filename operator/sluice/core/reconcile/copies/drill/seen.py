"""A restore drill as it was seen, and the facts that follow from that without a decision.

A drill is a StreamCopy that the StreamArchive owns. It restores a run to a scratch stream, and
compares what it has staged there with the archive before it publishes it, as every restore does.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from sluice.api.status.common import ConditionType, Failure
from sluice.core.values import schedule, text
from sluice.core.values.trouble import sentence

if TYPE_CHECKING:
    from datetime import datetime

    from sluice.api.fields.drills import VerifySpec
    from sluice.api.status.archive_status import DrillStatus
    from sluice.api.status.common import Condition
    from sluice.api.status.copy_status import StreamCopyStatus
    from sluice.core.reconcile.shared.store_seen import StoreSeen
    from sluice.core.values.trouble import Trouble

FIELD: Final = "spec.verify.schedule"


@dataclass(frozen=True, slots=True, kw_only=True)
class DrillCopy:
    """The StreamCopy of a drill.

    Attributes:
        status: its status.
        run: the run that it restores.
        store, scope: where it makes the scratch stream.
        current: whether the status is about its present spec.
        suspended: whether its spec suspends it.
        deleting: whether it is being deleted.
        active: whether a Job of it has not ended, or a pod is not gone.
    """

    status: StreamCopyStatus
    run: int
    store: str
    scope: str
    current: bool = True
    suspended: bool = False
    deleting: bool = False
    active: bool = False

    @property
    def done(self) -> bool:
        """Whether the run is restored, compared and published."""
        return all(self._is(kind) for kind in (ConditionType.SUCCEEDED, ConditionType.VERIFIED))

    @property
    def failure(self) -> Failure | None:
        """Why it cannot go on; None if it can.

        A copy that a store does not admit is stalled without a failed attempt.
        """
        if not self._is(ConditionType.STALLED):
            return None
        if self.status.last_failure is not None:
            return self.status.last_failure
        said = self.status.condition(ConditionType.READY)
        said = said or self.status.condition(ConditionType.STALLED)
        return None if said is None else _stalled(said)

    @property
    def quiet(self) -> bool:
        """Whether no driver of it is at work, and none begins until the operator asks for it.

        A store that is away must not decide on that: it withholds conditions for as long as it
        likes, and the archive's runs would wait for it. A copy that is stalled without a failed
        attempt goes on by itself.
        """
        failed = self._is(ConditionType.STALLED) and self.status.last_failure is not None
        ends = self.suspended or self.deleting or self.done or failed
        return not self.active and self.current and ends

    @property
    def words(self) -> str:
        """Its state, in a sentence."""
        said = self.status.condition(ConditionType.READY)
        return "It has not begun." if said is None else said.message

    def _is(self, kind: ConditionType) -> bool:
        said = self.status.condition(kind)
        return said is not None and said.status == "True"


@dataclass(frozen=True, slots=True, kw_only=True)
class DrillSeen:
    """The surroundings of a drill.

    Attributes:
        place: the store of the scratch stream that may exist, or else that for the next one; None
            if there is no such StreamStore, a Trouble if the drill may not use it.
        copy: the StreamCopy of the drill; None if there is none.
        taken: whether another resource has the name of that StreamCopy.
        scratch: whether the scratch stream exists; None if that was not asked, or is unknown.
        trouble: why it is unknown.
    """

    place: StoreSeen | Trouble | None
    copy: DrillCopy | None = None
    taken: bool = False
    scratch: bool | None = None
    trouble: Trouble | None = None


def _stalled(said: Condition) -> Failure:
    return Failure(reason=said.reason, category="Spec", message=said.message)


def copy_name(name: str, uid: str) -> str:
    """Return the name of the StreamCopy of a StreamArchive's drills: it has one at a time."""
    return f"{name[:40].rstrip('-.')}-drill-{text.short_hash(uid)}"


def times(
    verify: VerifySpec | None, drill: DrillStatus | None, *, now: datetime
) -> tuple[datetime | None, datetime | None]:
    """Give the time of a drill that is due and has not begun, and of the next one after now.

    Raises:
        InvalidSpec: the schedule has no such time.
    """
    if verify is None:
        return None, None
    known = None if drill is None else drill.next_time
    return schedule.announced(verify.schedule, known, now=now, field=FIELD)


def told(failure: Failure) -> str:
    """Return a failure as a sentence, with the field and the remedy."""
    return sentence(failure.message, field=failure.field, remedy=failure.remedy or "")
