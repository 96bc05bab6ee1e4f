"""The count of the bytes that a run's notes report."""

from hypothesis import given
from hypothesis import strategies as st

from sluice.core.archive.manifest import CutOffset, RecordedCut, StoredObject
from sluice.core.archive.names import Format
from sluice.core.archive.notes import GapNote, Note, PutNote
from sluice.core.archive.plan import ArchivePlan, SegmentRun
from sluice.core.archive.reached import Reached
from sluice.core.values.model import KeyRange, StreamConfig, StreamName

BEGIN, END = 10, 40


def segment(number: int) -> SegmentRun:
    """Return a segment of which the bytes [BEGIN, END) are archived."""
    return SegmentRun(
        epoch=0,
        id=number,
        keys=KeyRange(low=number / 2, high=(number + 1) / 2),
        created=1,
        start=0,
        done=BEGIN,
        begin=BEGIN,
        end=END,
        sealed=False,
    )


CUT = RecordedCut(time=1, offsets=(CutOffset(segment=0, offset=0),))
PLAN = ArchivePlan(
    copy_id="ab" * 16,
    source=StreamName(scope="a", stream="b"),
    store_uri="tcp://x:1",
    path="a/b",
    format=Format.SEGMENTS,
    run=1,
    begin=CUT,
    end=CUT,
    segments=(segment(0), segment(1)),
    config=StreamConfig(),
    max_events=1,
)


def note(place: int, start: int, end: int, *, lost: bool, of: str = PLAN.hash) -> Note:
    """Return a note that these bytes of a segment are archived, or lost."""
    if lost:
        return Note(of=of, gaps=(GapNote(segment=place, start=start, end=end),))
    stored = StoredObject(name="x", size=1, sha256="ab" * 32, start=start, end=end)
    return Note(of=of, put=(PutNote(segment=place, objects=(stored,)),))


@given(
    st.lists(
        st.tuples(
            st.integers(0, 1), st.integers(BEGIN - 5, END), st.integers(1, 12), st.booleans()
        ),
        max_size=20,
    )
)
def test_each_byte_counts_once(found: list[tuple[int, int, int, bool]]) -> None:
    """Overlapping notes in any order count each planned byte once, and other bytes not at all."""
    reached, bytes_ = Reached(PLAN), set()
    for place, start, length, lost in found:
        reached.take(note(place, start, start + length, lost=lost))
        bytes_ |= {(place, at) for at in range(start, start + length) if BEGIN <= at < END}
        assert reached.bytes == len(bytes_)


def test_another_plan_has_notes_of_its_own() -> None:
    """A note that names another plan's hash does not count."""
    reached = Reached(PLAN)
    reached.take(note(0, BEGIN, END, lost=False, of="0" * 64))
    assert reached.bytes == 0
