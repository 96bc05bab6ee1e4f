"""The highest rate that a follower keeps up with, and its speed when it catches up."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING, Final

from bench.follow.followed import KEYS, SIZE, STORED, Followed, followed
from bench.model import Goal, Measurement

if TYPE_CHECKING:
    from collections.abc import Callable

    from bench.scopes import Place
    from localstore import ForeignClient

    Say = Callable[[str], None]

KEY: Final = "follow_events_per_s"

RATES: Final = (25_000, 50_000, 100_000, 150_000, 200_000, 250_000, 300_000)
_WARM: Final = 3.0
_SECONDS: Final = 10.0
_MOST: Final = 1.0
_BACKLOG: Final = 2_000_000
"""Events of a backlog, which a follower catches up with."""

_FULL: Final = 0.95
"""Share of its rate that a writer must reach, on shared processors."""


def measure_speed(place: Place, say: Say) -> list[Measurement]:
    """Write at rising rates, and find the last one at which the target stays near its source."""
    found, limits = 0.0, {}
    with followed(place) as ours:
        for rate in RATES:
            wrote, worst = _at(place.java, ours, rate)
            say(f"{wrote:,.0f} of {rate:,} events/s: at most {worst:.2f} s behind")
            limits[f"longest lag at {wrote:,.0f} events/s, s"] = worst
            if worst >= _MOST:
                break
            found = max(found, wrote)
            if wrote < _FULL * rate:
                break
        speed = _catch_up(place.java, ours)
        say(f"{speed:,.0f} events/s from behind")
    counts = limits | {"events/s from behind": speed}
    return [Measurement(KEY, (found,), Goal(">=", 200_000), unit="", counts=counts)]


def _at(java: ForeignClient, ours: Followed, rate: int) -> tuple[float, float]:
    """Return the rate at which events were written, and the longest lag."""
    with ours.lag() as lag:
        stop = java.start_writer(ours.scope, ours.source, rate=rate, size=SIZE, keys=KEYS)
        time.sleep(_WARM)
        begun = time.monotonic()
        time.sleep(_SECONDS)
        worst = lag.worst(begun, time.monotonic())
        wrote = stop()
        lag.wait_below(_MOST, since=time.monotonic())
    return wrote.events / wrote.seconds, worst


def _catch_up(java: ForeignClient, ours: Followed) -> float:
    """Return the speed of a follower with a large backlog."""
    ours.kill()
    java.write(ours.scope, ours.source, events=_BACKLOG, size=SIZE, keys=KEYS)
    with ours.lag() as lag:
        before = lag.wait(lambda _: True, since=0.0).target
        begun = time.monotonic()
        ours.start()
        first = lag.wait(lambda sample: sample.target > before, since=begun)
        whole = before + _BACKLOG * STORED
        last = lag.wait(lambda sample: sample.target >= whole, since=begun)
    return _BACKLOG / (last.at - first.at)
