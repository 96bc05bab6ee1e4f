"""Every situation of a StreamCopy that follows its source; see `situations`."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any, Final

from sluice import errors
from sluice.core.follow.lag import Age, Followed
from sluice.core.reconcile.copies.world import GroupSeen
from sluice.core.reconcile.shared.jobs import JobPhase, JobSeen
from sluice.core.values.trouble import Trouble
from sluice.core.workloads.answers import EndCut
from support.reconcile.copies import MAPPED
from support.situations.recorder import BYTES, WHOLE, CopyRecorder
from support.situations.situation import CURRENT, FAILED, IN_PROGRESS, TERMINATING, Situation

if TYPE_CHECKING:
    from collections.abc import Callable

    from sluice.core.reconcile.copies.actions import Decision

UP: Final = Followed(
    live=True,
    position=BYTES,
    proved=BYTES,
    lag=Age(0.0, certain=True),
    unproved=Age(3.0, certain=True),
    segments=2,
)
_AT: Final = "0,1:0,0:25165824,25165824"
ENDED: Final = replace(WHOLE, cut=EndCut(f"0:shop/orders:{_AT}", f"0:backup/orders:{_AT}"))

_made: list[Situation] = []


def _followed(
    name: str, means: str, kstatus: str, **spec: Any
) -> Callable[[Callable[[FollowedRecorder], None]], None]:
    """Add a state, into which the decorated function brings a new StreamCopy."""

    def add(play: Callable[[FollowedRecorder], None]) -> None:
        copy = FollowedRecorder(name, **spec)
        play(copy)
        _made.append(
            Situation(kind="StreamCopy", name=name, means=means, kstatus=kstatus, body=copy.body)
        )

    return add


class FollowedRecorder(CopyRecorder):
    """A recorder of one StreamCopy with mode: Continuous."""

    def __init__(self, name: str, **spec: Any) -> None:
        super().__init__(name, mode="Continuous", **spec)

    def follower(self, phase: JobPhase = JobPhase.RUNNING, **changes: Any) -> JobSeen:
        """Return the Job of the latest attempt, which is a follower's."""
        return replace(
            self.job(phase), follower=True, pod=f"{self.body['status']['attempts']}-a", **changes
        )

    def watch(self, **follow: Any) -> Decision:
        """Look at a follower at work, some seconds later."""
        self.later(20)
        reading = self.reading(1.0)
        progress = reading.progress._replace(follow=UP._replace(**follow))
        return self.look(jobs=(self.follower(),), reading=replace(reading, progress=progress))

    def live(self) -> None:
        """Begin, and follow."""
        self.start()
        self.watch()

    def end(self, **world: Any) -> Decision:
        """End the follower with a complete target."""
        self.later(5)
        jobs = (self.follower(JobPhase.SUCCEEDED),)
        return self.look(jobs=jobs, answer=ENDED, **world)


@_followed("follow-catching-up", "mode: Continuous; what was there is copied first", IN_PROGRESS)
def _(copy: FollowedRecorder) -> None:
    copy.start()
    copy.run(0.4)


@_followed("following", "the target has what its source has", CURRENT)
def _(copy: FollowedRecorder) -> None:
    copy.live()


@_followed("lagging", "the target is behind by more than lagObjectiveSeconds", IN_PROGRESS)
def _(copy: FollowedRecorder) -> None:
    copy.live()
    copy.watch(lag_bytes=8_400_000, lag=Age(95.0, certain=True))


@_followed("follow-restarted", "its pod was replaced, and another one goes on", CURRENT)
def _(copy: FollowedRecorder) -> None:
    copy.live()
    copy.later(20)
    reading = copy.reading(1.0)
    progress = reading.progress._replace(follow=UP)
    job = replace(copy.follower(), pod="follower-b")
    copy.look(jobs=(job,), reading=replace(reading, progress=progress))


@_followed("follow-pod-starts", "its node was drained, and its next pod waits for another", CURRENT)
def _(copy: FollowedRecorder) -> None:
    copy.live()
    copy.later(70)
    reading = copy.reading(1.0)
    progress = reading.progress._replace(follow=UP)
    why = Trouble.of(errors.Unschedulable("0/3 nodes are available: 3 Insufficient memory."))
    job = copy.follower(JobPhase.PENDING, trouble=why)
    copy.look(jobs=(replace(job, pod=None),), reading=replace(reading, progress=progress))


@_followed(
    "draining", "cutover: Drain was set, and writers still write", IN_PROGRESS, cutover="Drain"
)
def _(copy: FollowedRecorder) -> None:
    copy.start()
    copy.watch(lag_bytes=4_000)


@_followed(
    "sealed", "cutover: SealAndDrain has sealed the source", IN_PROGRESS, cutover="SealAndDrain"
)
def _(copy: FollowedRecorder) -> None:
    copy.start()
    copy.watch(lag_bytes=4_000, sealed=True)


@_followed("proving", "the end is recorded, and the rest is compared", IN_PROGRESS, cutover="Drain")
def _(copy: FollowedRecorder) -> None:
    copy.start()
    copy.watch(stopped="Drained")


@_followed(
    "waiting-for-readers",
    "the target is whole, and a reader group is still read in the source",
    IN_PROGRESS,
    cutover="Drain",
    readerGroups=[{"name": "billing"}],
)
def _(copy: FollowedRecorder) -> None:
    copy.live()
    why = "Readers of in/billing are online: billing-0."
    copy.end(groups=(GroupSeen(name="billing", target="billing", why=why),))


@_followed(
    "cut-over",
    "the target has all of its source, and the reader group goes on there",
    CURRENT,
    cutover="SealAndDrain",
    readerGroups=[{"name": "billing"}],
)
def _(copy: FollowedRecorder) -> None:
    copy.live()
    made = (GroupSeen(name="billing", target="billing", made=True),)
    copy.end(groups=made, positions=MAPPED)


@_followed("follow-idle", "stopWhen has ended it", CURRENT, stopWhen={"idleSeconds": 600})
def _(copy: FollowedRecorder) -> None:
    copy.live()
    copy.end(positions=MAPPED)


@_followed("follow-truncated", "the source has lost bytes before they were followed", FAILED)
def _(copy: FollowedRecorder) -> None:
    copy.live()
    copy.later(20)
    error = errors.SourceTruncated(
        "in/orders was truncated: offsets 10 to 90 of segment 0 are gone"
    )
    copy.look(jobs=(copy.follower(JobPhase.FAILED, trouble=Trouble.of(error)),))


@_followed("follow-lost", "its pods have failed six times, and another attempt begins", IN_PROGRESS)
def _(copy: FollowedRecorder) -> None:
    copy.live()
    copy.later(20)
    lost = Trouble.of(errors.DriverLost("the driver's pod is gone"))
    copy.look(jobs=(copy.follower(JobPhase.FAILED, trouble=lost),))


@_followed("follow-suspended", "spec.suspend was set while it followed", IN_PROGRESS)
def _(copy: FollowedRecorder) -> None:
    copy.live()
    copy.change(suspend=True)
    copy.look(jobs=(copy.follower(),))
    copy.look()


@_followed("follow-deleting", "it was deleted while it followed; its target stays", TERMINATING)
def _(copy: FollowedRecorder) -> None:
    copy.live()
    copy.delete()
    copy.look(jobs=(copy.follower(),), pods=1)


FOLLOWED: Final = tuple(_made)
