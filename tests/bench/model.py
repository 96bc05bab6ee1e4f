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

_MIXED = 100
"""Bytes of an event of mixed length, in the mean."""

_STEP = 37
"""By which mixed lengths go on from event to event, round and round."""

_RELATIONS = {">=": operator.ge, "<=": operator.le, "<": operator.lt}


class BenchError(Exception):
    """Something did not run, so there is nothing to measure."""


@dataclass(frozen=True, slots=True)
class Source:
    """A stream to copy: so many events, over so many segments.

    Attributes:
        events: how many.
        size: bytes of each payload; of mixed ones, in the mean.
        segments: over how many segments they are spread.
        kind: of the payloads, see ForeignClient.write.
    """

    events: int
    size: int
    segments: int
    kind: Literal["padded", "orders", "mixed"] = "padded"

    @classmethod
    def of_bytes(cls, total: float, *, segments: int, size: int = 8184) -> Source:
        """A source of about so many bytes; larger events are written faster."""
        return cls(round(total / (size + EVENT_HEADER)), size, segments)

    @classmethod
    def of_orders(cls, total: float, *, segments: int) -> Source:
        """A source of about so many bytes that compress as what applications write does."""
        return replace(cls.of_bytes(total, segments=segments, size=_ORDER), kind="orders")

    @classmethod
    def of_mixed(cls, total: float, *, segments: int) -> Source:
        """A source of about so many bytes in events of 60 to 140 bytes."""
        return replace(cls.of_bytes(total, segments=segments, size=_MIXED), kind="mixed")

    @property
    def bytes(self) -> int:
        """Bytes in the segments, which is what a copy moves."""
        return self.payload + self.events * EVENT_HEADER

    @property
    def payload(self) -> int:
        """Bytes of all payloads."""
        if self.kind != "mixed":
            return self.events * self.size
        lengths = self._lengths
        turns, rest = divmod(self.events, len(lengths))
        return turns * sum(lengths) + sum(lengths[:rest])

    @property
    def _lengths(self) -> list[int]:
        """A turn of mixed lengths, as `Mixed.java` has it."""
        shortest, number = self.size * 3 // 5, self.size * 4 // 5 + 1
        return [shortest + place * _STEP % number for place in range(number)]

    def scaled(self, scale: float) -> Source:
        """The same with fewer events."""
        return replace(self, events=max(1, round(self.events * scale)))

    def __str__(self) -> str:
        """For people."""
        size = f"{self.size:,}"
        if self.kind == "mixed":
            size = f"{min(self._lengths):,} to {max(self._lengths):,}"
        return f"{self.events:,} x {size} B in {self.segments} segment(s)"


@dataclass(frozen=True, slots=True, kw_only=True)
class Run:
    """One copy, timed.

    Attributes:
        seconds: how long it took.
        bytes: bytes copied.
        cpu: CPU seconds of the copier's processes, the store's not among them.
        store_cpu: CPU seconds of the store, and of the gateway if there is one, until they have
            done all that they put off.
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
        metric: the number of a run that is compared.
        goal: what the value should be; None where it is only reported.
    """

    key: str
    ours: str
    theirs: str
    metric: Callable[[Run], float]
    goal: Goal | None = None

    @property
    def is_alone(self) -> bool:
        """Whether runs are judged by themselves."""
        return self.ours == self.theirs


@dataclass(frozen=True, slots=True)
class Phase:
    """Sides that take turns on one store.

    Attributes:
        name: for people.
        sides: in the order of their turns.
        comparisons: between them.
        rehearsal: what runs once on each new store before anything is measured there: some of the
            sides, or sides of their names with less to copy; None for all sides.
    """

    name: str
    sides: tuple[Side, ...]
    comparisons: tuple[Comparison, ...]
    rehearsal: tuple[Side, ...] | None = None

    @property
    def rehearsed(self) -> tuple[Side, ...]:
        """What runs once on each new store."""
        return self.sides if self.rehearsal is None else self.rehearsal

    def restricted(self, keys: Sequence[str]) -> Phase:
        """The phase with the comparisons of these keys, and the sides that they need."""
        comparisons = tuple(c for c in self.comparisons if c.key in keys)
        needed = {side for c in comparisons for side in (c.ours, c.theirs)}

        def kept(sides: tuple[Side, ...]) -> tuple[Side, ...]:
            return tuple(side for side in sides if side.name in needed)

        return Phase(self.name, kept(self.sides), comparisons, kept(self.rehearsed))


@dataclass(frozen=True, slots=True)
class Result:
    """What came of a comparison: the runs of both sides, pair by pair."""

    comparison: Comparison
    ours: tuple[Run, ...]
    theirs: tuple[Run, ...]

    def __post_init__(self) -> None:
        """Have a number that a run lacks fail its phase, and not the report of all phases."""
        _ = self.samples

    @property
    def samples(self) -> list[float]:
        """The value of each pair."""
        ours, theirs = (
            list(map(self.comparison.metric, runs)) for runs in (self.ours, self.theirs)
        )
        if self.comparison.is_alone:
            return ours
        return [one / other for one, other in zip(ours, theirs, strict=True)]

    @property
    def value(self) -> float:
        """The ratio of the medians of both sides; the median of a side that is alone."""
        ours = median(map(self.comparison.metric, self.ours))
        if self.comparison.is_alone:
            return ours
        return ours / median(map(self.comparison.metric, self.theirs))

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
        goal: what the value should be; None where it is only reported.
        phases: the median seconds of what makes up a run, in the order of time; may be empty.
        unit: of the samples; empty for numbers and ratios.
        counts: what else is worth reporting, by what it is.
        base: what the samples are compared with, in runs that took turns; may be empty.
    """

    key: str
    samples: tuple[float, ...]
    goal: Goal | None = None
    phases: dict[str, float] = field(default_factory=dict)
    unit: str = "s"
    counts: dict[str, float] = field(default_factory=dict)
    base: tuple[float, ...] = ()

    @property
    def value(self) -> float:
        """The median; of samples with a base, the ratio of both medians."""
        return median(self.samples) / (median(self.base) if self.base else 1)

    @property
    def met(self) -> bool | None:
        """Whether the goal is met; None without one."""
        return None if self.goal is None else self.goal.met(self.value)
