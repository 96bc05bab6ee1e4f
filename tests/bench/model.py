"""What is measured: sources, runs, sides that make runs, comparisons between them; and seconds."""

from __future__ import annotations

import operator
from dataclasses import dataclass, field, replace
from statistics import median
from typing import TYPE_CHECKING, Literal, NamedTuple, Protocol

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from bench.lab import Lab

MEGABYTE = 1e6
GIGABYTE = 1e9
EVENT_HEADER = 8
"""Bytes that the store's clients put before each event."""

_ORDER = 300
"""Bytes of an order."""

_RELATIONS = {">=": operator.ge, "<=": operator.le, "<": operator.lt}


class BenchError(Exception):
    """Something did not run, so there is nothing to measure."""


@dataclass(frozen=True, slots=True)
class Source:
    """A stream to copy: so many events, over so many segments.

    Attributes:
        events: how many.
        size: bytes of each payload.
        segments: over how many segments they are spread.
        kind: of the payloads, see ForeignClient.write.
    """

    events: int
    size: int
    segments: int
    kind: Literal["padded", "orders"] = "padded"

    @classmethod
    def of_bytes(cls, total: float, *, segments: int, size: int = 8184) -> Source:
        """A source of about so many bytes; larger events are written faster."""
        return cls(round(total / (size + EVENT_HEADER)), size, segments)

    @classmethod
    def of_orders(cls, total: float, *, segments: int) -> Source:
        """A source of about so many bytes that compress as what applications write does."""
        return replace(cls.of_bytes(total, segments=segments, size=_ORDER), kind="orders")

    @property
    def bytes(self) -> int:
        """Bytes in the segments, which is what a copy moves."""
        return self.events * (self.size + EVENT_HEADER)

    def scaled(self, scale: float) -> Source:
        """The same with fewer events."""
        return replace(self, events=max(1, round(self.events * scale)))

    def __str__(self) -> str:
        """For people."""
        return f"{self.events:,} x {self.size:,} B in {self.segments} segment(s)"


@dataclass(frozen=True, slots=True, kw_only=True)
class Run:
    """One copy, timed.

    Attributes:
        seconds: how long it took.
        bytes: bytes copied.
        cpu: CPU seconds of the copier's processes, the store's not among them.
        store_cpu: CPU seconds of the store meanwhile, and of the gateway if there is one.
        peak_rss: peak memory of the largest Python worker, in bytes; None where there are none.
        steps: seconds in each step of the protocol; empty where there are none.
        retries: how often the copy had to try again, which spoils its time.
        others: share of the machine that was busy meanwhile with neither the copy nor the store.
        stored: bytes of an archive's objects; None where none was made.
    """

    seconds: float
    bytes: int
    cpu: float
    store_cpu: float = 0.0
    peak_rss: int | None = None
    steps: dict[str, float] = field(default_factory=dict)
    retries: int = 0
    others: float = 0.0
    stored: int | None = None

    @property
    def speed(self) -> float:
        """Megabytes per second."""
        return self.bytes / MEGABYTE / self.seconds

    @property
    def cpu_per_gigabyte(self) -> float:
        """CPU seconds to copy a gigabyte."""
        return self.cpu / self.bytes * GIGABYTE

    @property
    def store_cpu_per_gigabyte(self) -> float:
        """CPU seconds that the store took for a gigabyte."""
        return self.store_cpu / self.bytes * GIGABYTE


class Side(Protocol):
    """One way to copy a source."""

    @property
    def name(self) -> str:
        """What it is called within its phase."""
        ...

    @property
    def source(self) -> Source:
        """What it copies."""
        ...

    def prepare(self, lab: Lab) -> None:
        """Get warm; whatever that takes is not measured."""
        ...

    def run(self, lab: Lab, target: str) -> Run:
        """Copy the source to a target that does not exist yet."""
        ...


class Goal(NamedTuple):
    """What a comparison's value should be."""

    relation: Literal[">=", "<=", "<"]
    bound: float

    def met(self, value: float) -> bool:
        """Whether a value is as it should be."""
        return bool(_RELATIONS[self.relation](value, self.bound))

    def __str__(self) -> str:
        """For people."""
        return f"{self.relation} {self.bound:g}"


@dataclass(frozen=True, slots=True)
class Comparison:
    """A key of the results.

    Attributes:
        key: its name.
        ours: the side that is judged.
        theirs: the side it is judged against; the same where a run is judged by itself.
        value: makes a value of two runs, ours first.
        goal: what the median should be; None where it is only reported.
    """

    key: str
    ours: str
    theirs: str
    value: Callable[[Run, Run], float]
    goal: Goal | None = None


@dataclass(frozen=True, slots=True)
class Phase:
    """Sides that take turns on one store.

    Attributes:
        name: for people.
        sides: in the order of their turns.
        comparisons: between them.
        rehearsed: how many of the sides, from the first on, run once on each new store before
            anything is measured there; None for all.
    """

    name: str
    sides: tuple[Side, ...]
    comparisons: tuple[Comparison, ...]
    rehearsed: int | None = None

    def restricted(self, keys: Sequence[str]) -> Phase:
        """The phase with the comparisons of these keys, and the sides that they need."""
        comparisons = tuple(c for c in self.comparisons if c.key in keys)
        needed = {side for c in comparisons for side in (c.ours, c.theirs)}
        sides = tuple(side for side in self.sides if side.name in needed)
        return Phase(self.name, sides, comparisons, self.rehearsed)


@dataclass(frozen=True, slots=True)
class Result:
    """What came of a comparison: the runs of both sides, pair by pair."""

    comparison: Comparison
    ours: tuple[Run, ...]
    theirs: tuple[Run, ...]

    @property
    def samples(self) -> list[float]:
        """The value of each pair."""
        return [self.comparison.value(*pair) for pair in zip(self.ours, self.theirs, strict=True)]

    @property
    def value(self) -> float:
        """The median."""
        return median(self.samples)

    @property
    def met(self) -> bool | None:
        """Whether the goal is met; None without one."""
        goal = self.comparison.goal
        return None if goal is None else goal.met(self.value)


@dataclass(frozen=True, slots=True)
class Measurement:
    """A key of the results without sides: seconds mostly, and what a goal says of them.

    Attributes:
        key: its name.
        samples: one of each run.
        goal: what the median should be; None where it is only reported.
        phases: the median seconds of what makes up a run, in the order of time; may be empty.
        unit: of the samples; empty for numbers and ratios.
        counts: what else is worth reporting, by what it is.
    """

    key: str
    samples: tuple[float, ...]
    goal: Goal | None = None
    phases: dict[str, float] = field(default_factory=dict)
    unit: str = "s"
    counts: dict[str, float] = field(default_factory=dict)

    @property
    def value(self) -> float:
        """The median."""
        return median(self.samples)

    @property
    def met(self) -> bool | None:
        """Whether the goal is met; None without one."""
        return None if self.goal is None else self.goal.met(self.value)
