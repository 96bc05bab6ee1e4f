"""The surroundings of a copy as the operator saw them, as values.

`reconcile` takes a `World` and returns a `Decision`. Neither holds a connection or a clock. So a
test of any situation of a cluster takes a few lines.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from enum import StrEnum
from typing import TYPE_CHECKING

from sluice.core.follow.catching_up import FAR
from sluice.core.reconcile.shared.jobs import JobPhase
from sluice.core.reconcile.shared.store_seen import StoreSeen

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping
    from datetime import datetime

    from sluice.core.reconcile.copies.drill.seen import DrillSeen
    from sluice.core.reconcile.shared.jobs import JobSeen
    from sluice.core.scope.progress import Pace, Progress
    from sluice.core.values.positions import PositionMap
    from sluice.core.values.trouble import Trouble
    from sluice.core.workloads.answers import Answer
    from sluice.core.workloads.plan import Plan


@dataclass(frozen=True, slots=True, kw_only=True)
class PlanSeen:
    """The plan in the copy's ConfigMap, and the ConfigMap's name."""

    plan: Plan
    name: str


@dataclass(frozen=True, slots=True, kw_only=True)
class HookSeen:
    """The Job of a hook.

    Attributes:
        name: of the Job.
        phase: how far it is.
        made: when the Job was made.
        ended: when it succeeded or failed.
        words: why it failed, by Kubernetes.
    """

    name: str
    phase: JobPhase
    made: datetime
    ended: datetime | None = None
    words: str = ""

    @property
    def active(self) -> bool:
        """Whether its pods run or start."""
        return self.phase in {JobPhase.PENDING, JobPhase.RUNNING}


class Question(StrEnum):
    """Question that only the stores can answer. It is asked only if a decision needs it."""

    STATE = "State"
    """Whether the target is complete; if not, the plan."""
    PROGRESS = "Progress"
    """How many bytes are in the target's store."""


@dataclass(frozen=True, slots=True, kw_only=True)
class GroupSeen:
    """A reader group of the source that is to go on in the target.

    Attributes:
        name: of the group, in the source's scope.
        target: of the group to make, in the target's scope.
        made: whether that is made.
        ready: whether it can be made now: the position of the source's group is known.
        why: what is waited for.
    """

    name: str
    target: str
    made: bool = False
    ready: bool = False
    why: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Reading:
    """Progress and speed of a copy at one moment.

    Attributes:
        progress: how far it is.
        pace: how fast it goes.
        took: seconds that the stores took to tell it.
    """

    progress: Progress
    pace: Pace
    took: float = 0.0


@dataclass(frozen=True, slots=True, kw_only=True)
class World:
    """The surroundings of a copy, as they were seen.

    Attributes:
        now: the time of the look.
        sources: the stores of the sources, one for each source; values as of `target`.
        target: the target's store; None if there is no such StreamStore, a Trouble if the copy
            cannot use it: an unreadable spec, the wrong kind of store, or `access` forbids it.
        profile: why the runtime profile cannot be used; None if it can.
        plan: the plan ConfigMap; None if there is none, or it holds no plan.
        job_seconds: how long the Jobs of a copy stay once it has succeeded; None if unknown.
        far: the bytes that the target of a followed source may be behind before they are staged.
        job_history: how many ended attempts keep their Jobs while the copy is not done.
        damaged: whether there is a plan ConfigMap that holds no plan.
        jobs: the attempts whose Jobs still exist, the latest last.
        pods: pods of this copy that are not gone; 0 unless it is suspended or being deleted, or
            waits for the rest of a run.
        controls: whether the driver's controls are as the spec wants them.
        answer: the answer to Question.STATE, if it was asked: Complete or Planned for a stream,
            ScopeEnded or Planned for a scope, Recorded or Planned for an archive. With
            Question.PROGRESS, a scope's plan that its driver made, until it is in the ConfigMap.
        positions: the position map in the ConfigMap, if the target is complete; None if there is
            none.
        results: the hash of the results in the ConfigMaps of a scope's copy; None if a ConfigMap
            is missing.
        reading: the answer to Question.PROGRESS, if it was asked.
        trouble: why the stores could not be asked.
        wished: whether the journal says how the copy is to end as the spec does; also true if that
            is not known.
        seal: why the copy may not seal its source, though its spec asks for that.
        groups: the reader groups of the spec, if the target is complete.
        hooks: by hook, its Job; or a Trouble, if it has no Job and its CronJob cannot be used.
        late_hooks: Jobs of hooks that run though one is to begin, since the status was lost.
        drill: the surroundings of an archive's restore drill; None if it has none.
    """

    now: datetime
    sources: tuple[StoreSeen | Trouble | None, ...]
    target: StoreSeen | Trouble | None
    profile: Trouble | None = None
    job_seconds: int | None = None
    far: int = FAR
    job_history: int = 1
    plan: PlanSeen | None = None
    damaged: bool = False
    jobs: tuple[JobSeen, ...] = ()
    pods: int = 0
    controls: bool = True
    answer: Answer | None = None
    positions: PositionMap | None = None
    results: str | None = None
    reading: Reading | None = None
    trouble: Trouble | None = None
    wished: bool = True
    seal: Trouble | None = None
    groups: tuple[GroupSeen, ...] = ()
    hooks: Mapping[str, HookSeen | Trouble] = field(default_factory=dict)
    late_hooks: tuple[str, ...] = ()
    drill: DrillSeen | None = None

    @property
    def stores(self) -> tuple[StoreSeen | Trouble | None, ...]:
        """The stores: those of the sources, and the target's."""
        return (*self.sources, self.target)

    @property
    def ready(self) -> bool:
        """Whether all stores are ready."""
        return all(isinstance(store, StoreSeen) and store.ready for store in self.stores)

    @property
    def host(self) -> str | None:
        """The namespace in which drivers have to run; None for the copy's own."""
        return host_of(self.stores)

    @property
    def job(self) -> JobSeen | None:
        """The latest attempt's Job."""
        return next((one for one in reversed(self.jobs) if not one.stray), None)


def host_of(stores: Iterable[StoreSeen | Trouble | None]) -> str | None:
    """Return the namespace in which drivers have to run; None for the copy's own."""
    found = (one for one in stores if isinstance(one, StoreSeen))
    return next((one.namespace for one in found if one.hosts), None)
