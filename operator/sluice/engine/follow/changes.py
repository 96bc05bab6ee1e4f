"""Announce changes of a target's configuration, so that none comes after a later scale event.

A store changes a configuration without a condition, and scales the stream to the number of segments
that it names. A change that comes late names a number that the target had before. So a driver
writes a change down in the journal before it makes it, and makes it soon or not at all. Another
driver that is about to scale the target, or to give it up as whole, waits until all such changes
have come, or cannot come any more.
"""

from __future__ import annotations

from contextlib import contextmanager
from typing import TYPE_CHECKING, Final
from uuid import uuid4

from sluice.core.copy.follow_progress import change_record, changed_record, scaled_record
from sluice.errors import StoreBusy

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from sluice.core.copy.journal import Journal
    from sluice.engine.journal.copy_journal import CopyJournal
    from sluice.engine.tasks.clock import Clock

HELD_SECONDS: Final = 20.0
"""Most seconds from the announcement of a change until it is sent."""

LATE_SECONDS: Final = 60.0
"""Seconds from the announcement of a change after which it does not come any more: it is sent
within the first of them, and no call is under way for longer than the rest."""

_LOOK_SECONDS: Final = 1.0
"""Seconds between two looks at the journal, while changes may come."""


class Changes:
    """The changes of one copy's target, for a driver that makes some and waits for others.

    Args:
        log: the copy's journal.
        clock: time.
        pause: called while this waits for changes of others. It may raise to end that.
    """

    def __init__(self, log: CopyJournal, clock: Clock, pause: Callable[[], object]) -> None:
        self._log = log
        self._clock = clock
        self._pause = pause
        self._since: dict[str, float] = {}

    def note(self, journal: Journal) -> None:
        """Take in which changes may come: time counts from the first look at each."""
        now, known = self._clock.monotonic(), self._since
        self._since = {name: known.get(name, now) for name in journal.trail.changes}

    @contextmanager
    def announced(self, journal: Journal) -> Iterator[Callable[[], bool]]:
        """Announce a change, and take it back afterwards, unless it fails: then it may still come.

        Args:
            journal: the journal from which the change was decided.

        Yields:
            What tells, directly before the change, whether there is still time for it.

        Raises:
            StoreBusy: another driver has gone on since the change was decided.
            NoSuchSegment, CopyAborted: the journal was deleted.
        """
        name = uuid4().hex
        began = self._clock.monotonic()
        self._log.write([change_record(name)])
        now = self._log.loaded
        known = now is not None and name in now.trail.changes
        if now is None or not known or _way(now) != _way(journal):
            self._log.write([changed_record(name)])
            raise StoreBusy(f"the copy to {journal.plan.target} has gone on")
        yield lambda: self._clock.monotonic() - began < HELD_SECONDS
        self._log.write([changed_record(name)])

    def wait_to_scale(self, journal: Journal, generation: int) -> None:
        """Wait until the target may be scaled. From now on no other driver begins a change.

        Args:
            journal: the journal from which that was decided.
            generation: the generation to which it is scaled.

        Raises:
            NoSuchSegment, CopyAborted: the journal was deleted.
        """
        if journal.trail.scaled < generation:
            self._log.write([scaled_record(generation)])
        self.wait(self._log.loaded or journal)

    def wait(self, journal: Journal) -> None:
        """Wait until no change that was announced so far can come any more.

        Those of dead drivers are taken back here.

        Raises:
            NoSuchSegment, CopyAborted: the journal was deleted.
        """
        left = set(journal.trail.changes)
        while left:
            now = self._clock.monotonic()
            since = {name: self._since.setdefault(name, now) for name in left}
            over = {name for name in left if now - since[name] >= LATE_SECONDS}
            if over:
                self._log.write([changed_record(name) for name in sorted(over)])
            left -= over
            if not left:
                return
            self._pause()
            self._clock.sleep(_LOOK_SECONDS)
            found = self._log.load()
            left &= set() if found is None else set(found.trail.changes)


def _way(journal: Journal) -> tuple[object, ...]:
    """Return what another driver decides before it scales the target, or gives it up as whole."""
    return journal.trail.scaled, journal.trail.stopped, journal.trail.left
