"""Notice that something came in streams that are parked: a question a second for each segment.

A read that waits at the tail of each segment would take a connection, and memory in the store, for
streams in which nothing may come for days.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final, NamedTuple

from sluice.engine.access import parallel
from sluice.engine.follow.work import FollowWork
from sluice.errors import SluiceError

if TYPE_CHECKING:
    from collections.abc import Sequence

    from sluice.core.values.model import SegmentInfo
    from sluice.engine.tasks.work import CopyRun
    from sluice.stores.base import Source
    from sluice.stores.reading import SegmentReader

REST_SECONDS: Final = 60.0
"""Seconds after which a parked stream is looked at anyhow: for the source's configuration, for what
its retention took, and for what other clients did to the target."""

_JOURNALS: Final = 10
"""Of so many looks, one also looks for what other drivers have recorded in the journals."""

_TOGETHER: Final = 64
"""Streams that are asked about in one go. If that fails, a thread looks at each of them."""


class _Parked(NamedTuple):
    """What is asked about a parked stream.

    Attributes:
        number: its place.
        sources: its segments in the source, and how long they were.
        journal: its journal, and how long that was.
    """

    number: int
    sources: tuple[tuple[str, int], ...]
    journal: tuple[str, int]


class Parking:
    """Looks after parked streams.

    Args:
        source: the store of the sources.
        target: the target store.
        rest: seconds after which a parked stream is looked at anyhow.

    Attributes:
        asked: how many segments were asked about at the last look.
    """

    def __init__(self, source: Source, target: SegmentReader, rest: float = REST_SECONDS) -> None:
        self._source = source
        self._target = target
        self._rest = rest
        self._looks = 0
        self.asked = 0

    def stirred(self, parked: Sequence[tuple[CopyRun, float]], now: float) -> list[int]:
        """Return the places of the streams that a thread has to look at.

        Args:
            parked: the parked streams, and since when.
            now: the time.
        """
        due, quiet = [], []
        for run, since in parked:
            asked = self._asked(run) if now - since < self._rest else None
            if asked is None:
                due.append(run.copy.number)
            else:
                quiet.append(asked)
        self._looks += 1
        self.asked = sum(len(one.sources) for one in quiet)
        for found in parallel.each(self._look, [*parallel.batches(quiet, _TOGETHER)]):
            due += found
        return due

    def _asked(self, run: CopyRun) -> _Parked | None:
        work = run.copy
        if not isinstance(work, FollowWork) or work.standing is None:
            return None
        stream, journal = work.plan.sources[0].stream, work.journal
        names = (
            (self._source.segment_name(stream, segment), at)
            for segment, at in work.standing.positions
        )
        return _Parked(work.number, tuple(names), (journal.name, journal.end))

    def _look(self, batch: Sequence[_Parked]) -> list[int]:
        """Return the places of those in which something came, or changed."""
        try:
            lengths = self._source.infos([name for one in batch for name, _ in one.sources])
            journals = [one.journal[0] for one in batch] if not self._looks % _JOURNALS else []
            records = iter(self._target.infos(journals) if journals else [])
        except SluiceError:
            return [one.number for one in batch]  # one may fail, and must not keep others back
        infos = iter(lengths)
        found = []
        for one in batch:
            changed = [_has_changed(next(infos), at) for _, at in one.sources]
            if journals:
                changed.append(_has_changed(next(records), one.journal[1]))
            if any(changed):
                found.append(one.number)
        return found


def _has_changed(info: SegmentInfo | None, length: int) -> bool:
    """Tell whether a segment is gone or sealed, or has another length than it had."""
    return info is None or info.sealed or info.length != length
