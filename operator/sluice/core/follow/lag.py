"""Measure how far a copy is behind the source that it follows, in bytes and in seconds.

Stores do not say when a byte was written. So the seconds come from comparing with earlier looks:
what the source held at a look is in the target at a later one, or it is not yet.
"""

from __future__ import annotations

from collections import deque
from typing import TYPE_CHECKING, Final, Generic, NamedTuple, TypeVar

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from sluice.core.scope.scope import StreamResult
    from sluice.core.values.wish import SealClaim, Wish

SAMPLE_SECONDS: Final = 10.0
"""Seconds between two samples of the source's lengths."""

RESOLUTION: Final = 2.0
"""Seconds that are not told from none: the next look at a sample comes earlier."""

WORST: Final = 10
"""Streams of a scope that are named with their lag, at most."""

FAILURES: Final = 50
"""Streams of a scope that are named as failed, at most."""

NOTHING_LEFT: Final = "NothingLeft"
"""Stands for the reason why a scope is followed no more, where no stream has one."""

_MOST: Final = 64
"""Samples of one stream that are kept."""


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


K = TypeVar("K")
"""What names a segment of a source."""


class Samples(Generic[K]):
    """Samples of lengths of sources, and whether they are reached.

    Args:
        most: samples that are kept. Of more, every other one is dropped, and later ones are as far
            apart.
    """

    def __init__(self, most: int = _MOST) -> None:
        self._most = most
        self._samples: deque[tuple[float, dict[K, int]]] = deque()
        self._sampled: float | None = None
        self._every = SAMPLE_SECONDS
        self._certain = False

    def read(self, now: float, ends: Mapping[K, int], reached: Callable[[K, int], bool]) -> Age:
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
        if len(samples) > self._most:
            self._samples = samples = deque(list(samples)[::2])
            self._every *= 2
        age = now - samples[0][0] if samples else 0.0
        return Age(age, self._certain, pending=bool(samples) and age < RESOLUTION)

    def ages(self, now: float, reached: Callable[[K, int], bool]) -> dict[K, float]:
        """Return for how many seconds segments have lacked bytes, of those that `read` has seen."""
        found: dict[K, float] = {}
        for at, ends in self._samples:
            for segment, end in ends.items():
                if segment not in found and not reached(segment, end):
                    found[segment] = now - at
        return found


class StreamLag(NamedTuple):
    """How far the target of one stream of a scope is behind.

    Attributes:
        stream: its name in the source's scope.
        bytes: bytes that the source has and the target has not.
        seconds: for how long at least the target has lacked the oldest of them.
    """

    stream: str
    bytes: int
    seconds: float


class FollowedStreams(NamedTuple):
    """The streams of a scope that is followed.

    Attributes:
        followed: streams that are followed.
        coming: streams whose planned bytes are not all readable in the target yet.
        ended: streams whose copy has ended, with their targets complete.
        failed: streams that cannot be copied.
        joined: those of all these that the scope has got since the copy was planned.
        sealed: streams whose sources take no more events.
        worst: the streams that are furthest behind, the first one most; at most `WORST`.
        failures: of the streams that failed, the first `FAILURES` with the reasons.
    """

    followed: int = 0
    coming: int = 0
    ended: int = 0
    failed: int = 0
    joined: int = 0
    sealed: int = 0
    worst: tuple[StreamLag, ...] = ()
    failures: tuple[StreamResult, ...] = ()

    @property
    def total(self) -> int:
        """All streams of the copy."""
        return self.followed + self.coming + self.ended + self.failed


class Followed(NamedTuple):
    """The progress of a copy that follows its source.

    Of a scope these are the sums over its streams that have not failed, and the ages of the oldest
    bytes of any of them.

    Attributes:
        live: whether all planned bytes are readable in the target, so that it follows. Of a scope,
            streams that join later do not count.
        position: bytes of the source that the target has.
        proved: how many of them were read back and compared, as recorded.
        lag_bytes: bytes that the source has and the target has not.
        lag: the age of the oldest of these bytes.
        unproved: the age of the oldest bytes that were not compared, or are not there.
        segments: segments that take events, and are followed.
        ended: segments of the source that were followed to their ends.
        sealed: whether the source takes no more events; all sources of a scope.
        stopped: why nothing more is followed; None while it goes on.
        wish: how it is to end, as the journal says; None while it cannot say so.
        claims: the consents that the journal has for the present wish: one if that is to seal the
            source; None if it was not looked at.
        streams: the streams of a scope; None for the copy of one stream.
        catching: of what is staged since the target was far behind, the bytes that are there, and
            all of them; None while nothing is.
        results: all streams of a scope, for people to look at; None before it is live.
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
    claims: tuple[SealClaim, ...] | None = None
    streams: FollowedStreams | None = None
    catching: tuple[int, int] | None = None
    results: tuple[StreamResult, ...] | None = None
