"""Every situation that a StreamArchive can be in: a part of the table in `situations`."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any, Final

from sluice import errors
from sluice.api.status.archive_status import StreamArchiveStatus
from sluice.core.archive.recorded import LostBytes
from sluice.core.reconcile.shared.jobs import JobPhase
from sluice.core.values.trouble import Trouble
from sluice.core.workloads.answers import Planned
from sluice.kube.api.status import of_invalid
from support.situations.archive_recorder import ArchiveRecorder
from support.situations.recorder import READY
from support.situations.situation import CURRENT, DOWN, FAILED, IN_PROGRESS, TERMINATING, Situation

if TYPE_CHECKING:
    from collections.abc import Callable

LOST: Final = errors.DriverLost("the driver's pod is gone")
HOURLY: Final = {"cron": "0 * * * *"}
HOUR: Final = 3600.0

_made: list[Situation] = []


def _archive(
    name: str, means: str, kstatus: str, **spec: Any
) -> Callable[[Callable[[ArchiveRecorder], None]], None]:
    """Add a state, into which the decorated function brings a new resource."""

    def add(play: Callable[[ArchiveRecorder], None]) -> None:
        archive = ArchiveRecorder(name, **spec)
        play(archive)
        _made.append(
            Situation(
                kind="StreamArchive", name=name, means=means, kstatus=kstatus, body=archive.body
            )
        )

    return add


def _succeed(archive: ArchiveRecorder, **changes: Any) -> None:
    archive.start()
    archive.run(1.0)
    archive.finish(**changes)


@_archive("unseen", "applied, the operator has not looked yet", IN_PROGRESS)
def _(archive: ArchiveRecorder) -> None:
    pass


@_archive("scheduled", "no run was due yet", CURRENT, schedule=HOURLY)
def _(archive: ArchiveRecorder) -> None:
    archive.look()


@_archive("no-store", "there is no such StreamStore", IN_PROGRESS)
def _(archive: ArchiveRecorder) -> None:
    archive.look(target=None)


@_archive("store-not-ready", "a StreamStore is not ready", IN_PROGRESS)
def _(archive: ArchiveRecorder) -> None:
    archive.look(target=replace(READY, ready=False, why=str(Trouble.of(DOWN))))


@_archive("no-source", "there is no such stream; it is looked for again now and then", FAILED)
def _(archive: ArchiveRecorder) -> None:
    error = errors.SourceNotFound("there is no stream in/orders", field="spec.source.stream")
    archive.look(trouble=Trouble.of(error))


@_archive("too-many-events", "more events than may become objects", FAILED, format="EventObjects")
def _(archive: ArchiveRecorder) -> None:
    error = errors.TooManyEvents("in/orders has 2000000 events", field="spec.maxEvents")
    archive.look(trouble=Trouble.of(error))


@_archive("starting", "the driver's Job was made", IN_PROGRESS)
def _(archive: ArchiveRecorder) -> None:
    archive.start()


@_archive("archiving", "the driver writes what is new", IN_PROGRESS)
def _(archive: ArchiveRecorder) -> None:
    archive.start()
    archive.run(0.4)


@_archive("verifying", "all is written, and is read back", IN_PROGRESS)
def _(archive: ArchiveRecorder) -> None:
    archive.start()
    archive.run(1.0)


@_archive("retrying", "an attempt failed, another one follows", IN_PROGRESS)
def _(archive: ArchiveRecorder) -> None:
    archive.start()
    archive.run(0.4)
    archive.lose(LOST)


@_archive("gave-up", "more attempts failed in a row than spec.backoffLimit", FAILED, backoffLimit=0)
def _(archive: ArchiveRecorder) -> None:
    archive.start()
    archive.lose(LOST, staged=0)


@_archive("not-understood", "this version of the operator cannot read the spec", FAILED)
def _(archive: ArchiveRecorder) -> None:
    error = errors.InvalidSpec("is no field of a StreamArchive", field="spec.compression")
    archive.change(compression="zstd")
    archive.body["status"] = of_invalid(
        StreamArchiveStatus(), archive.body, error, bounded=True
    ).dump()


@_archive("suspended", "spec.suspend was true from the start", IN_PROGRESS, suspend=True)
def _(archive: ArchiveRecorder) -> None:
    archive.look(answer=Planned(plan=archive.plan))


@_archive(
    "suspended-scheduled", "the same, with a schedule", CURRENT, suspend=True, schedule=HOURLY
)
def _(archive: ArchiveRecorder) -> None:
    archive.look()


@_archive("stopping", "spec.suspend was set while it ran: the driver is being stopped", IN_PROGRESS)
def _(archive: ArchiveRecorder) -> None:
    archive.start()
    archive.run(0.4)
    archive.change(suspend=True)
    archive.look(jobs=(archive.job(JobPhase.RUNNING),))


@_archive("archived", "the run is recorded", CURRENT)
def _(archive: ArchiveRecorder) -> None:
    _succeed(archive)


@_archive(
    "archived-with-gaps",
    "the source had lost bytes before they were read",
    CURRENT,
    onTruncation="Record",
)
def _(archive: ArchiveRecorder) -> None:
    gap = LostBytes(segment=0, begin=0, end=4096)
    _succeed(archive, gaps=(gap,), lost=4096)


@_archive("archived-suspended", "it is done, then spec.suspend was set; looked at", CURRENT)
def _(archive: ArchiveRecorder) -> None:
    _succeed(archive)
    archive.change(suspend=True)
    archive.look()


@_archive("asked-again", "it is done, then sluice.dev/requestedAt was set; not looked at", CURRENT)
def _(archive: ArchiveRecorder) -> None:
    _succeed(archive)
    archive.request("2026-05-05")


@_archive("asked-again-begun", "the same, looked at: another run begins", IN_PROGRESS)
def _(archive: ArchiveRecorder) -> None:
    _succeed(archive)
    archive.request("2026-05-05")
    archive.start()


@_archive("due-again", "the next run was due: it begins", IN_PROGRESS, schedule=HOURLY)
def _(archive: ArchiveRecorder) -> None:
    archive.look()
    archive.later(HOUR)
    _succeed(archive)
    archive.later(HOUR)
    archive.start()


@_archive("deleting", "it was deleted while it ran: the driver is being stopped", TERMINATING)
def _(archive: ArchiveRecorder) -> None:
    archive.start()
    archive.run(0.4)
    archive.delete()
    archive.look(jobs=(archive.job(JobPhase.RUNNING),), pods=1)


@_archive("deletion-stuck", "the same, and the store does not answer", TERMINATING)
def _(archive: ArchiveRecorder) -> None:
    archive.start()
    archive.run(0.4)
    archive.delete()
    archive.fail(DOWN)


ARCHIVES: Final = tuple(_made)
