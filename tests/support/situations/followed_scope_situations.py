"""Every situation of a ScopeCopy that follows its streams; see `situations`."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any, Final

from sluice import errors
from sluice.core.follow.lag import Age, Followed, FollowedStreams, StreamLag
from sluice.core.reconcile.copies.statuses.results import results_hash
from sluice.core.reconcile.shared.jobs import JobPhase
from sluice.core.scope.request import ScopeRequest
from sluice.core.scope.scope import Counts, StreamResult, StreamState
from sluice.core.values.trouble import Trouble
from sluice.core.workloads.answers import ScopeEnded
from support.situations.recorder import BYTES
from support.situations.scope_recorder import STREAMS, ScopeRecorder
from support.situations.situation import CURRENT, FAILED, IN_PROGRESS, TERMINATING, Situation

if TYPE_CHECKING:
    from collections.abc import Callable

    from sluice.core.reconcile.copies.actions import Decision
    from sluice.core.reconcile.shared.jobs import JobSeen
    from sluice.errors import SluiceError

UP: Final = Followed(
    live=True,
    position=BYTES,
    proved=BYTES,
    lag=Age(0.0, certain=True),
    unproved=Age(3.0, certain=True),
    segments=STREAMS,
)
CUT: Final = errors.SourceTruncated(
    "in/carts was truncated: offsets 10 to 90 of segment 0 are gone"
)
GONE: Final = errors.SourceNotFound("there is no stream in/clicks")

_made: list[Situation] = []


def _followed(
    name: str, means: str, kstatus: str, **spec: Any
) -> Callable[[Callable[[FollowedScopeRecorder], None]], None]:
    """Add a state, into which the decorated function brings a new ScopeCopy."""

    def add(play: Callable[[FollowedScopeRecorder], None]) -> None:
        scope = FollowedScopeRecorder(name, **spec)
        play(scope)
        _made.append(
            Situation(kind="ScopeCopy", name=name, means=means, kstatus=kstatus, body=scope.body)
        )

    return add


def _failed(name: str, error: SluiceError) -> StreamResult:
    return StreamResult(
        stream=name, target=name, state=StreamState.FAILED, trouble=Trouble.of(error)
    )


class FollowedScopeRecorder(ScopeRecorder):
    """A recorder of one ScopeCopy of 30 streams with mode: Continuous."""

    def __init__(self, name: str, **spec: Any) -> None:
        super().__init__(name, mode="Continuous", **spec)
        follow = ScopeRequest(scope_id=self.copy_id, source="in", target="out", follow=True)
        scope = self.plan.scope.model_copy(update={"following": follow})
        streams = tuple(one.model_copy(update={"follow": True}) for one in self.plan.streams)
        self.plan = self.plan.model_copy(update={"scope": scope, "streams": streams})

    def follower(self, phase: JobPhase = JobPhase.RUNNING, **changes: Any) -> JobSeen:
        """Return the Job of the latest attempt, which is a follower's."""
        return replace(
            self.job(phase), follower=True, pod=f"{self.body['status']['attempts']}-a", **changes
        )

    def watch(
        self,
        job: JobSeen | None = None,
        *,
        streams: Any = None,
        staged: float = 1.0,
        **follow: Any,
    ) -> Decision:
        """Look at a follower at work, some seconds later; see Followed and FollowedStreams."""
        self.later(20)
        told = FollowedStreams(**({"followed": STREAMS} | (streams or {})))
        counts = Counts(total=told.total, copied=told.ended, failed=told.failed)
        reading = self.reading(staged)
        progress = reading.progress._replace(
            streams=counts, follow=UP._replace(streams=told, **follow)
        )
        jobs = (job or self.follower(),)
        return self.look(jobs=jobs, reading=replace(reading, progress=progress))

    def live(self) -> None:
        """Begin, and follow."""
        self.start()
        self.watch()

    def end(self, *, failed: int = 0) -> None:
        """End the follower with each target whole, except for failed streams."""
        self.later(5)
        jobs, results = (self.follower(JobPhase.SUCCEEDED),), self.results(failed, 0)
        ended = ScopeEnded(plan=self.plan, results=results)
        self.look(jobs=jobs, answer=ended, results=results_hash(results))


@_followed("scope-catching-up", "mode: Continuous; 12 of 30 streams are followed", IN_PROGRESS)
def _(scope: FollowedScopeRecorder) -> None:
    scope.start()
    running = scope.job(JobPhase.RUNNING)
    scope.watch(running, streams={"followed": 12, "coming": 18}, staged=0.6, live=False)


@_followed("scope-following", "each target has what its source has", CURRENT)
def _(scope: FollowedScopeRecorder) -> None:
    scope.live()


@_followed("scope-joined", "the scope has got a stream, which is copied first", CURRENT)
def _(scope: FollowedScopeRecorder) -> None:
    scope.live()
    scope.watch(
        streams={"coming": 1, "joined": 1, "worst": (StreamLag("late", 800_000, 4.0),)},
        lag_bytes=800_000,
        lag=Age(4.0, certain=True),
    )


@_followed(
    "scope-some-failed", "one stream cannot be followed, one is gone; the others go on", CURRENT
)
def _(scope: FollowedScopeRecorder) -> None:
    scope.live()
    failures = (_failed("carts", CUT), _failed("clicks", GONE))
    scope.watch(streams={"followed": 28, "failed": 2, "failures": failures})


@_followed("scope-lagging", "two targets are behind by more than lagObjectiveSeconds", IN_PROGRESS)
def _(scope: FollowedScopeRecorder) -> None:
    scope.live()
    worst = (StreamLag("orders", 8_300_000, 95.0), StreamLag("carts", 100_000, 31.0))
    scope.watch(streams={"worst": worst}, lag_bytes=8_400_000, lag=Age(95.0, certain=True))


@_followed("scope-pod-starts", "its node was drained, and its next pod waits for another", CURRENT)
def _(scope: FollowedScopeRecorder) -> None:
    scope.live()
    scope.later(50)
    why = Trouble.of(errors.Unschedulable("0/3 nodes are available: 3 Insufficient memory."))
    scope.watch(scope.follower(JobPhase.PENDING, trouble=why))


@_followed(
    "scope-draining",
    "cutover: Drain was set, and writers still write",
    IN_PROGRESS,
    cutover="Drain",
)
def _(scope: FollowedScopeRecorder) -> None:
    scope.start()
    scope.watch(lag_bytes=4_000)


@_followed(
    "scope-sealed",
    "cutover: SealAndDrain has sealed some sources",
    IN_PROGRESS,
    cutover="SealAndDrain",
)
def _(scope: FollowedScopeRecorder) -> None:
    scope.start()
    scope.watch(streams={"followed": 18, "ended": 12, "sealed": 14}, lag_bytes=4_000)


@_followed(
    "scope-proving",
    "all sources are sealed, the targets have all, and the rest is compared",
    IN_PROGRESS,
    cutover="SealAndDrain",
)
def _(scope: FollowedScopeRecorder) -> None:
    scope.start()
    scope.watch(streams={"followed": 2, "ended": 28, "sealed": 30}, sealed=True)


@_followed("scope-cut-over", "each target has all of its source", CURRENT, cutover="SealAndDrain")
def _(scope: FollowedScopeRecorder) -> None:
    scope.live()
    scope.end()


@_followed("scope-idle", "stopWhen has ended it", CURRENT, stopWhen={"idleSeconds": 600})
def _(scope: FollowedScopeRecorder) -> None:
    scope.live()
    scope.end()


@_followed(
    "scope-cut-over-in-part",
    "3 of 30 streams were not followed to their ends",
    FAILED,
    cutover="Drain",
)
def _(scope: FollowedScopeRecorder) -> None:
    scope.live()
    scope.end(failed=3)


@_followed("scope-lost", "its pods have failed six times, and another attempt begins", IN_PROGRESS)
def _(scope: FollowedScopeRecorder) -> None:
    scope.live()
    scope.later(20)
    lost = Trouble.of(errors.DriverLost("the driver's pod is gone"))
    scope.look(jobs=(scope.follower(JobPhase.FAILED, trouble=lost),))


@_followed("scope-suspended", "spec.suspend was set while it followed", IN_PROGRESS)
def _(scope: FollowedScopeRecorder) -> None:
    scope.live()
    scope.change(suspend=True)
    scope.look(jobs=(scope.follower(),))
    scope.look()


@_followed("scope-deleting", "it was deleted while it followed; its targets stay", TERMINATING)
def _(scope: FollowedScopeRecorder) -> None:
    scope.live()
    scope.delete()
    scope.look(jobs=(scope.follower(),), pods=1)


FOLLOWED_SCOPES: Final = tuple(_made)
