"""Notice within about a second that another step of a followed copy has to be decided.

Another driver may have recorded something, or its owner another wish, or the wish may come true.
While nothing is wished, all that is asked is the journal's length.
"""

from __future__ import annotations

from datetime import UTC, datetime
from typing import TYPE_CHECKING, Final

from sluice.core.follow.ending import NEAR, is_sealing, is_time, may_seal, quiet_end
from sluice.core.follow.rows import row_of
from sluice.engine.follow.observe import source_name

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from sluice.core.copy.journal import Journal
    from sluice.engine.journal.copy_journal import CopyJournal
    from sluice.engine.tasks.clock import Clock
    from sluice.stores.base import Source

LOOK_SECONDS: Final = 1.0
"""Seconds between two looks."""

CONFIG_SECONDS: Final = 60.0
"""Seconds after which the source's retention and tags are looked at."""


def wall_clock() -> datetime:
    """Return the time."""
    return datetime.now(UTC)


class Quiet:
    """For how long nothing has come in a source.

    It goes by the ends of its segments, so bytes that another driver has followed count too. It
    begins anew with each driver, and does not depend on what time a clock shows.

    Args:
        clock: time.
    """

    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self._since = clock.monotonic()
        self._ends: dict[int, int] = {}

    def note(self, ends: Mapping[int, int]) -> None:
        """Take in up to where segments have bytes, by their index in the plan."""
        if any(self._ends.get(index) != end for index, end in ends.items()):
            self._ends |= ends
            self._since = self._clock.monotonic()

    @property
    def seconds(self) -> float:
        """The seconds since the last bytes came."""
        return self._clock.monotonic() - self._since


class Watch:
    """Looks whether something else is to be decided than was when a step was decided.

    Args:
        journal: the journal from which the step was decided.
        log: the copy's journal.
        source: the store of the source.
        quiet: for how long nothing has come.
        key: the key by which wishes of the copy's owner to seal the source are known.
        clock: time.
        wall: returns the time of the day.
        settled: whether no scale event of the source was still to be followed, when the step was
            decided. If one was, most that is wished has to wait, and the step ends by that event.
        changed: tells whether the source has another retention or other tags. It is asked about
            once a minute.
        far: bytes behind from which on this driver stages, which is looked at as often; None for
            any number.

    Attributes:
        positions: for each segment that is followed, the source offset up to which bytes were
            confirmed. Without any, only the journal is looked at.
    """

    def __init__(
        self,
        journal: Journal,
        log: CopyJournal,
        source: Source,
        *,
        quiet: Quiet,
        key: str,
        clock: Clock,
        wall: Callable[[], datetime],
        settled: bool,
        changed: Callable[[], bool],
        far: int | None = None,
    ) -> None:
        self.positions: dict[int, int] = {}
        self.quiet = quiet
        self._seen = journal
        self._way = _way(journal)
        self._log = log
        self._source = source
        self._key = key
        self._clock = clock
        self._wall = wall
        self._settled = settled
        self._changed = changed
        self._far = far
        self._looked = self._configured = clock.monotonic()
        self._due = False

    def is_due(self) -> bool:
        """Tell whether another step has to be decided. Looks once a second at most."""
        now = self._clock.monotonic()
        if not self._due and now - self._looked >= LOOK_SECONDS:
            self._looked = now
            journal = self._log.load()
            self._due = journal is None or self._has_changed(journal) or self._is_over(journal)
        return self._due

    def _has_changed(self, journal: Journal) -> bool:
        """Tell whether another client has decided something since."""
        if journal is self._seen:
            return False
        self._seen = journal
        return _way(journal) != self._way

    def _is_over(self, journal: Journal) -> bool:
        """Tell whether what is wished has come true. The step is decided by another look."""
        wish = journal.trail.wish
        if not self.positions or is_sealing(journal, self._key):
            return False
        if self._clock.monotonic() - self._configured >= CONFIG_SECONDS:
            self._configured = self._clock.monotonic()
            if self._changed() or self._catches_up(journal):
                return True
        if may_seal(journal, self._key):
            return self._settled and self._lag(journal) <= NEAR
        at_rest = self._settled and quiet_end(wish, self.quiet.seconds) is not None
        return is_time(wish, self._wall()) or (at_rest and not self._lag(journal))

    def _catches_up(self, journal: Journal) -> bool:
        """Tell whether a catch-up is to be begun, or can be ended as its bytes were followed."""
        begun = journal.trail.catch_up
        if begun is None or not journal.trail.catches_up:
            return self._far is not None and self._lag(journal) > self._far
        rows = zip(begun.rows, begun.segments, strict=True)
        return all(self.positions.get(row, one.end) > one.start for row, one in rows)

    def _lag(self, journal: Journal) -> int:
        """Return the bytes that are not followed yet, of the segments that are."""
        rows = [row_of(journal, index) for index in self.positions]
        infos = self._source.infos([source_name(journal.plan, row, self._source) for row in rows])
        return sum(
            info.length - self.positions[row.index]
            for row, info in zip(rows, infos, strict=True)
            if info is not None
        )


def _way(journal: Journal) -> tuple[object, ...]:
    """Return what another client may have decided."""
    trail = journal.trail
    wished = trail.wishes, trail.wish, trail.consent, trail.sealing
    return journal.current.segments, trail.lost, trail.stopped, trail.left, wished
