"""The crash table of archives: each step of a run, a sweep, a restore and a deletion."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from support.crash.crash_points import Calls, Point, Requests, Victim
from support.crash.crash_table import NO_TASK, Cell, table

Deed = Literal["archive", "sweep", "restore", "delete"]

VICTIMS: tuple[Victim, ...] = ("driver", "executor", "operator", "gateway")

PAGE = "archive-crash-table.md"

LEAST = 50
"""The least number of reachable cells."""

NO_DRIVER = "the operator deletes archives, no driver does"
OF_THE_STORE = "the gateway has no part in it"


@dataclass(frozen=True)
class ArchivePoint(Point):
    """A point of the work on an archive.

    Attributes:
        deed: the work.
        telling: victims at this point in `make test`; `make test-crash` runs all.
    """

    deed: Deed = "archive"
    telling: tuple[Victim, ...] = ()


_PUT = Requests("PUT", "data")
_NOTED = Requests("PUT", "work")
_LEASE = Requests("PUT", "leases")
_RETURNED = Requests("POST", "leases")

POINTS = (
    ArchivePoint("Hold", "the lease of who writes is taken", _LEASE),
    ArchivePoint("RecordCommitted", "the plan is noted", _NOTED),
    ArchivePoint("Transfer", "the first object is put", _PUT, in_task=True),
    ArchivePoint("Transfer", "the third object is put", _PUT, 3, in_task=True),
    ArchivePoint("Transfer", "it is noted what was put", Requests("PUT", "work", b'"put":[{')),
    ArchivePoint(
        "Verify",
        "the first object is read back",
        Requests("GET", "data"),
        in_task=True,
    ),
    ArchivePoint(
        "Verify", "it is noted what was read back", Requests("PUT", "work", b'"checked":[{')
    ),
    ArchivePoint("RecordRun", "the lease is written again", _LEASE, 2),
    ArchivePoint("RecordRun", "the manifest is put", Requests("PUT", "runs")),
    ArchivePoint("RecordRun", "the head is made", Requests("PUT", "heads"), telling=("driver",)),
    ArchivePoint("DeleteJournal", "the notes are deleted", Requests("POST", "work")),
    ArchivePoint("DeleteJournal", "the lease is given back", _RETURNED),
    ArchivePoint(
        "Retain",
        "runs are let go",
        Requests("PUT", "heads"),
        2,
        deed="sweep",
        telling=("operator",),
    ),
    ArchivePoint(
        "Sweep",
        "the lease of who sweeps is taken",
        Requests("PUT", "leases", b'"Sweep"'),
        deed="sweep",
    ),
    ArchivePoint(
        "Sweep",
        "what a crash had left is deleted",
        Requests("POST", "data"),
        deed="sweep",
        telling=("gateway",),
    ),
    ArchivePoint(
        "Sweep",
        "manifests of runs that were let go are deleted",
        Requests("POST", "runs"),
        deed="sweep",
    ),
    ArchivePoint("Sweep", "earlier heads are deleted", Requests("POST", "heads"), deed="sweep"),
    ArchivePoint("Hold", "the lease on the run is taken", _LEASE, deed="restore"),
    ArchivePoint("MakeTarget", "the target is made", Calls("createStream"), deed="restore"),
    ArchivePoint(
        "Transfer",
        "the first object is read",
        Requests("GET", "data"),
        in_task=True,
        deed="restore",
        telling=("executor",),
    ),
    ArchivePoint(
        "Transfer",
        "the third object is read",
        Requests("GET", "data"),
        3,
        in_task=True,
        deed="restore",
    ),
    ArchivePoint(
        "ConfigureTarget", "the target is said to be whole", Calls("updateStream"), deed="restore"
    ),
    ArchivePoint("DeleteJournal", "the lease on the run is given back", _RETURNED, deed="restore"),
    ArchivePoint("Delete", "the heads are deleted", Requests("POST", "heads"), deed="delete"),
    ArchivePoint("Delete", "the objects are deleted", Requests("POST", "data"), deed="delete"),
)


@dataclass(frozen=True)
class ArchiveCell(Cell):
    """A process that is killed at a point of the work on an archive."""

    point: ArchivePoint

    @property
    def unreachable(self) -> str:
        """The reason why this cannot happen; empty if it can."""
        if self.point.deed == "delete" and self.victim in {"driver", "executor"}:
            return NO_DRIVER
        if self.victim == "executor" and not self.point.in_task:
            return NO_TASK
        if self.victim == "gateway" and isinstance(self.point.told_by, Calls):
            return OF_THE_STORE
        return ""

    @property
    def late(self) -> bool:
        """Tell whether the held request or call arrives after the death; else it is lost.

        When the gateway dies: tell whether it has done the request, and only its answer is lost. If
        an operator did not send the request itself, it arrives. A lease that a dead sweep takes
        late keeps runs for an hour, so such a lease never arrives.
        """
        if self.victim == "operator" and self.point.deed != "delete":
            return True
        if self.point.told_by == Requests("PUT", "leases", b'"Sweep"'):
            return False
        return (self.number + VICTIMS.index(self.victim)) % 2 == 0

    @property
    def telling(self) -> bool:
        """Tell whether the cell is one of the few of `make test`."""
        return self.victim in self.point.telling


CELLS = tuple(
    ArchiveCell(number, point, victim)
    for victim in VICTIMS
    for number, point in enumerate(POINTS, 1)
)
REACHABLE = tuple(cell for cell in CELLS if not cell.unreachable)


def page() -> str:
    """Return the table as docs/archive-crash-table.md has it."""
    cells = {(cell.number, cell.victim): cell for cell in CELLS}
    reasons = [NO_TASK, NO_DRIVER, OF_THE_STORE]

    def shown(cell: ArchiveCell) -> str:
        if cell.unreachable:
            return f"none [{reasons.index(cell.unreachable) + 1}]"
        word = "late" if cell.late else "lost"
        return f"**{word}**" if cell.telling else word

    rows = [
        [str(number), point.deed, point.step, point.name]
        + [shown(cells[number, victim]) for victim in VICTIMS]
        for number, point in enumerate(POINTS, 1)
    ]
    head = ["", "of", "step", "killed right before", *VICTIMS]
    notes = [f"{number}. {reason}." for number, reason in enumerate(reasons, 1)]
    counted = _INTRODUCTION.format(
        reachable=len(REACHABLE), telling=sum(cell.telling for cell in CELLS), cells=len(CELLS)
    )
    return "\n".join([counted, table(head, rows), "", "No cell, since", "", *notes, ""])


_INTRODUCTION = """\
# The crash table of archives

Where each process that works with an archive is killed by the tests, generated from
`tests/support/crash/archive_crash_table.py`. [The format](archive-format.md) says why each of
these is safe. Copies have [a table of their own](crash-table.md).

A proxy before an S3 gateway and one before the store's controller hold up the request or the call
that would do what the line says. Then the victim is killed with SIGKILL, and what was held up
arrives **late**, from a process that is dead, or is **lost**. Of the gateway: it has done what it
was asked for and its **late** answer never comes, or the request is **lost** with it.

While the victim is dead an archive is complete, or it cannot be seen: a program that knows only the
format, not Sluice, reads the last head, and each run that it lists, by what the gateway has on
disk; each object has its SHA-256, and the last run has the bytes of each of the source's segments,
as `hack/segment_hash.py` reads them. So it is in the end, when the run is recorded as well. A
target that is restored has nothing that a reader finds before all is there, and then the source's
bytes.

- **driver**: the whole `sluice run` with its JVM and workers; a user runs it again.
- **executor**: the Python workers that Spark runs the tasks in; the same command goes on.
- **operator**: `sluice operator`, at a real API server. The driver goes on without it, and the next
  operator says how it ended; an archive that is deleted is deleted to its end by the next one.
- **gateway**: versitygw. It is started again; the same command goes on.

{reachable} of {cells} cells can be reached. `make test-crash` runs all, and fails where a point was
not reached; `build/crash-table-archives*.md` then say for each what was held up and which processes
died. The {telling} in bold run in `make test`, too.
"""
