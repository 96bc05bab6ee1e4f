"""The crash table: each point of the protocol with each process that can die there."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from support.crash.crash_points import POINTS, Calls, Point, Victim

if TYPE_CHECKING:
    from collections.abc import Iterable

VICTIMS: tuple[Victim, ...] = ("driver", "executor", "operator", "controller", "segment store")

PAGE = "crash-table.md"

LEAST = 40
"""The least number of reachable cells."""

NO_TASK = "no task runs there: the driver does it itself"
NO_PARTS = "the operator divides no source of this size into parts"
NO_OPERATOR = "a follower is a Job like any driver, and does these steps without an operator"
NO_TRANSLATION = (
    "an operator makes reader groups by itself, once the follower is gone, and "
    "`tests/unit/core/reconcile/copies/test_copy_machine.py` kills it at any call"
)

_REASONS = [NO_TASK, NO_PARTS, NO_OPERATOR, NO_TRANSLATION]


@dataclass(frozen=True)
class Cell:
    """A process that is killed at a point.

    Attributes:
        number: the point's place in the table, from 1.
        point: the point.
        victim: the process.
    """

    number: int
    point: Point
    victim: Victim

    @property
    def name(self) -> str:
        """The cell's name, which is also the name of its copy's target."""
        return f"{self.number:02d}-{self.victim.replace(' ', '-')}"

    @property
    def unreachable(self) -> str:
        """The reason why this cannot happen; empty if it can."""
        if self.victim == "executor" and not self.point.in_task:
            return NO_TASK
        if self.victim == "operator" and self.point.step == "Stitch":
            return NO_PARTS
        if self.victim == "operator" and self.point.follows:
            return NO_TRANSLATION if self.point.step == "Translate" else NO_OPERATOR
        return ""

    @property
    def late(self) -> bool:
        """Tell whether the held frame or call arrives after the death; else it is lost.

        Frames and calls on their way to a server that died are lost with it. If an operator did not
        send them itself, they arrive.
        """
        if self.victim == "operator":
            return True
        if self.victim == "segment store":
            return False
        if self.victim == "controller" and isinstance(self.point.told_by, Calls):
            return False
        return (self.number + VICTIMS.index(self.victim)) % 2 == 0


CELLS = tuple(
    Cell(number, point, victim) for victim in VICTIMS for number, point in enumerate(POINTS, 1)
)
REACHABLE = tuple(cell for cell in CELLS if not cell.unreachable)


def page() -> str:
    """Return the table as docs/crash-table.md has it."""
    cells = {(cell.number, cell.victim): cell for cell in CELLS}
    reasons = sorted({cell.unreachable for cell in CELLS} - {""}, key=_REASONS.index)

    def shown(cell: Cell) -> str:
        if cell.unreachable:
            return f"none [{reasons.index(cell.unreachable) + 1}]"
        return "late" if cell.late else "lost"

    rows = [
        [str(number), point.step, point.name] + [shown(cells[number, victim]) for victim in VICTIMS]
        for number, point in enumerate(POINTS, 1)
    ]
    head = ["", "step", "killed right before", *VICTIMS]
    notes = [f"{number}. {reason}." for number, reason in enumerate(reasons, 1)]
    counted = _INTRODUCTION.format(reachable=len(REACHABLE), cells=len(CELLS))
    return "\n".join([counted, table(head, rows), "", _NOTES, "", *notes, ""])


def table(head: Iterable[str], rows: Iterable[Iterable[str]]) -> str:
    """Return a table in Markdown."""
    lines = [list(head), *map(list, rows)]
    lines.insert(1, ["---"] * len(lines[0]))
    return "\n".join(f"| {' | '.join(line)} |" for line in lines)


_INTRODUCTION = """\
# The crash table

Where each process of a copy is killed by the tests, generated from
`tests/support/crash/crash_table.py`.
[The protocol](protocol.md) says why each of these is safe.

One source takes every step: it was truncated, so that the target is shaped first; one of its
segments is copied in three parts; two scale events follow, the second to fewer segments. What it is
appended to has events of its own in yet other segments. The last lines, from Live on, have sources
of their own: their copies follow them, through lost bytes, a merge of two segments and another tag,
and cut over, with a reader group. A proxy before the segment store and one before the controller
hold up the frame or the call that would do what the line says. Then the victim is killed with
SIGKILL, and what was held up arrives **late**, from a process that is dead, or is **lost**.

In the end each segment of the target has the bytes of the source's by SHA-256 and as many events,
told by `hack/segment_hash.py`, the same key ranges take events, and no staging segment and no
journal exists: nothing is lost, twice, or in another order. A stream that was appended to has its
own key ranges again, and its own bytes before ours. A reader group reads each event once, in the
source or in the target.

- **driver**: the whole `sluice run` with its JVM and workers; a user runs it again.
- **executor**: the Python workers that Spark runs the tasks in; the same run goes on.
- **operator**: `sluice operator`, at a real API server. The driver goes on without it; the next
  operator adopts it and says that the copy is done, after one attempt.
- **controller**, **segment store**: of a Pravega of four processes. They are started again; the
  same run goes on.

{reachable} of {cells} cells can be reached. `make test-crash` runs all, and fails where a point was
not reached; `build/crash-table*.md` then say for each what was held up and which processes died.
`make test` has none of them: it kills drivers, operators and followers on pods and on a store.
"""

_NOTES = "No cell, since"
