"""One driver that follows a source on a store in memory, and events during that."""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING, Any

import pytest

from sluice.core.copy.planner import ArchiveChoice, Range, RangeEnd, SourceRequest
from sluice.core.events.chain import Chain, Link
from sluice.core.follow.rows import proved
from sluice.core.values import identity
from sluice.core.values.model import StreamName
from sluice.core.values.wish import Wish
from sluice.engine.copy.planning import make_plan, resolve
from sluice.engine.copy.report import Outcome
from sluice.engine.follow import wishes
from sluice.engine.follow.work import FollowWork
from sluice.engine.journal.copy_journal import CopyJournal
from sluice.engine.tasks.executor import InlineExecutor
from sluice.engine.tasks.limits import Limits
from sluice.engine.tasks.runner import Runner
from sluice.errors import InvalidSpec, ReaderGroupNotFound
from support.engine.plans import COPY, SOURCE, TARGET
from support.engine.sources import CHUNK, REQUEST, ManualClock, events_of, put_source
from support.model import EVENT_COUNT, Fate, ModelStore, World, segment_name

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from sluice.core.copy.journal import Journal
    from sluice.engine.copy.report import StreamReport
    from sluice.stores.reading import Block

FOLLOW = REQUEST.model_copy(update={"follow": True})
RECORD = FOLLOW.model_copy(update={"on_truncation": "Record"})
DONE = Wish(bytes=1)
"""The wish that the copy ends now."""


class Killed(Exception):
    """The end of a driver that is killed."""


def write(world: World, segment: int, sizes: list[int], seed: int) -> bytes:
    """Write events to a segment of the source."""
    there = world.segments[segment_name(SOURCE, segment)]
    data = events_of(sizes, seed)
    there.data += data
    there.attributes[EVENT_COUNT] += len(sizes)
    return data


def run(
    world: World,
    *acts: Callable[[], object],
    request: Any = FOLLOW,
    rounds: int = 5,
    pause: float = 1.0,
    clock: ManualClock | None = None,
    **how: Any,
) -> StreamReport:
    """Run a driver to its end.

    Args:
        world: the world.
        acts: events while the source is followed, some rounds apart. Then the copy is asked to end.
        request: the request.
        rounds: how often the driver waits for bytes between two of them.
        pause: seconds that the driver waits for bytes, each time.
        clock: the driver's clock.
        how: further arguments of `FollowWork`.
    """
    left = [act for act in acts for _ in range(rounds)]
    clock = clock or ManualClock()

    def gate(what: str) -> Fate:
        if what.startswith("take"):
            clock.now += pause if left else 1.0
            act = left.pop(0) if left else lambda: write_wish(world, DONE)
            if act not in left:
                act()
        return Fate.DONE

    store = ModelStore(world, gate)
    plan = resolve(request, [store], store).plan
    assert plan is not None
    work = FollowWork(plan, [store], store, clock=clock, **{"every": 0.0} | how)
    (report,) = Runner(
        [work],
        executor=InlineExecutor([store], store),
        limits=lambda: Limits(slice_bytes=2 * CHUNK),
        clock=clock,
    ).run()
    return report


def killed(world: World, *acts: Callable[[], object], request: Any = FOLLOW, **how: Any) -> Journal:
    """Run a driver that is killed in the end. Return its journal."""

    def kill() -> None:
        raise Killed

    with pytest.raises(Killed):
        run(world, *acts, kill, request=request, **how)
    journal = CopyJournal(ModelStore(world), COPY, TARGET).load()
    assert journal is not None
    return journal


def write_wish(world: World, wish: Wish, key: str = "") -> bool:
    """Request an end of the copy, as another process does."""
    return wishes.write(wish, CopyJournal(ModelStore(world), COPY, TARGET), key=key)


def nothing() -> None:
    """Do nothing."""


def test_what_comes_is_appended_until_the_copy_is_asked_to_end() -> None:
    """The report has the position and the number of events. Later bytes stay in the source."""
    world = World()
    first, second = put_source(world, [20, 9], [30])
    more = events_of([40, 50, 8], 7)
    report = run(world, nothing, lambda: write(world, 0, [40, 50, 8], 7), nothing)
    assert report.outcome is Outcome.COPIED, report.error
    assert world.bytes_of(TARGET) == [first + more, second]
    assert [(one.start, one.end, one.events) for one in report.segments] == [
        (0, len(first + more), 5),
        (0, len(second), 1),
    ]
    write(world, 0, [9], 8)
    assert world.bytes_of(TARGET) == [first + more, second]


def test_the_digest_is_that_of_all_bytes() -> None:
    """This holds for a killed driver, and for the next one, which begins inside a chunk."""
    world = World()
    (first,) = put_source(world, [20, 9])
    half = killed(world, lambda: write(world, 0, [5], 7), nothing)
    assert proved(half, 0).offset > len(first)
    report = run(world, lambda: write(world, 0, [40], 8), nothing)
    chain = Chain(Link(0))
    (data,) = world.bytes_of(TARGET)
    chain.feed(memoryview(data))
    assert data == first + events_of([5], 7) + events_of([40], 8)
    assert report.segments[0].digest == chain.link.digest.hex()


def test_all_that_is_read_is_read_to_its_end(monkeypatch: pytest.MonkeyPatch) -> None:
    """Comparisons read source and target to the end. A read that is left costs its connection."""
    begun: list[str] = []
    ended: list[str] = []
    plain = ModelStore.read

    def read(store: ModelStore, name: str, start: int, end: int, **how: Any) -> Iterator[Block]:
        begun.append(name)
        yield from plain(store, name, start, end, **how)
        ended.append(name)

    monkeypatch.setattr(ModelStore, "read", read)
    world = World()
    put_source(world, [20, 9])
    report = run(world, *(lambda: write(world, 0, [40, 50], 7) for _ in range(3)))
    assert report.outcome is Outcome.COPIED, report.error
    left = Counter(begun) - Counter(ended)
    assert max(left.values(), default=0) <= 1  # the wish to end interrupts a read of both streams
    assert begun.count(segment_name(TARGET, 0)) > 3


def test_a_byte_that_changed_in_the_target_is_found() -> None:
    """The error has its offset and comes before the target is marked whole."""
    world = World()
    (first,) = put_source(world, [20])

    def flip() -> None:
        write(world, 0, [30], 7)
        target = world.segments[segment_name(TARGET, 0)]
        world.segments[segment_name(SOURCE, 0)].data[len(first) + 11] ^= 1
        assert len(target.data) == len(first)

    def heal() -> None:
        world.segments[segment_name(SOURCE, 0)].data[len(first) + 11] ^= 1

    report = run(world, flip, heal, every=1e9)
    assert report.error is not None
    assert report.error.reason == "DigestMismatch"
    assert f"source's offset {len(first) + 11} of segment 0" in report.error.message
    assert identity.completed(world.streams[TARGET].config.tags, COPY) is None


def test_bytes_that_were_compared_and_changed_afterwards_are_found() -> None:
    """The next driver finds it by the recorded digest."""
    world = World()
    put_source(world, [20])
    journal = killed(world, lambda: write(world, 0, [5], 7), nothing)
    link = proved(journal, 0)
    assert link.held
    world.segments[segment_name(TARGET, 0)].data[link.offset - 1] ^= 1
    report = run(world, lambda: write(world, 0, [5], 8), nothing)
    assert report.error is not None
    assert report.error.reason == "DigestMismatch"
    assert "not those that were compared before" in report.error.message


@pytest.mark.parametrize("record", [False, True])
def test_bytes_that_are_lost_before_they_are_compared_are_counted_or_end_it(
    *, record: bool
) -> None:
    """Their correctness is unknown then, and the copy reports that."""
    world = World()
    (first,) = put_source(world, [20])

    def lose() -> None:
        there = world.segments[segment_name(SOURCE, 0)]
        there.start = len(there.data)

    write_more = lambda: write(world, 0, [30], 7)  # noqa: E731 - as an argument
    request = RECORD if record else FOLLOW
    journal = killed(world, write_more, nothing, lose, request=request, every=1e9)
    assert proved(journal, 0).offset == len(first)
    report = run(world, nothing, request=request)
    if record:
        assert report.outcome is Outcome.COPIED, report.error
        assert world.bytes_of(TARGET) == [first + events_of([30], 7)]
    else:
        assert report.error is not None
        assert report.error.reason == "SourceTruncated"
        assert "were appended, but not compared yet" in report.error.message


def test_a_source_truncated_inside_an_event_is_not_followed() -> None:
    """Only whole events are appended, and no event is left out for it."""
    world = World()
    (first,) = put_source(world, [20])
    killed(world, nothing, request=RECORD)
    write(world, 0, [30, 40], 7)
    world.segments[segment_name(SOURCE, 0)].start = len(first) + 15
    report = run(world, nothing, request=RECORD)
    assert report.error is not None
    assert report.error.reason == "EventsDamaged"
    assert "truncated inside an event: none begins at offset 43" in report.error.message
    assert world.bytes_of(TARGET) == [first]


def test_the_journal_of_a_long_copy_is_short() -> None:
    """One record replaces its records, and another driver goes on from it."""
    world = World()
    put_source(world, [20], [9])
    acts = [lambda n=n: write(world, 0, [40], n) for n in range(10)]
    journal = killed(world, *acts, nothing, long=100)
    log = CopyJournal(ModelStore(world), COPY, TARGET)
    again = log.load()
    assert again is not None
    assert world.segments[log.name].start > 0
    assert again.current.segments == journal.current.segments
    assert proved(again, 0).offset > CHUNK
    report = run(world, lambda: write(world, 1, [7], 99), nothing)
    assert report.outcome is Outcome.COPIED, report.error
    assert world.bytes_of(TARGET) == world.bytes_of(SOURCE)


def test_a_source_that_was_made_again_is_not_read() -> None:
    """No byte of another stream of its name enters the target."""
    world = World()
    (first,) = put_source(world, [20])

    def replace() -> None:
        put_source(world, [20, 50], seed=5)

    report = run(world, nothing, replace, nothing)
    assert report.error is not None
    assert report.error.reason == "SourceReplaced"
    assert world.bytes_of(TARGET) == [first]


def test_a_source_that_was_deleted_ends_the_copy() -> None:
    """The followed bytes stay."""
    world = World()
    (first,) = put_source(world, [20])

    def delete() -> None:
        ModelStore(world).seal_stream(SOURCE)
        ModelStore(world).delete_stream(SOURCE)

    report = run(world, nothing, delete, nothing)
    assert report.error is not None
    assert report.error.reason == "SourceNotFound"
    assert world.bytes_of(TARGET) == [first]


def test_a_target_that_another_client_seals_ends_the_copy() -> None:
    """The target takes no more bytes, and the copy does not blame its own driver."""
    world = World()
    put_source(world, [20])

    def seal() -> None:
        ModelStore(world).seal_stream(TARGET)
        write(world, 0, [30], 7)

    report = run(world, nothing, seal, nothing)
    assert report.error is not None
    assert report.error.reason == "TargetReplaced"
    assert "another client sealed out/t" in report.error.message


def test_plain_bytes_are_not_followed() -> None:
    """Blocks of a live target end between events, and plain bytes have none."""
    world = World()
    put_source(world, [20])

    def spill() -> None:
        world.segments[segment_name(SOURCE, 0)].data += b"text without events"

    report = run(world, nothing, spill, nothing)
    assert report.error is not None
    assert report.error.reason == "EventsDamaged"
    assert "no event begins at offset 28 of in/s/0" in report.error.message


def test_the_rate_is_kept() -> None:
    """The copy's limit holds for appended bytes and for bytes that are read back."""
    world = World()
    put_source(world, [20])
    clock = ManualClock()
    limits = Limits(bytes_per_second=1024)
    report = run(
        world,
        nothing,
        lambda: write(world, 0, [90] * 50, 7),
        nothing,
        limits=lambda: limits,
        clock=clock,
        rounds=200,
        pause=0.01,
    )
    assert report.outcome is Outcome.COPIED, report.error
    assert sum(clock.slept) > 2 * 50 * 98 / 1024 - 2


ARCHIVE = SourceRequest(stream=SOURCE, archive=ArchiveChoice(path="a"))
OWN = SourceRequest(stream=StreamName(scope="in", stream="_RGbilling"))
PART = SourceRequest(stream=SOURCE, ranges=(Range(end=RangeEnd(text="in/s/0=4")),))


@pytest.mark.parametrize(
    ("change", "field"),
    [
        ({"sources": (*FOLLOW.sources, SourceRequest(stream=TARGET))}, "spec.sources"),
        ({"sources": (ARCHIVE,)}, "spec.source.archive"),
        ({"sources": (PART,)}, "spec.source.ranges"),
        ({"append": True}, "spec.target.onExists"),
        ({"move": True}, "spec.sourceOnComplete"),
        ({"verify": False}, "spec.mode"),
        ({"sources": (OWN,)}, "spec.source.stream"),
    ],
)
def test_only_a_whole_stream_is_followed(change: dict[str, object], field: str | None) -> None:
    """The refusal of any other request names the field, and nothing is made."""
    world = World()
    put_source(world, [20])
    put_source(world, [20], name=StreamName(scope="out", stream="other"))
    put_source(world, [20], name=OWN.stream)
    store = ModelStore(world)
    with pytest.raises(InvalidSpec, match="a copy follows") as refused:
        make_plan(FOLLOW.model_copy(update=change), [store])
    assert refused.value.field == field
    assert refused.value.remedy
    assert TARGET not in world.streams


def test_a_copy_that_is_to_end_in_the_past_is_not_begun() -> None:
    """The refusal names the field. A copy that began in time goes on, and then ends."""
    world = World()
    put_source(world, [20])
    over = FOLLOW.model_copy(update={"stop_time": 1_000_000_000_000})
    with pytest.raises(InvalidSpec, match=r"2001-09-09T01:46:40Z, which is over") as refused:
        resolve(over, [ModelStore(world)], ModelStore(world))
    assert refused.value.field == "spec.stopWhen.time"
    assert refused.value.remedy
    assert TARGET not in world.streams
    killed(world, nothing)
    assert resolve(over, [ModelStore(world)], ModelStore(world)).recorded


def test_a_group_that_does_not_read_the_source_is_refused() -> None:
    """It could not continue in the target. The error names the entry, and nothing is made."""
    world = World()
    put_source(world, [20])
    strange = FOLLOW.model_copy(update={"groups": (("billing", "bills"),)})
    with pytest.raises(ReaderGroupNotFound, match="no reader group billing in scope in") as refused:
        resolve(strange, [ModelStore(world)], ModelStore(world))
    assert refused.value.field == "spec.readerGroups[0].name"
    assert refused.value.remedy
    assert TARGET not in world.streams
    killed(world, nothing)
    assert resolve(strange, [ModelStore(world)], ModelStore(world)).recorded
