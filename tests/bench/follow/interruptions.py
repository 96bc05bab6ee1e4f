"""The time for which a target stands still: after a kill, at a scale event, and at a cutover."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING, Final

from bench.follow.followed import KEYS, SIZE, followed
from bench.model import BenchError, Goal, Measurement

if TYPE_CHECKING:
    from collections.abc import Callable

    from bench.follow.followed import Followed
    from bench.scopes import Place
    from localstore import ForeignClient

    Say = Callable[[str], None]

RESUME_KEY: Final = "follow_resume_s"
SCALE_KEY: Final = "follow_scale_stall_ms"
INTERRUPTED: Final = (RESUME_KEY, SCALE_KEY)
CUTOVER_KEY: Final = "cutover_s"

_RATE: Final = 10_000
_RUNS: Final = 5
_WARM: Final = 5.0
_CLEAR: Final = 0.5
"""Lag in seconds below which an interruption is over."""

_MS: Final = 1e3


def measure_interruptions(place: Place, say: Say) -> list[Measurement]:
    """Kill the follower, and scale the source, several times while events are written."""
    resumed, stalls = [], []
    java = place.java
    with followed(place) as ours, ours.lag() as lag:
        stop = java.start_writer(ours.scope, ours.source, rate=_RATE, size=SIZE, keys=KEYS)
        time.sleep(_WARM)
        for number in range(_RUNS):
            killed = time.monotonic()
            ours.kill()
            ours.start()
            resumed.append(lag.wait_below(1.0, since=killed + 1.0) - killed)
            lag.wait_below(_CLEAR, since=time.monotonic())
            time.sleep(_WARM)
            begun = time.monotonic()
            _scale(java, ours, merge=number % 2 == 1)
            lag.renew()
            time.sleep(_WARM)
            stalls.append(lag.worst(begun, time.monotonic()) * _MS)
            say(
                f"{number + 1} of {_RUNS}: {resumed[-1]:.2f} s after a kill, "
                f"{stalls[-1]:.0f} ms at a scale event"
            )
        stop()
    return [
        Measurement(RESUME_KEY, tuple(resumed), Goal("<", 2)),
        Measurement(SCALE_KEY, tuple(stalls), Goal("<", 1000), unit="ms"),
    ]


def measure_cutover(place: Place, say: Say) -> list[Measurement]:
    """Seal a source several times during writes. Measure from the wish to the follower's end."""
    seconds = []
    java = place.java
    for number in range(_RUNS):
        with followed(place) as ours:
            stop = java.start_writer(
                ours.scope, ours.source, rate=_RATE, size=SIZE, keys=KEYS, outlives=True
            )
            time.sleep(_WARM)
            seconds.append(ours.cut_over())
            stop()
        say(f"{number + 1} of {_RUNS}: cut over in {seconds[-1]:.2f} s")
    return [Measurement(CUTOVER_KEY, tuple(seconds), Goal("<", 3))]


def _scale(java: ForeignClient, ours: Followed, *, merge: bool) -> None:
    """Split the segment with the lowest keys, or merge the two with the lowest keys."""
    info = java.info(ours.scope, ours.source)
    last = sorted(
        (one.low, one.high, one.id)
        for one in info.segments
        if one.low is not None and one.high is not None
    )
    if merge:
        (low, _, first), (_, high, second) = last[:2]
        segments, ranges = [first, second], [(low, high)]
    else:
        low, high, first = last[0]
        middle = (low + high) / 2
        segments, ranges = [first], [(low, middle), (middle, high)]
    if not java.scale(ours.scope, ours.source, segments=segments, ranges=ranges):
        raise BenchError(f"{ours.source} was not scaled")
