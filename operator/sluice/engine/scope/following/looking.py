"""Look at the streams of a scope that are followed, by what their stores hold.

Only metadata is read, in pipelined questions, and a look asks about a bounded number of streams. A
stream in which nothing came since the last look costs a question for each segment of its source.
"""

from __future__ import annotations

from collections import OrderedDict
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final, TypeVar

from sluice.core.copy.plan import StreamPlan
from sluice.core.follow.course import course_of, reach_of
from sluice.core.follow.position import position_of
from sluice.core.follow.rows import proved
from sluice.engine.access import parallel
from sluice.engine.copy.progress import staged_bytes
from sluice.engine.follow.lag import (
    is_live,
    is_sealed,
    later_segments,
    positions_asked,
    source_names,
)
from sluice.engine.journal.copy_journal import CopyJournal
from sluice.errors import SluiceError

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from sluice.core.follow.course import Course, Later, Reach
    from sluice.core.values.model import SegmentInfo
    from sluice.engine.scope.planners.base import Item
    from sluice.stores.base import Source, Store

LOOKED_AT: Final = 128
"""Streams that are not live yet of which a look tells how far they are, in the order in which they
are begun. It is twice as many as drivers work on at once."""

FOUND: Final = 1024
"""Most streams that a look finds to be live."""

ASKED: Final = 16_384
"""Most segments of sources that a look asks about. With more, the streams take turns."""

READERS: Final = 256
"""Most journals that are kept in memory. That of a stream in which nothing comes is not needed."""

READ_ANEW: Final = 32
"""Most journals that a look reads from their beginning, of streams that are known to be live."""

LATER: Final = 32
"""Most streams of which a look asks how their sources go on behind segments that have ended."""

TOGETHER: Final = 64
"""Streams that are asked about in one go. If that fails, they are as they were seen before."""

A = TypeVar("A")


@dataclass(slots=True)
class LiveState:
    """A stream that is live, as it was seen last.

    Attributes:
        plan: its plan in the scope's.
        course: what its journal says.
        journal: the name of its journal, and up to where it was read.
        infos: the segments of its source.
        places: up to which source offset they are followed; None where that is not known.
        later: segments of its source that the target does not mirror yet.
        sealed: whether its source takes no more events.
        looked: the number of the look at which it was asked about.
    """

    plan: StreamPlan
    course: Course
    journal: tuple[str, int]
    infos: list[SegmentInfo | None]
    places: list[int | None]
    later: tuple[Later, ...] = ()
    sealed: bool = False
    looked: int = 0

    @property
    def reach(self) -> Reach:
        """How far it is."""
        return reach_of(self.course, self.infos, self.places, self.later)

    @property
    def is_behind(self) -> bool:
        """Whether a segment of its source has ended, or is gone."""
        return any(info is None or info.sealed for info in self.infos)

    @property
    def at_rest(self) -> bool:
        """Whether nothing can have changed but its source."""
        known = zip(self.course.ways, self.infos, self.places, strict=True)
        return all(
            info is not None and not info.sealed and info.length == place == way.compared
            for way, info, place in known
        )

    def turn(self, course: Course, journal: tuple[str, int]) -> bool:
        """Take in what its journal says. Return whether other segments are followed now."""
        self.journal = journal
        before, self.course = self.course, course
        if [way.segment for way in before.ways] == [way.segment for way in course.ways]:
            return False
        self.infos, self.places = [None] * len(course.ways), [None] * len(course.ways)
        self.later = ()
        return True


class Looks:
    """Looks at the streams of a scope that are followed, again and again.

    Args:
        source: the store of the sources.
        target: the target store.

    Attributes:
        live: the streams that are live, by their places in the plan.
        staged: of other streams, as far as they were looked at, the bytes in the target.
    """

    def __init__(self, source: Source, target: Store) -> None:
        self.live: dict[int, LiveState] = {}
        self.staged: dict[int, int] = {}
        self._source = source
        self._target = target
        self._readers: OrderedDict[int, CopyJournal] = OrderedDict()
        self._count = 0
        self._answered = False
        self._errors: list[SluiceError] = []

    def look(self, items: Sequence[Item], left: Sequence[int]) -> None:
        """Look at streams.

        A stream whose store refuses to answer stays as it was seen before.

        Args:
            items: the plans of all streams.
            left: the places of those whose copy has not ended.

        Raises:
            SluiceError: the stores answer for no stream.
        """
        self._count += 1
        self._answered, self._errors = False, []
        for place in self.live.keys() - set(left):
            del self.live[place]
            self._readers.pop(place, None)
        self._find(items, left)
        self._ask()
        while len(self._readers) > READERS:
            self._readers.popitem(last=False)
        if self._errors and not self._answered:
            raise self._errors[0]

    def _each(self, call: Callable[[A], None], these: Sequence[A]) -> None:
        """Call a function for each item, several at a time. Failures of some are left out.

        Raises:
            SluiceError: so many calls have failed, and none of this look has succeeded, that the
                others would fail as well.
        """

        def attempt(one: A) -> None:
            try:
                call(one)
            except SluiceError as error:
                self._errors.append(error)
                if not self._answered and len(self._errors) >= parallel.AT_ONCE:
                    raise
            else:
                self._answered = True

        parallel.each(attempt, these)

    def _find(self, items: Sequence[Item], left: Sequence[int]) -> None:
        """Find which streams are live by now, and how far the first of the others are."""
        self.staged = {}
        waiting = [place for place in left if place not in self.live][:FOUND]
        for batch in parallel.batches(waiting, LOOKED_AT):
            self._each(lambda place: self._look_for(place, items[place]), batch)
            if len(self.staged) > LOOKED_AT // 2:
                return

    def _look_for(self, place: int, plan: Item) -> None:
        """Look whether a stream is live, or how far it is."""
        if not isinstance(plan, StreamPlan):
            raise TypeError(f"{plan.name} is archived, and not followed")
        reader = self._reader(plan)
        journal = reader.load()
        if journal is None or not is_live(journal, self._target):
            staged = staged_bytes(plan, reader, self._target)
            self.staged[place] = 0 if staged is None else staged[0]
            return
        course = course_of(journal, lambda index: proved(journal, index))
        unknown = [None] * len(course.ways)
        at = reader.name, reader.end
        self.live[place] = LiveState(plan, course, at, [*unknown], [*unknown])

    def _ask(self) -> None:
        """Ask how far the streams are that are live, those first that were asked long ago."""
        due = sorted(self.live, key=lambda place: self.live[place].looked)
        asked: list[int] = []
        segments = 0
        for place in due:
            segments += len(self.live[place].course.ways)
            if asked and segments > ASKED:
                break
            asked.append(place)
        rested = {place for place in asked if self.live[place].at_rest}
        self._measure(asked)
        awake = [p for p in asked if p not in rested or not self.live[p].at_rest]
        self._measure(self._read_on(awake))
        self._each(
            self._look_behind, [place for place in awake if self.live[place].is_behind][:LATER]
        )

    def _measure(self, places: Sequence[int]) -> None:
        """Ask for the lengths of sources, and then for the positions in targets."""
        self._each(self._measure_some, [*parallel.batches(places, TOGETHER)])

    def _measure_some(self, places: Sequence[int]) -> None:
        streams = [self.live[place] for place in places]
        source, target = self._source, self._target
        names = [name for one in streams for name in source_names(one.plan, one.course, source)]
        infos = iter(source.infos(names))
        for one in streams:
            one.infos = [next(infos) for _ in one.course.ways]
            one.looked = self._count
        moved = [one for one in streams if not one.at_rest]
        asked = [pair for one in moved for pair in positions_asked(one.plan, one.course, target)]
        values = iter(target.attributes(asked) if asked else [])
        for one in moved:
            found = [position_of(next(values)) for _ in one.course.ways]
            one.places = [
                before if now is None else now.offset
                for before, now in zip(one.places, found, strict=True)
            ]

    def _read_on(self, places: Sequence[int]) -> list[int]:
        """Read journals in which something was written. Return those that mirror a scale event."""
        grown: list[int] = []

        def look(batch: Sequence[int]) -> None:
            infos = self._target.infos([self.live[place].journal[0] for place in batch])
            for place, info in zip(batch, infos, strict=True):
                if info is not None and info.length != self.live[place].journal[1]:
                    grown.append(place)

        self._each(look, [*parallel.batches(places, TOGETHER)])
        order = {place: number for number, place in enumerate(places)}
        grown.sort(key=order.__getitem__)
        known = [place for place in grown if place in self._readers]
        others = [place for place in grown if place not in self._readers]
        others.sort(key=lambda place: not self.live[place].is_behind)  # they may have other ways
        turned: list[int] = []

        def read(place: int) -> None:
            if self._read(place):
                turned.append(place)

        self._each(read, [*known, *others[:READ_ANEW]])
        return turned

    def _read(self, place: int) -> bool:
        """Read a journal on. Return whether other segments are followed now."""
        stream = self.live[place]
        reader = self._readers.get(place) or self._reader(stream.plan)
        journal = reader.load()
        if journal is None:  # its end is about to be recorded in the scope's log
            return False
        self._readers[place] = reader
        course = course_of(journal, lambda index: proved(journal, index))
        return stream.turn(course, (reader.name, reader.end))

    def _reader(self, plan: StreamPlan) -> CopyJournal:
        return CopyJournal(self._target, plan.copy_id, plan.target, plan)

    def _look_behind(self, place: int) -> None:
        """Ask how a source goes on behind segments that have ended."""
        stream = self.live[place]
        stream.later = tuple(later_segments(stream.plan, stream.course, self._source))
        ended = all(info is None or info.sealed for info in stream.infos)
        stream.sealed = ended and not stream.later and is_sealed(stream.plan, self._source)
