"""Measure how far a copy is behind the source that it follows, in bytes and in seconds.

Stores do not say when a byte was written. So the seconds come from comparing with earlier looks:
what the source held at a look is in the target at a later one, or it is not yet.
"""

from __future__ import annotations

from collections import deque
from typing import TYPE_CHECKING, Final, NamedTuple

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from sluice.core.values.wish import Wish

SAMPLE_SECONDS: Final = 10.0
"""Seconds between two samples of the source's lengths."""

RESOLUTION: Final = 2.0
"""Seconds that are not told from none: the next look at a sample comes earlier."""

_MOST: Final = 64
"""Samples that are kept. Of more, every other one is dropped, and later ones are as far apart."""


class Age(NamedTuple):
    """How old what is missing is.

    Attributes:
        seconds: age of the oldest sample that is not reached; 0 if all are.
        certain: whether nothing older is missing. It is not known before a sample was reached.
        pending: whether the only sample that is not reached is so young that the next look decides.
    """

    seconds: float
    certain: bool
    pending: bool = False


class Samples:
    """Samples of a source's lengths, and whether they are reached."""

    def __init__(self) -> None:
        self._samples: deque[tuple[float, dict[int, int]]] = deque()
        self._sampled: float | None = None
        self._every = SAMPLE_SECONDS
        self._certain = False

    def read(self, now: float, ends: Mapping[int, int], reached: Callable[[int, int], bool]) -> Age:
        """Take a look.

        Args:
            now: the time in seconds.
            ends: the offset at which each of the source's segments ends now.
            reached: tells whether a segment's bytes are there up to an offset.
        """
        samples = self._samples
        while samples and all(reached(segment, end) for segment, end in samples[0][1].items()):
            samples.popleft()
            self._certain = True
        missing = {segment: end for segment, end in ends.items() if not reached(segment, end)}
        if not missing:
            samples.clear()
            self._certain = True
        if not samples:
            self._every = SAMPLE_SECONDS
        if missing and (self._sampled is None or now - self._sampled >= self._every):
            samples.append((now, missing))
            self._sampled = now
        if len(samples) > _MOST:
            self._samples = samples = deque(list(samples)[::2])
            self._every *= 2
        age = now - samples[0][0] if samples else 0.0
        return Age(age, self._certain, pending=bool(samples) and age < RESOLUTION)


class Followed(NamedTuple):
    """The progress of a copy that follows its source.

    Attributes:
        live: whether all planned bytes are readable in the target, so that it follows.
        position: bytes of the source that the target has.
        proved: how many of them were read back and compared, as recorded.
        lag_bytes: bytes that the source has and the target has not.
        lag: the age of the oldest of these bytes.
        unproved: the age of the oldest bytes that were not compared, or are not there.
        segments: segments that take events, and are followed.
        ended: segments of the source that were followed to their ends.
        sealed: whether the source takes no more events.
        stopped: why nothing more is followed; None while it goes on.
        wish: how it is to end, as the journal says; None while it cannot say so.
    """

    live: bool = False
    position: int = 0
    proved: int = 0
    lag_bytes: int = 0
    lag: Age = Age(0.0, certain=False)
    unproved: Age = Age(0.0, certain=False)
    segments: int = 0
    ended: int = 0
    sealed: bool = False
    stopped: str | None = None
    wish: Wish | None = None
