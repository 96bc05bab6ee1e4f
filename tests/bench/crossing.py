"""The size above which a cold Spark copies a stream faster than threads of one process."""

from __future__ import annotations

import time
from itertools import pairwise
from statistics import median
from typing import TYPE_CHECKING, Final

from bench.executors import SLOTS, cold_spark, copy, threads
from bench.lab import SCOPE
from bench.model import Measurement, Source
from bench.ours import copy_job
from sluice.core.values.model import StreamName

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from bench.executors import Place
    from bench.lab import Lab

KEY: Final = "crossing_bytes"

_MIB: Final = 1 << 20
_SIZES: Final = (8, 16, 32, 64, 128)
_EVENT: Final = 1016
"""Payload bytes of an event. With their headers, 1,024 events fill a MiB."""

_PLACES: Final[dict[str, Place]] = {"threads": threads, "cold Spark": cold_spark}


def measure_crossing(
    lab: Lab, say: Callable[[str], None], *, runs: int, scale: float
) -> list[Measurement]:
    """Copy streams of several sizes by threads and by a cold Spark in turn.

    Args:
        lab: the lab to measure in.
        say: callback for progress messages.
        runs: runs of each size.
        scale: factor by which the sizes shrink.

    Raises:
        BenchError: a stream is not copied.
    """
    sources = [
        Source.of_bytes(size * _MIB, segments=4, size=_EVENT).scaled(scale) for size in _SIZES
    ]
    seconds: dict[str, list[list[float]]] = {way: [[] for _ in sources] for way in _PLACES}
    lab.make_room((runs + 1) * len(_PLACES) * sum(source.bytes for source in sources))
    for number in range(runs + 1):
        for size, source in enumerate(sources):
            for way, place in _PLACES.items():
                seconds[way][size].append(_copy(lab, source, place))
            said = (f"{way} {each[size][-1]:.2f} s" for way, each in seconds.items())
            say(f"{number} of {runs}: {source.bytes / _MIB:g} MiB by {', '.join(said)}")
    # The first run was the warm-up.
    medians = {way: [median(one[1:]) for one in each] for way, each in seconds.items()}
    counts = {
        f"{source.bytes / _MIB:g} MiB by {way}, s": each[size]
        for size, source in enumerate(sources)
        for way, each in medians.items()
    }
    found = crossing([source.bytes for source in sources], *medians.values())
    return [Measurement(KEY, (found,), unit="B", counts=counts)]


def crossing(sizes: Sequence[int], ours: Sequence[float], others: Sequence[float]) -> float:
    """Return the size at which both ways take the same time, by linear interpolation.

    Args:
        sizes: ascending sizes in bytes.
        ours: seconds for each size, of the way that is faster for small sizes.
        others: seconds for each size, of the way that is faster for large sizes.

    Returns:
        The size in bytes. The first size if our way is never faster. The last size if it always
        is; the lines may then cross beyond it.
    """
    late = [one - other for one, other in zip(ours, others, strict=True)]
    if late[0] >= 0:
        return sizes[0]
    for (size, before), (larger, after) in pairwise(zip(sizes, late, strict=True)):
        if after >= 0:
            return size + (larger - size) * before / (before - after)
    return sizes[-1]


def _copy(lab: Lab, source: Source, place: Place) -> float:
    """Copy the source and return the seconds."""
    stream = StreamName(scope=SCOPE, stream=lab.source(source))
    lab.settle()
    with lab.target(source) as target:
        job = copy_job(lab.uri, stream, StreamName(scope=SCOPE, stream=target), tasks=SLOTS)
        begun = time.monotonic()
        copy(job, source, place)
        return time.monotonic() - begun
