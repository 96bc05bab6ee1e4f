"""Build the status of a StreamCopy that follows its source."""

from __future__ import annotations

from datetime import timedelta
from math import ceil, log2
from typing import TYPE_CHECKING, Any, ClassVar, Final

from sluice.api.status.common import ConditionType
from sluice.api.status.copy_status import (
    CutoverStatus,
    FollowStatus,
    GroupStatus,
    StreamCopyStatus,
)
from sluice.core.follow.lag import RESOLUTION
from sluice.core.reconcile.copies.statuses import table
from sluice.core.reconcile.copies.statuses.streams import StreamStatus
from sluice.core.reconcile.copies.world import JobPhase
from sluice.core.reconcile.shared import conditions
from sluice.core.reconcile.shared.conditions import Saying
from sluice.core.values import text
from sluice.core.workloads.answers import Complete

if TYPE_CHECKING:
    from datetime import datetime

    from sluice.api.status.common import CopyingStatus
    from sluice.core.follow.lag import Followed
    from sluice.core.reconcile.copies.world import JobSeen, World
    from sluice.core.reconcile.shared.conditions import Tri
    from sluice.core.reconcile.shared.verdict import Verdict
    from sluice.core.values.trouble import Trouble

BUSY: Final = timedelta(seconds=60)
"""Time after which a measurement is written that says that bytes have moved."""

QUIET: Final = timedelta(minutes=5)
"""Time after which one is written that says nothing new."""

_STARTS: Final = "Its pod starts"

MINUTE: Final = 60.0

LONG: Final = timedelta(minutes=10)
"""How long an attempt follows until its failure is the first in a row."""


class FollowingStatus(StreamStatus):
    """Builder of the next status of a StreamCopy that follows its source.

    There are measurements for months, so a status is written only if it says something new.
    """

    YOUNG: ClassVar[timedelta] = timedelta(seconds=20)
    dropping: ClassVar[str] = (
        "What was staged is being dropped. If the copy has followed its source, the target stays "
        "as far as it has come."
    )

    def ends(self, follow: Followed) -> bool:
        """Tell whether the end is asked for, or recorded."""
        return self._spec.cutover != "None" or follow.stopped is not None

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
        now = self._measured(follow, job, before)
        status, said = self._state(follow, now, job)
        if world.seal is not None and follow.stopped is None:
            said = Saying(world.seal.reason, f"{world.seal} It follows meanwhile: {said.message}")
        cutover = self._cut_over(follow)
        old = self._copy.status.condition(ConditionType.READY)
        same = (
            before is not None
            and old is not None
            and (old.status, old.reason) == (status, said.reason)
            and cutover == self._before.cutover
            and (_STARTS in old.message) == (job.phase is JobPhase.PENDING)
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
            cutover=cutover,
            progress=progress.model_copy(update={"summary": f"lag {text.size(follow.lag_bytes)}"}),
        )
        return self._say(self._conditions(status, said, now))

    @property
    def _before(self) -> StreamCopyStatus:
        found = self._copy.status
        return found if isinstance(found, StreamCopyStatus) else StreamCopyStatus()

    def _measured(
        self, follow: Followed, job: JobSeen, before: FollowStatus | None
    ) -> FollowStatus:
        """Return a measurement, with what only earlier ones tell."""
        pod = None if before is None else before.pod
        restarts = 0 if before is None else before.restarts
        if job.follower and job.pod is not None:
            restarts += pod is not None and pod != job.pod
            pod = job.pod
        seconds = _seconds(follow)
        proved = None if before is None else before.proved_to
        if follow.unproved.certain:
            proved = self._now - timedelta(seconds=follow.unproved.seconds)
        return FollowStatus(
            lag=_lag(follow.lag_bytes, seconds),
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
        objective = self._spec.lag_objective_seconds
        told = self._told(now, job)
        if follow.stopped is not None:
            said = f"The end is recorded ({follow.stopped}); the rest is compared. {told}"
            return "Unknown", Saying("Proving", said)
        if self._spec.cutover != "None":
            sealed = "The source is sealed. " if follow.sealed else ""
            return "Unknown", Saying("Draining", f"{sealed}{told}")
        if follow.lag.seconds > objective:
            said = f"{told} The objective is {objective} s."
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
        parts = [now.lag]
        if now.proved_to is not None:
            age = max(0.0, (self._now - now.proved_to).total_seconds())
            parts.append(f"proved to {_span(age)} ago")
        if now.restarts:
            parts.append(text.counted(now.restarts, "restart"))
        told = f"{'; '.join(parts)}."
        if job.phase is not JobPhase.PENDING:
            return told
        why = f": {job.trouble}" if job.trouble is not None else "."
        return f"{told} {_STARTS}{why}"

    def _conditions(
        self, status: Tri, said: Saying, now: FollowStatus
    ) -> dict[ConditionType, tuple[Tri, Saying]]:
        wanted = conditions.ready(said) if status == "True" else conditions.working(said)
        if now.proved_to is not None:
            proved = Saying(
                "ProvedTo",
                "All that was published, and what came until status.follow.provedTo, was read "
                "again and equals the source.",
            )
            wanted[ConditionType.VERIFIED] = ("True", proved)
        return wanted

    def _cut_over(self, follow: Followed) -> CutoverStatus | None:
        """Return how far the cutover is that the spec asks for."""
        wanted = self._spec.cutover
        if wanted == "None":
            return None
        sealed = wanted == "SealAndDrain" and follow.sealed
        return self._reached("Sealed" if sealed else "Draining")

    def _reached(self, state: str, **cuts: str) -> CutoverStatus:
        """Return the state of the cutover, with the time since when it is so."""
        before = self._before.cutover
        same = before is not None and before.state == state
        return CutoverStatus(
            state=state, time=before.time if before is not None and same else self._now, **cuts
        )

    def regrouping(self, world: World) -> CopyingStatus:
        """Report that the target is complete, and which reader groups are waited for.

        Writers need not wait for them, so the cutover is done.
        """
        self._take_groups(world)
        self._take_cut(world)
        waiting = [group for group in world.groups if not group.made]
        names = ", ".join(group.name for group in waiting)
        why = next((f" {group.why}" for group in waiting if group.why), "")
        said = f"The target is whole. Reader groups that are not made yet: {names}.{why}"
        return self._say(conditions.working(Saying("WaitingForReaders", said)))

    def _take_groups(self, world: World) -> None:
        if world.groups:
            self._set(
                reader_groups=tuple(
                    GroupStatus(
                        name=group.name,
                        made=group.target,
                        state="Made" if group.made else "Waiting",
                        why=group.why or None,
                    )
                    for group in world.groups
                )
            )

    def _take_cut(self, world: World) -> None:
        whole = world.answer
        if isinstance(whole, Complete) and whole.cut is not None:
            cuts = {"source_cut": whole.cut.source, "target_cut": whole.cut.target}
            self._set(cutover=self._reached("Done", **{k: v for k, v in cuts.items() if v}))

    def over(self, world: World) -> CopyingStatus:
        """Report that the target is complete, and where it is cut over."""
        self._take_cut(world)
        follow = self._before.follow
        if follow is not None:
            done = {"lag": "", "lag_bytes": 0, "lag_seconds": 0}
            self._set(follow=follow.model_copy(update=done))
        self._take_groups(world)
        return super().over(world)

    def _ended_as(self, said: Saying) -> Saying:
        """Return the reason of the end: CutOver if the spec asked for a cutover."""
        if self._spec.cutover == "None" or said.reason != "Copied":
            return said
        groups = ", ".join(group.made for group in self._spec.reader_groups)
        made = f" Reader groups that were made for it: {groups}." if groups else ""
        return Saying("CutOver", f"{said.message}{made}")

    def _staged(self) -> str:
        follow = self._before.follow
        if follow is None:
            return super()._staged()
        return f" The target has {text.size(follow.bytes)} and stays as it is."

    def fail(self, trouble: Trouble, job: JobSeen | None) -> Verdict:
        """Write a failure. Behind an attempt that has followed for long, it is the first one."""
        if job is not None and (job.ended or self._now) - job.started >= LONG:
            self._set(failures=0)
        return super().fail(trouble, job)

    def _staging(self, saying: Saying) -> Saying:
        return Saying("CatchingUp", saying.message)

    def _of_run(self) -> dict[str, Any]:
        return super()._of_run() | {"follow": None, "cutover": None, "reader_groups": None}

    def _say(self, wanted: dict[ConditionType, tuple[Tri, Saying]]) -> CopyingStatus:
        """Write conditions. Succeeded is absent while there is no end."""
        ended = wanted.get(ConditionType.SUCCEEDED)
        if ended is not None and ended[0] != "True":
            wanted = {kind: it for kind, it in wanted.items() if kind != ConditionType.SUCCEEDED}
        return super()._say(wanted)


def _seconds(follow: Followed) -> int | None:
    """Return the lag in whole seconds, not less than can be told; None if it is unknown."""
    lag = follow.lag
    if not lag.certain:
        return None
    return max(ceil(RESOLUTION), ceil(lag.seconds))


def _lag(size: int, seconds: int | None) -> str:
    """Describe the lag, for a table and for sentences."""
    if seconds is None:
        return f"{text.size(size)} behind"
    if seconds <= RESOLUTION:
        return f"{text.size(size)}, less than {RESOLUTION:.0f} s behind"
    return f"{text.size(size)}, {_span(seconds)} behind"


def _span(seconds: float) -> str:
    """Describe a time in a sentence."""
    return f"{seconds:.0f} s" if seconds < MINUTE else text.duration(seconds)


def _worth(now: FollowStatus, before: FollowStatus, *, ends: bool) -> bool:
    """Tell whether a measurement is worth a write, after an earlier one."""
    if _rank(now.lag_seconds) != _rank(before.lag_seconds) or now.pod != before.pod:
        return True
    moved = now.model_copy(update={"time": before.time, "proved_to": before.proved_to}) != before
    if moved and (ends or now.ended != before.ended or now.segments != before.segments):
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
