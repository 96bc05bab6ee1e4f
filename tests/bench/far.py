"""A copy within a store that is 40 ms away, with a limit of the bytes in flight.

Only the step that reads and appends all bytes counts. The other steps, of a few seconds, mostly
wait for the store's controller, which is as far from the segments as the copy.
"""

from __future__ import annotations

import time
from contextlib import contextmanager
from statistics import median
from typing import TYPE_CHECKING, Final

from bench.executors import SLOTS, copy, threads
from bench.model import MEGABYTE, Goal, Measurement, Source
from bench.ours import Stopwatch, copy_job
from bench.relay import Relay
from bench.scopes import local_store
from sluice.core.values.model import StreamName
from sluice.engine.tasks.limits import Limits

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from bench.scopes import Place

KEY: Final = "wan_40ms_vs_window"

_ROUND_TRIP: Final = 0.040
_WINDOW: Final = 4 << 20
"""Bytes in flight, so few that neither the store nor the relay bounds the speed."""

_SCOPE: Final = "far"
_KEYS: Final = 1000
_WRITE_SECONDS: Final = 900.0
_SOURCE: Final = Source.of_bytes(500e6, segments=4)


@contextmanager
def far_store(say: Callable[[str], None]) -> Iterator[Place]:
    """Provide a store whose segments are far away for all clients and for its own controller."""
    with Relay(_ROUND_TRIP) as relay, local_store(say, relay=relay) as place:
        yield place


def measure_far(
    place: Place, say: Callable[[str], None], *, runs: int, scale: float
) -> list[Measurement]:
    """Copy a stream several times, without verification, which would read all bytes again.

    Args:
        place: the store to measure in.
        say: callback for progress messages.
        runs: number of copies.
        scale: factor by which the stream shrinks.

    Raises:
        BenchError: the stream is not copied.
    """
    source = _SOURCE.scaled(scale)
    stream = StreamName(scope=_SCOPE, stream="source")
    place.java.create(_SCOPE, stream.stream, segments=source.segments)
    place.java.write(
        _SCOPE,
        stream.stream,
        events=source.events,
        size=source.size,
        keys=_KEYS,
        seconds=_WRITE_SECONDS,
    )
    say(f"wrote {source}")
    most = _WINDOW / _ROUND_TRIP
    speeds, wholes = [], []
    for number in range(runs + 1):
        target = StreamName(scope=_SCOPE, stream=f"target-{number}")
        limits = Limits(in_flight_bytes=_WINDOW)
        job = copy_job(
            place.store.controller_uri, stream, target, tasks=SLOTS, verify=False, limits=limits
        )
        begun, watch = time.monotonic(), Stopwatch()
        copy(job, source, threads, watch)
        end = time.monotonic()
        wholes.append(end - begun)
        speeds.append(source.bytes / watch.durations(end)["Transfer"])
        place.java.delete(_SCOPE, target.stream)
        say(
            f"{number} of {runs}: {speeds[-1] / MEGABYTE:.0f} of {most / MEGABYTE:.0f} MB/s, "
            f"and {wholes[-1]:.1f} s in all"
        )
    counts = {
        "MB/s": median(speeds[1:]) / MEGABYTE,
        "MB/s at most": most / MEGABYTE,
        "the whole copy, seconds": median(wholes[1:]),
    }
    shares = tuple(speed / most for speed in speeds[1:])  # the first copy was the warm-up
    return [Measurement(KEY, shares, Goal(">=", 0.6), unit="", counts=counts)]
