"""The Job of an attempt, as the operator saw it, and its name."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum
from typing import TYPE_CHECKING, Final

from sluice.core.values import text

if TYPE_CHECKING:
    from datetime import datetime

    from sluice.core.archive.recorded import Recorded
    from sluice.core.query.recount import Recount
    from sluice.core.values.trouble import Trouble


class JobPhase(StrEnum):
    """Phase of an attempt's Job."""

    PENDING = "Pending"
    RUNNING = "Running"
    SUCCEEDED = "Succeeded"
    FAILED = "Failed"


@dataclass(frozen=True, slots=True, kw_only=True)
class JobSeen:
    """The Job of an attempt.

    Attributes:
        name: of the Job.
        attempt: the attempt's number, from 1.
        phase: how far it is.
        started: when the Job was made.
        ended: when it succeeded or failed.
        trouble: why its pod does not start (PENDING), or why it failed (FAILED).
        words: the state of its pod (PENDING), if that is no trouble yet.
        deleting: whether it is being deleted.
        outdated: whether it was made for another runtime than the spec asks for now.
        recorded: the driver's report of an archive in a volume, after it recorded a run there.
            Only pods can look into volumes.
        recount: the report of a verification of a query, after it compared something.
        away: the namespace that it is in, if that is not the copy's.
        follower: whether its pod follows a source, and Kubernetes replaces it.
        pod: the name of its newest pod that has started; None if there is none.
        waiting: since when its newest pod is there, if it has not started; None if there is none.
        stray: whether it is in the copy's namespace, where no driver of the copy has to be now. So
            users of that namespace may have made it, or it is left over: it is only stopped.
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
    recount: Recount | None = None
    away: str | None = None
    follower: bool = False
    pod: str | None = None
    waiting: datetime | None = None
    stray: bool = False

    @property
    def active(self) -> bool:
        """Whether its driver runs or starts."""
        return self.phase in {JobPhase.PENDING, JobPhase.RUNNING}


def job_name(uid: str, attempt: int) -> str:
    """Return the name of an attempt's Job. Two operators give the same name.

    Names sort by attempt. Older versions wrote the number without zeros, so a Job is found by its
    owner and its label, never by its name.
    """
    return f"{job_prefix(uid)}{attempt:04}"


VERIFIER_PREFIX: Final = "sluice-verify-"
"""The beginning of the names of Jobs that verify the results of queries."""


def verifier_name(uid: str, number: int) -> str:
    """Return the name of the Job of a query's verification. It is not that of any attempt's Job."""
    return f"{VERIFIER_PREFIX}{text.short_hash(uid)}-{number:04}"


def job_prefix(uid: str) -> str:
    """Return the beginning of the names of a copy's Jobs and pods, in any version."""
    return f"sluice-{text.short_hash(uid)}-"
