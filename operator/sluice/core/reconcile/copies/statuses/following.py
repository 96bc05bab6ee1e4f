"""Build the part of a status that tells how a copy follows its source, for all kinds of copies."""

from __future__ import annotations

from datetime import timedelta
from math import ceil, log2
from typing import TYPE_CHECKING, Any, ClassVar, Final

from sluice.api.kinds.streamarchive import StreamArchiveSpec
from sluice.api.status.common import ConditionType
from sluice.api.status.copy_status import StreamCopyStatus
from sluice.api.status.follow_status import CutoverState, FollowStatus
from sluice.api.status.scope_status import ScopeCopyStatus
from sluice.core.follow.lag import RESOLUTION, WORST
from sluice.core.reconcile.copies.statuses import table
from sluice.core.reconcile.copies.statuses.base import CopyStatus
from sluice.core.reconcile.shared import conditions
from sluice.core.reconcile.shared.conditions import Saying
from sluice.core.reconcile.shared.jobs import JobPhase
from sluice.core.values import text

if TYPE_CHECKING:
    from collections.abc import Mapping
    from datetime import datetime

    from sluice.api.kinds.scopecopy import ScopeCopySpec
    from sluice.api.kinds.streamcopy import StreamCopySpec
    from sluice.api.status.common import CopyingStatus
    from sluice.core.follow.lag import Followed
    from sluice.core.reconcile.copies.world import World
    from sluice.core.reconcile.shared.conditions import Tri
    from sluice.core.reconcile.shared.jobs import JobSeen
    from sluice.core.reconcile.shared.verdict import Verdict
    from sluice.core.values.trouble import Trouble

BUSY: Final = timedelta(seconds=60)
"""Time after which a measurement is written that says that bytes have moved."""

QUIET: Final = timedelta(minutes=5)
"""Time after which one is written that says nothing new."""

STANDS: Final = timedelta(seconds=60)
"""How long a target is far behind until a driver catches up: a follower may be fast enough."""

_STARTS: Final = "Its pod starts"

MINUTE: Final = 60.0

LONG: Final = timedelta(minutes=10)
"""How long an attempt follows until its failure is the first in a row."""


class FollowingStatus(CopyStatus):
    """Part of the builder of the next status of a copy that follows its source.

    There are measurements for months, so a status is written only if it says something new.

    Attributes:
        compared: the message of Verified, while the copy follows.
        sealed: the sentence that sources take no more events, before a blank.
        stays: the words behind the size of what stays while the copy is suspended.
        cutover: the model of `status.cutover`.
        at_rest: the fields of `status.follow` that change once the copy has ended.
    """

    YOUNG: ClassVar[timedelta] = timedelta(seconds=20)
    dropping: ClassVar[str] = (
        "What was staged is being dropped. If the copy has followed its source, the target stays "
        "as far as it has come."
    )
    compared: ClassVar[str] = (
        "All that was published, and what came until status.follow.provedTo, was read again and "
        "equals the source."
    )
    sealed: ClassVar[str] = "The source is sealed. "
    stays: ClassVar[str] = "The target has {} and stays as it is."
    cutover: ClassVar[type[CutoverState]] = CutoverState
    at_rest: ClassVar[Mapping[str, Any]] = {"lag": "", "lag_bytes": 0, "lag_seconds": 0}

    def ends(self, follow: Followed) -> bool:
        """Tell whether the end is asked for, or recorded."""
        return self._wanted.cutover != "None" or follow.stopped is not None

    def falls_behind(self, follow: Followed, world: World, job: JobSeen) -> bool:
        """Tell whether a driver is to catch up in place of a follower that is too slow.

        At a limited rate it would be no faster. Soon after another driver, the follower has more
        time. A scope counts if it is behind as a whole: meanwhile none of its streams is followed.
        """
        spec = self._wanted
        if not (job.follower and follow.live) or self.ends(follow):
            return False
        end = None if spec.stop_when is None else spec.stop_when.bytes
        if spec.limits.bytes_per_second is not None or (
            end is not None and end < follow.position + follow.lag_bytes
        ):
            return False
        lags = [(follow.lag_bytes, follow.lag.seconds)]
        if follow.streams is not None:
            items = () if world.plan is None else world.plan.plan.items
            planned = {item.name for item in items}
            worst = [one for one in follow.streams.worst if one.stream in planned]
            lags = [(one.bytes, one.seconds) for one in worst]
            lags += [(0, 0.0)] * (min(WORST, follow.streams.followed) - len(lags))
        before = [one for one in self._copy.status.history[-2:] if one.outcome]
        drove = any(one.outcome == "Failed" or one.reason == "CameLive" for one in before)
        patience = LONG if drove else STANDS
        return self._now - job.started >= patience and all(
            size > world.far and seconds >= STANDS.total_seconds() for size, seconds in lags
        )

    def followed(self, world: World, job: JobSeen) -> CopyingStatus:
        """Report how far the source is followed, if that is worth a write.

        Args:
            world: the surroundings, with a reading of a copy that is live.
            job: the Job of the attempt.
        """
        reading = world.reading
        follow = None if reading is None else reading.progress.follow
        assert reading is not None  # noqa: S101 - for the type checker
        assert follow is not None  # noqa: S101 - for the type checker
        before = self._before.follow
        now = self._measured(follow, job)
        status, said = self._state(follow, now, job)
        if world.seal is not None and follow.stopped is None:
            said = Saying(world.seal.reason, f"{world.seal} It follows meanwhile: {said.message}")
        parts = {"cutover": self._cut_over(follow), **self._beside()}
        old = self._copy.status.condition(ConditionType.READY)
        same = (
            before is not None
            and old is not None
            and (old.status, old.reason) == (status, said.reason)
            and all(getattr(self._before, name) == part for name, part in parts.items())
            and (_STARTS in old.message) == (job.phase is JobPhase.PENDING)
            and (job.follower or follow.catching is None)
            and not _worth(now, before, ends=self.ends(follow))
        )
        moved = before is not None and now.bytes > before.bytes
        if self.value.failures and (moved or self._now - job.started >= LONG):
            self._set(failures=0)
        if same:
            return self.unchanged()
        progress = table.progress(reading, self.value.progress, self._now)
        self._set(
            start_time=self.value.start_time or self._now,
            follow=now,
            progress=progress.model_copy(update={"summary": f"lag {text.size(follow.lag_bytes)}"}),
            **parts,
        )
        return self._say(self._conditions(status, said, now))

    @property
    def _wanted(self) -> StreamCopySpec | ScopeCopySpec:
        spec = self._copy.spec
        assert not isinstance(spec, StreamArchiveSpec)  # noqa: S101 - for the type checker
        return spec

    @property
    def _before(self) -> StreamCopyStatus | ScopeCopyStatus:
        found = self._copy.status
        if isinstance(found, StreamCopyStatus | ScopeCopyStatus):
            return found
        return StreamCopyStatus()

    def _beside(self) -> dict[str, Any]:
        """Give the fields that a measurement changes besides `follow`."""
        return {}

    def _measured(self, follow: Followed, job: JobSeen) -> FollowStatus:
        """Return a measurement, with what only earlier ones tell."""
        before = self._before.follow
        pod = None if before is None else before.pod
        restarts = 0 if before is None else before.restarts
        if job.follower and job.pod is not None:
            restarts += pod is not None and pod != job.pod
            pod = job.pod
        seconds = seconds_of(follow)
        proved = None if before is None else before.proved_to
        if follow.unproved.certain:
            proved = self._now - timedelta(seconds=follow.unproved.seconds)
        return FollowStatus(
            lag=lag_of(follow.lag_bytes, seconds),
            lag_bytes=follow.lag_bytes,
            lag_seconds=seconds,
            bytes=follow.position,
            proved_bytes=follow.proved,
            proved_to=proved,
            segments=follow.segments,
            ended=follow.ended,
            restarts=restarts,
            pod=pod,
            time=self._now,
        )

    def _state(self, follow: Followed, now: FollowStatus, job: JobSeen) -> tuple[Tri, Saying]:
        """Return the status of Ready, its reason and its message."""
        objective = self._wanted.lag_objective_seconds
        told = self._told(now, job)
        if follow.stopped is not None:
            said = f"The end is recorded ({follow.stopped}); the rest is compared. {told}"
            return "Unknown", Saying("Proving", said)
        if self._wanted.cutover != "None":
            sealed = self.sealed if self._is_sealed(follow) else ""
            return "Unknown", Saying("Draining", f"{sealed}{told}")
        if follow.catching is not None and not job.follower:
            staged, total = map(text.size, follow.catching)
            return "Unknown", Saying("CatchingUp", f"{staged} of {total} are staged. {told}")
        if follow.lag.seconds > objective:
            said = f"{told}{self._latest()} The objective is {objective} s."
            return "Unknown", Saying("Lagging", said)
        if now.lag_seconds is None and not self._was_ready:
            return "Unknown", Saying("CatchingUp", told)
        return "True", Saying("Following", told)

    @property
    def _was_ready(self) -> bool:
        ready = self._copy.status.condition(ConditionType.READY)
        return ready is not None and ready.status == "True"

    def _told(self, now: FollowStatus, job: JobSeen) -> str:
        """Describe a measurement in a sentence."""
        parts = [*self._subject(), now.lag]
        if now.proved_to is not None:
            age = max(0.0, (self._now - now.proved_to).total_seconds())
            parts.append(f"proved to {span(age)} ago")
        if now.restarts:
            parts.append(text.counted(now.restarts, "restart"))
        told = f"{'; '.join(parts)}.{self._losses()}"
        if job.phase is not JobPhase.PENDING:
            return told
        why = f": {job.trouble}" if job.trouble is not None else "."
        return f"{told} {_STARTS}{why}"

    def _subject(self) -> tuple[str, ...]:
        """Tell what is followed, in a few words; nothing if it is one stream."""
        return ()

    def _losses(self) -> str:
        """Name the streams that are followed no more, in a sentence after a blank."""
        return ""

    def _latest(self) -> str:
        """Name the streams that are behind most, in a sentence after a blank."""
        return ""

    def _conditions(
        self, status: Tri, said: Saying, now: FollowStatus
    ) -> dict[ConditionType, tuple[Tri, Saying]]:
        wanted = conditions.ready(said) if status == "True" else conditions.working(said)
        if now.proved_to is not None:
            wanted[ConditionType.VERIFIED] = ("True", Saying("ProvedTo", self.compared))
        return wanted

    def _cut_over(self, follow: Followed) -> CutoverState | None:
        """Return how far the cutover is that the spec asks for."""
        wanted = self._wanted.cutover
        if wanted == "None":
            return None
        sealed = wanted == "SealAndDrain" and self._is_sealed(follow)
        return self._reached("Sealed" if sealed else "Draining")

    def _is_sealed(self, follow: Followed) -> bool:
        """Tell whether a source takes no more events, so that the cutover cannot be taken back."""
        return follow.sealed

    def _reached(self, state: str, **cuts: str) -> CutoverState:
        """Return the state of the cutover, with the time since when it is so."""
        before = self._before.cutover
        same = before is not None and before.state == state
        since = before.time if before is not None and same else self._now
        return self.cutover.model_validate({"state": state, "time": since, **cuts})

    def _end_following(self) -> None:
        """Write that nothing is behind any more."""
        follow = self._before.follow
        if follow is not None:
            self._set(follow=follow.model_copy(update=self.at_rest))

    def _ended_as(self, said: Saying) -> Saying:
        """Return the reason of a good end: CutOver if the spec asked for a cutover."""
        return said if self._wanted.cutover == "None" else Saying("CutOver", said.message)

    def _staged(self) -> str:
        follow = self._before.follow
        if follow is None:
            return super()._staged()
        return f" {self.stays.format(text.size(follow.bytes))}"

    def fail(self, trouble: Trouble, job: JobSeen | None) -> Verdict:
        """Write a failure. Behind an attempt that has followed for long, it is the first one."""
        if job is not None and (job.ended or self._now) - job.started >= LONG:
            self._set(failures=0)
        return super().fail(trouble, job)

    def _staging(self, saying: Saying) -> Saying:
        return Saying("CatchingUp", saying.message)

    def _say(self, wanted: dict[ConditionType, tuple[Tri, Saying]]) -> CopyingStatus:
        """Write conditions. Succeeded is absent while there is no end."""
        ended = wanted.get(ConditionType.SUCCEEDED)
        if ended is not None and ended[0] != "True":
            wanted = {kind: it for kind, it in wanted.items() if kind != ConditionType.SUCCEEDED}
        return super()._say(wanted)


def seconds_of(follow: Followed) -> int | None:
    """Return the lag in whole seconds, not less than can be told; None if it is unknown."""
    lag = follow.lag
    if not lag.certain:
        return None
    return max(ceil(RESOLUTION), ceil(lag.seconds))


def lag_of(size: int, seconds: int | None) -> str:
    """Describe the lag, for a table and for sentences."""
    if seconds is None:
        return f"{text.size(size)} behind"
    if seconds <= RESOLUTION:
        return f"{text.size(size)}, less than {RESOLUTION:.0f} s behind"
    return f"{text.size(size)}, {span(seconds)} behind"


def span(seconds: float) -> str:
    """Describe a time in a sentence."""
    return f"{seconds:.0f} s" if seconds < MINUTE else text.duration(seconds)


def _worth(now: FollowStatus, before: FollowStatus, *, ends: bool) -> bool:
    """Tell whether a measurement is worth a write, after an earlier one."""
    if _rank(now.lag_seconds) != _rank(before.lag_seconds) or now.pod != before.pod:
        return True
    moved = now.model_copy(update={"time": before.time, "proved_to": before.proved_to}) != before
    if moved and (ends or any(getattr(now, one) != getattr(before, one) for one in now.news)):
        return True
    age = _since(before.time, now.time)
    return age >= QUIET or (moved and age >= BUSY)


def _since(before: datetime | None, now: datetime | None) -> timedelta:
    return QUIET if before is None or now is None else now - before


def _rank(seconds: int | None) -> int:
    """Return the order of magnitude of a lag: a change of it is news."""
    if seconds is None:
        return -1
    return 0 if seconds <= RESOLUTION else 1 + int(log2(seconds))
