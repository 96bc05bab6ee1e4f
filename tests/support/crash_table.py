"""The crash table: each point of the protocol with each process that can die there."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal, get_args

from support.crash_points import POINTS, Point

Victim = Literal["driver", "executor", "controller", "segment store"]
VICTIMS: tuple[Victim, ...] = get_args(Victim)

NO_TASK = "no task runs: the driver does this itself"

@dataclass(frozen=True)
class Cell:
    """A process that is killed at a point.

    Attributes:
        point: where.
        number: the point's place in the table, from 1.
        victim: who.
        late: whether what was held up arrives after the death; else it is lost.
        unreachable: why this cannot happen; empty where it can.
    """

    point: Point
    number: int
    victim: Victim
    late: bool
    unreachable: str

    @property
    def name(self) -> str:
        """The name of the cell, and of the target of its copy."""
        return f"{self.number:02d}-{self.victim.replace(' ', '-')}"


def _cell(number: int, point: Point, victim: Victim) -> Cell:
    unreachable = NO_TASK if victim == "executor" and not point.in_task else ""
    late = (number + VICTIMS.index(victim)) % 2 == 0
    return Cell(point, number, victim, late, unreachable)


CELLS = tuple(
    _cell(number, point, victim) for victim in VICTIMS for number, point in enumerate(POINTS, 1)
)
REACHABLE = tuple(cell for cell in CELLS if not cell.unreachable)
