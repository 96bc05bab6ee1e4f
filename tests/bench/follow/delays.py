"""Delays at a steady rate, against the official client's own loop, and the cost of a follower."""

from __future__ import annotations

import time
from contextlib import ExitStack
from statistics import median
from typing import TYPE_CHECKING, Final, NamedTuple

from bench.follow.followed import KEYS, SCOPE, SEGMENTS, SIZE, followed
from bench.model import MEGABYTE, BenchError, Goal, Measurement

if TYPE_CHECKING:
    from collections.abc import Callable

    from bench.scopes import Place
    from localstore.reports import Delays, Paced

    Say = Callable[[str], None]

P50_KEY: Final = "follow_p50_ms"
P99_KEY: Final = "follow_p99_ms"
JAVA_KEY: Final = "follow_vs_java"
CORES_KEY: Final = "follow_cores"
IDLE_KEY: Final = "follow_idle_cores"
MEMORY_KEY: Final = "follow_rss_mb"
TIMED: Final = (P50_KEY, P99_KEY, JAVA_KEY, CORES_KEY, IDLE_KEY, MEMORY_KEY)

RATE: Final = 10_000
RUNS: Final = 3
_WARM: Final = 10.0
_SECONDS: Final = 30.0
_IDLE: Final = 30.0


class _Turn(NamedTuple):
    """One turn: delays of readers of source and target, and the follower's use of resources."""

    source: Delays
    target: Delays
    cores: float

    @property
    def p50(self) -> float:
        return self.target.p50_ms - self.source.p50_ms

    @property
    def p99(self) -> float:
        return self.target.p99_ms - self.source.p99_ms


def measure_delays(place: Place, say: Say) -> list[Measurement]:
    """Write stamped events, and read them in the source and in the target.

    The follower and the client's own loop take turns, each with streams of its own.
    """
    java = place.java
    with ExitStack() as stack:
        ours = stack.enter_context(followed(place))
        theirs = ("relayed-source", "relayed-target")
        for name in theirs:
            java.create(SCOPE, name, segments=SEGMENTS)
        mine, other, idle, memory = [], [], [], []
        for number in range(RUNS + 1):  # the first turn is the warm-up
            mine.append(_turn(place, ours.source, ours.target, lambda: ours.cpu_seconds))
            memory.append(ours.rss)
            before = ours.cpu_seconds
            begun = time.monotonic()
            with java.relay(SCOPE, *theirs):
                other.append(_turn(place, *theirs, lambda: 0.0))
            if number == 0:
                time.sleep(_IDLE)
            idle.append((ours.cpu_seconds - before) / (time.monotonic() - begun))
            say(
                f"{number} of {RUNS}: p50 {mine[-1].p50:.1f} ms, p99 {mine[-1].p99:.1f} ms; "
                f"Java p50 {other[-1].p50:.1f} ms, p99 {other[-1].p99:.1f} ms; "
                f"{mine[-1].cores:.2f} cores, idle {idle[-1]:.3f}, {memory[-1] / MEGABYTE:.0f} MB"
            )
    mine, other = mine[1:], other[1:]
    whole = {
        "target's p50, ms": median(turn.target.p50_ms for turn in mine),
        "target's p99, ms": median(turn.target.p99_ms for turn in mine),
        "source's p50, ms": median(turn.source.p50_ms for turn in mine),
        "source's p99, ms": median(turn.source.p99_ms for turn in mine),
        "target's longest, ms": max(turn.target.max_ms for turn in mine),
    }
    loop = {
        "the client's p50, ms": median(turn.p50 for turn in other),
        "the client's p99, ms": median(turn.p99 for turn in other),
        "the client's longest, ms": max(turn.target.max_ms for turn in other),
    }
    growth = {"grew by, MB": (memory[-1] - memory[1]) / MEGABYTE}
    p99 = tuple(turn.p99 for turn in mine)
    return [
        Measurement(P50_KEY, tuple(t.p50 for t in mine), Goal("<=", 10), unit="ms", counts=whole),
        Measurement(P99_KEY, p99, Goal("<", 100), unit="ms"),
        Measurement(
            JAVA_KEY, p99, Goal("<=", 1), unit="", counts=loop, base=tuple(t.p99 for t in other)
        ),
        Measurement(CORES_KEY, tuple(t.cores for t in mine), Goal("<", 0.3), unit=""),
        Measurement(IDLE_KEY, tuple(idle[1:]), Goal("<", 0.01), unit=""),
        Measurement(
            MEMORY_KEY,
            tuple(bytes_ / MEGABYTE for bytes_ in memory[1:]),
            Goal("<", 120),
            unit="MB",
            counts=growth,
        ),
    ]


def _turn(place: Place, source: str, target: str, cpu: Callable[[], float]) -> _Turn:
    java = place.java
    with java.delays(SCOPE, source) as at_source, java.delays(SCOPE, target) as at_target:
        stop = java.start_writer(SCOPE, source, rate=RATE, size=SIZE, keys=KEYS, stamped=True)
        time.sleep(_WARM)
        at_source(), at_target()
        begun, before = time.monotonic(), cpu()
        time.sleep(_SECONDS)
        here, there = at_source(), at_target()
        cores = (cpu() - before) / (time.monotonic() - begun)
        _check(stop(), there)
    return _Turn(here, there, cores)


def _check(wrote: Paced, read: Delays) -> None:
    """Raise BenchError if the writer or the reader did not keep the rate."""
    for events, seconds in ((wrote.events, wrote.seconds), (read.events, _SECONDS)):
        if not 0.9 < events / seconds / RATE < 1.1:
            raise BenchError(f"{events / seconds:,.0f} events/s in place of {RATE:,}")
