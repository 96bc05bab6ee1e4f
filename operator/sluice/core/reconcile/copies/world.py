"""What the operator saw of a copy's surroundings, as values.

`reconcile` gets a `World` and answers with a `Decision`. Neither holds a connection or a clock, so
every situation that a cluster can be in is a test of a few lines.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from datetime import datetime

    from sluice.core.archive.recorded import Recorded
    from sluice.core.reconcile.shared.store_seen import StoreSeen
    from sluice.core.scope.progress import Pace, Progress
    from sluice.core.values.positions import PositionMap
    from sluice.core.values.trouble import Trouble
    from sluice.core.workloads.answers import Answer
    from sluice.core.workloads.plan import Plan


class JobPhase(StrEnum):
    """How far an attempt is."""

    PENDING = "Pending"
    RUNNING = "Running"
    SUCCEEDED = "Succeeded"
    FAILED = "Failed"


@dataclass(frozen=True, slots=True, kw_only=True)
class JobSeen:
    """One attempt's Job.

    Attributes:
        name: of the Job.
        attempt: its number, from 1.
        phase: how far it is.
        started: when it was made.
        ended: when it succeeded or failed.
        trouble: why its pod does not start (PENDING), or why it failed (FAILED).
        words: what its pod says of itself (PENDING), where that is no trouble yet.
        deleting: whether it is being deleted.
        outdated: whether it was made for another runtime than the spec asks for now.
        recorded: what its driver said of the archive in which it has recorded a run, where nobody
            else can look into that.
    """

    name: str
    attempt: int
    phase: JobPhase
    started: datetime
    ended: datetime | None = None
    trouble: Trouble | None = None
    words: str = ""
    deleting: bool = False
    outdated: bool = False
    recorded: Recorded | None = None

    @property
    def active(self) -> bool:
        """Whether its driver runs or is about to."""
        return self.phase in {JobPhase.PENDING, JobPhase.RUNNING}


@dataclass(frozen=True, slots=True, kw_only=True)
class PlanSeen:
    """The plan that was written down for the copy."""

    plan: Plan
    name: str


class Question(StrEnum):
    """What only the stores can tell; asked for only where it decides something."""

    STATE = "State"
    """Whether the target is whole, and otherwise the plan."""
    PROGRESS = "Progress"
    """How many bytes are there."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Reading:
    """A copy's progress at a moment."""

    progress: Progress
    pace: Pace


@dataclass(frozen=True, slots=True, kw_only=True)
class World:
    """Everything that was seen of one copy's surroundings.

    Attributes:
        now: the time of looking.
        sources: the stores of what is copied, one for each stream, as `target`.
        target: the store; None when there is no such StreamStore, a Trouble when there is
            one whose spec cannot be read.
        profile: why the runtime profile cannot be used; None when it can.
        plan: the plan ConfigMap; None where there is none, or one that holds no plan.
        damaged: whether there is one that holds no plan.
        jobs: the attempts whose Jobs still exist, the latest last.
        pods: pods of this copy that are not gone; 0 unless it is suspended or being deleted.
        controls: whether the driver's controls are as the spec wants them.
        answer: to Question.STATE, if it was asked; of a stream Complete or Planned, of a scope
            ScopeEnded or Planned, of an archive Recorded or Planned. With Question.PROGRESS the
            plan of a driver that has made it by itself, as long as it is not written down.
        positions: the map in the ConfigMap, if the target is whole; None where there is none.
        results: the hash of the results that the ConfigMaps of a scope's copy have; None where
            they are not there, or not all of them.
        reading: to Question.PROGRESS, if it was asked.
        trouble: why the stores could not be asked.
    """

    now: datetime
    sources: tuple[StoreSeen | Trouble | None, ...]
    target: StoreSeen | Trouble | None
    profile: Trouble | None = None
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

    @property
    def job(self) -> JobSeen | None:
        """The latest attempt's Job."""
        return self.jobs[-1] if self.jobs else None
