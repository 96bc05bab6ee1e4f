"""The model of the benchmarks: sources, runs, sides, comparisons of sides, and measurements."""

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
"""Bytes that each mixed length adds to the last one, modulo the number of lengths."""

_RELATIONS = {">=": operator.ge, "<=": operator.le, "<": operator.lt}


class BenchError(Exception):
    """A failed run, which leaves nothing to measure."""


@dataclass(frozen=True, slots=True)
class Source:
    """A stream to copy: a number of events, spread over segments.

    Attributes:
        events: number of events.
        size: bytes of each payload; the mean if they are mixed.
        segments: number of segments.
        kind: kind of payloads, see ForeignClient.write.
    """

    events: int
    size: int
    segments: int
    kind: Literal["padded", "orders", "mixed"] = "padded"

    @classmethod
    def of_bytes(cls, total: float, *, segments: int, size: int = 8184) -> Source:
        """Return a source of about `total` bytes. Larger events are written faster."""
        return cls(round(total / (size + EVENT_HEADER)), size, segments)

    @classmethod
    def of_orders(cls, total: float, *, segments: int) -> Source:
        """Return a source of about `total` bytes that compress like applications' data."""
        return replace(cls.of_bytes(total, segments=segments, size=_ORDER), kind="orders")

    @classmethod
    def of_mixed(cls, total: float, *, segments: int) -> Source:
        """Return a source of about `total` bytes in events of 60 to 140 bytes."""
        return replace(cls.of_bytes(total, segments=segments, size=_MIXED), kind="mixed")

    @property
    def bytes(self) -> int:
        """The bytes in the segments, all of which a copy moves."""
        return self.payload + self.events * EVENT_HEADER

    @property
    def payload(self) -> int:
        """The bytes of all payloads."""
        if self.kind != "mixed":
            return self.events * self.size
        lengths = self._lengths
        turns, rest = divmod(self.events, len(lengths))
        return turns * sum(lengths) + sum(lengths[:rest])

    @property
    def _lengths(self) -> list[int]:
        """One cycle of mixed lengths, the same as in `Mixed.java`."""
        shortest, number = self.size * 3 // 5, self.size * 4 // 5 + 1
        return [shortest + place * _STEP % number for place in range(number)]

    def scaled(self, scale: float) -> Source:
        """Return the same source with fewer events."""
        return replace(self, events=max(1, round(self.events * scale)))

    def __str__(self) -> str:
        """Return a description for users."""
        size = f"{self.size:,}"
        if self.kind == "mixed":
            size = f"{min(self._lengths):,} to {max(self._lengths):,}"
        return f"{self.events:,} x {size} B in {self.segments} segment(s)"


@dataclass(frozen=True, slots=True, kw_only=True)
class Run:
    """One timed copy.

    Attributes:
        seconds: the copy's duration in seconds.
        bytes: bytes copied.
        cpu: CPU seconds of the copier's processes, without the store's.
        store_cpu: CPU seconds of the store, and of the gateway if there is one, including their
            deferred work.
        peak_rss: peak memory of the largest Python worker, in bytes; None without workers.
        steps: seconds in each step of the protocol; empty without steps.
        retries: number of retries, which spoil the time.
        others: share of the machine's CPU time that other programs used meanwhile.
        stored: bytes of an archive's objects; None without an archive.
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
        """The speed in megabytes per second."""
        return self.bytes / MEGABYTE / self.seconds

    @property
    def cpu_per_gigabyte(self) -> float:
        """The CPU seconds to copy a gigabyte."""
        return self.cpu / self.bytes * GIGABYTE

    @property
    def store_cpu_per_gigabyte(self) -> float:
        """The CPU seconds that the store took for a gigabyte."""
        return self.store_cpu / self.bytes * GIGABYTE


class Side(Protocol):
    """One way to copy a source."""

    @property
    def name(self) -> str:
        """The side's name within its phase."""
        ...

    @property
    def source(self) -> Source:
        """The source of the copy."""
        ...

    def prepare(self, lab: Lab) -> None:
        """Warm up. This time is not measured."""
        ...

    def run(self, lab: Lab, target: str) -> Run:
        """Copy the source to a target that does not exist yet."""
        ...


class Goal(NamedTuple):
    """The wanted value of a comparison."""

    relation: Literal[">=", "<=", "<"]
    bound: float

    def met(self, value: float) -> bool:
        """Tell whether a value meets the goal."""
        return bool(_RELATIONS[self.relation](value, self.bound))

    def __str__(self) -> str:
        """Return a description for users."""
        return f"{self.relation} {self.bound:g}"


@dataclass(frozen=True, slots=True)
class Comparison:
    """A key of the results.

    Attributes:
        key: the key's name.
        ours: the side that is judged.
        theirs: the side to compare with; equal to `ours` if a run is judged by itself.
        metric: function that returns the compared number of a run.
        goal: the wanted value; None if the value is only reported.
    """

    key: str
    ours: str
    theirs: str
    metric: Callable[[Run], float]
    goal: Goal | None = None

    @property
    def is_alone(self) -> bool:
        """Tell whether runs are judged by themselves."""
        return self.ours == self.theirs


@dataclass(frozen=True, slots=True)
class Phase:
    """Sides that take turns on one store.

    Attributes:
        name: name for people.
        sides: sides in the order of their turns.
        comparisons: comparisons between the sides.
        rehearsal: sides that run once on each new store before the first measurement there.
            Some of `sides`, or sides of the same names with less to copy. None for all sides.
    """

    name: str
    sides: tuple[Side, ...]
    comparisons: tuple[Comparison, ...]
    rehearsal: tuple[Side, ...] | None = None

    @property
    def rehearsed(self) -> tuple[Side, ...]:
        """The sides that run once on each new store."""
        return self.sides if self.rehearsal is None else self.rehearsal

    def restricted(self, keys: Sequence[str]) -> Phase:
        """Return the phase with only these keys' comparisons, and the sides that they need."""
        comparisons = tuple(c for c in self.comparisons if c.key in keys)
        needed = {side for c in comparisons for side in (c.ours, c.theirs)}

        def kept(sides: tuple[Side, ...]) -> tuple[Side, ...]:
            return tuple(side for side in sides if side.name in needed)

        return Phase(self.name, kept(self.sides), comparisons, kept(self.rehearsed))


@dataclass(frozen=True, slots=True)
class Result:
    """The outcome of a comparison: the runs of both sides, pair by pair."""

    comparison: Comparison
    ours: tuple[Run, ...]
    theirs: tuple[Run, ...]

    def __post_init__(self) -> None:
        """Fail early if a run lacks a number.

        So its phase fails, and not the report of all phases.
        """
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
        """The ratio of the medians of both sides, or the median of a single side."""
        ours = median(map(self.comparison.metric, self.ours))
        if self.comparison.is_alone:
            return ours
        return ours / median(map(self.comparison.metric, self.theirs))

    @property
    def met(self) -> bool | None:
        """Tell whether the goal is met; None without a goal."""
        goal = self.comparison.goal
        return None if goal is None else goal.met(self.value)


@dataclass(frozen=True, slots=True)
class Measurement:
    """A key of the results without sides: mostly seconds, and a goal for them.

    Attributes:
        key: the key's name.
        samples: one value for each run.
        goal: the wanted value; None if the value is only reported.
        phases: median seconds of each phase of a run, in the order of time; may be empty.
        unit: unit of the samples; empty for numbers and ratios.
        counts: other reported numbers, by name.
        base: values to compare the samples with, from runs that took turns; may be empty.
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
        """The median, or the ratio of both medians if there is a base."""
        return median(self.samples) / (median(self.base) if self.base else 1)

    @property
    def met(self) -> bool | None:
        """Tell whether the goal is met; None without a goal."""
        return None if self.goal is None else self.goal.met(self.value)
