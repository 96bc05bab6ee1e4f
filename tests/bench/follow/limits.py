"""The precision with which a follower keeps to a limit, and the delay of a new limit."""

from __future__ import annotations

import time
from statistics import median
from typing import TYPE_CHECKING, Final

from bench.follow.followed import KEYS, Followed, followed
from bench.model import BenchError, Goal, Measurement

if TYPE_CHECKING:
    from collections.abc import Callable

    from bench.scopes import Place

    Say = Callable[[str], None]

ERROR_KEY: Final = "follow_limit_error"
CHANGE_KEY: Final = "follow_limit_change_s"
LIMITED: Final = (ERROR_KEY, CHANGE_KEY)

_MIB: Final = 1 << 20
_LIMITS: Final = (1 * _MIB, 10 * _MIB, 50 * _MIB)
_SECONDS: Final = 30
_PAYLOAD: Final = 8184
_EVENT: Final = _PAYLOAD + 8
_TURNS: Final = 3
_WINDOW: Final = 0.5
"""Seconds over which a new speed is measured."""

_APPENDED: Final = 0.5
"""The part of a limit that appended bytes have. The others are the same bytes, read back."""

_PATIENCE: Final = 15.0
"""Seconds for which a new limit is waited for. The bytes that are written last for 20."""


def measure_limits(place: Place, say: Say) -> list[Measurement]:
    """Follow events that a writer has written at once, and change a limit midway.

    A limit counts appended bytes and bytes that are read back, as for any copy. So the follower
    moves twice the bytes until it ends, when it has compared all of them.
    """
    errors, counts = [], {}
    for limit in _LIMITS:
        speed = _speed(place, limit)
        errors.append(abs(speed / limit - 1))
        counts[f"MiB/s at {limit // _MIB} MiB/s"] = speed / _MIB
        say(f"{speed / _MIB:.2f} MiB/s at {limit // _MIB} MiB/s")
    changes = [_change(place) for _ in range(_TURNS)]
    say(f"a new limit holds after {', '.join(f'{one:.1f}' for one in changes)} s")
    return [
        Measurement(ERROR_KEY, (max(errors),), Goal("<=", 0.1), unit="", counts=counts),
        Measurement(CHANGE_KEY, tuple(changes), Goal("<", 10), counts={"median": median(changes)}),
    ]


def _speed(place: Place, limit: int) -> float:
    """Return the bytes per second that a limited follower moves until it ends."""
    with followed(place) as ours:
        ours.limit(limit)
        time.sleep(1.0)
        events = limit * _SECONDS // 2 // _EVENT
        begun = time.monotonic()
        _write(place, ours, events)
        place.java.seal(ours.scope, ours.source)
        ours.wait_end()
        return 2 * events * _EVENT / (time.monotonic() - begun)


def _change(place: Place) -> float:
    """Return the seconds until a follower is as fast as a new limit allows."""
    slow, fast = _LIMITS[:2]
    with followed(place) as ours, ours.lag() as lag:
        ours.limit(slow)
        time.sleep(1.0)
        begun = time.monotonic()
        _write(place, ours, 10 * fast // _EVENT)
        lag.wait(lambda sample: sample.target > _MIB, since=begun)
        changed = time.monotonic()
        ours.limit(fast)
        while (last := lag.wait(lambda _: True, since=time.monotonic())).at < changed + _PATIENCE:
            grown = [one for one in lag.samples() if one.at >= max(changed, last.at - _WINDOW)]
            if last.target - grown[0].target > _APPENDED * fast * _WINDOW * 0.9:
                return last.at - changed
        raise BenchError(f"{_PATIENCE:.0f} s after its limit was raised, the follower is slow")


def _write(place: Place, ours: Followed, events: int) -> None:
    place.java.write(ours.scope, ours.source, events=events, size=_PAYLOAD, keys=KEYS)
