from collections.abc import Iterator, Sequence
from concurrent.futures import Future

import pytest

from sluice.core.copy.planner import CopyRequest, SourceRequest
from sluice.core.copy.steps import Done, Publish, Step, Transfer, Verify
from sluice.core.values.model import StreamName
from sluice.engine.copy.report import Outcome
from sluice.engine.copy.stream_copy import StreamCopyWork
from sluice.engine.tasks.executor import InlineExecutor
from sluice.engine.tasks.limits import Limits
from sluice.engine.tasks.slices import Slice, SliceResult
from sluice.errors import InfrastructureError, NoSuchSegment
from sluice.stores.reading import Block, Flow
from support.engine.executors import Relay, ended, failed
from support.engine.plans import COPY, SOURCE, TARGET
from support.engine.sources import Heard, ManualClock, copy_all, planned, put_source, split
from support.model import CREATION_TIME, EVENT_COUNT, Fate, ModelStore, World, segment_name

SECOND = CopyRequest(
    copy_id="cd" * 16,
    sources=(SourceRequest(stream=StreamName(scope="in", stream="s2")),),
    target=StreamName(scope="out", stream="t2"),
)


@pytest.fixture
def world() -> World:
    """Return a world with two sources."""
    made = World()
    put_source(made, [40, 40], [], [9])
    put_source(made, [20, 1], name=SECOND.sources[0].stream)
    return made


class Flipping(ModelStore):
    """A store that changes one byte of each segment that is appended to."""

    def read(
        self,
        name: str,
        start: int,
        end: int,
        *,
        flow: Flow | None = None,
        ahead: int | None = None,
    ) -> Iterator[Block]:
        """See SegmentReader."""
        segment = self._world.segments[name]
        if segment.attributes.keys() - {CREATION_TIME, EVENT_COUNT} and start == 0:
            segment.data[3] ^= 1
        return super().read(name, start, end, flow=flow, ahead=ahead)


class Failing(Relay):
    """An executor whose first tasks fail."""

    def __init__(self, store: ModelStore, errors: Sequence[InfrastructureError]) -> None:
        super().__init__(InlineExecutor([store], store))
        self._errors = list(errors)

    def submit(self, work: Slice) -> Future[SliceResult]:
        """See Executor."""
        return failed(self._errors.pop(0)) if self._errors else super().submit(work)


def test_a_copy_goes_through_its_steps(world: World) -> None:
    """A copy without trouble takes each step once, and reports the copied bytes."""
    heard, store = Heard(), ModelStore(world)
    contents = world.bytes_of(SOURCE)
    (report,) = copy_all(store, split(planned(store)), listener=heard)
    assert [step for i, step in enumerate(heard.steps) if heard.steps[i - 1 : i] != [step]] == [
        "MakeTarget",
        "Bind",
        "Stage",
        "Transfer",
        "Stitch",
        "Verify",
        "Publish",
        "ConfigureTarget",
        "DeleteJournal",
        "Done",
    ]
    assert world.bytes_of(TARGET) == contents
    assert (report.outcome, report.bytes, report.events) == (Outcome.COPIED, 113, 3)
    assert [segment.events for segment in report.segments] == [2, 0, 1]


def test_a_target_is_sealed_once_it_is_whole(world: World) -> None:
    """The target is whole by then. A second run finds it done, and it takes no more bytes."""
    heard, store = Heard(), ModelStore(world)
    contents = world.bytes_of(SOURCE)
    plan = planned(store).model_copy(update={"seal": True})
    (report,) = copy_all(store, plan, listener=heard)
    assert report.outcome is Outcome.COPIED
    assert heard.steps[-4:] == ["ConfigureTarget", "Seal", "DeleteJournal", "Done"]
    assert world.streams[TARGET].sealed
    assert not world.streams[SOURCE].sealed
    assert world.bytes_of(TARGET) == contents
    (again,) = copy_all(store, plan)
    assert again.outcome is Outcome.ALREADY_COMPLETE


@pytest.mark.parametrize("fate", [Fate.REQUEST_LOST, Fate.REPLY_LOST])
def test_a_seal_that_is_cut_off_is_repeated(world: World, fate: Fate) -> None:
    """This holds whether or not the store did it."""
    lost = iter([fate])

    def gate(what: str) -> Fate:
        return next(lost, Fate.DONE) if what.startswith("seal_stream") else Fate.DONE

    plan = planned(ModelStore(world)).model_copy(update={"seal": True})
    (report,) = copy_all(ModelStore(world), plan, target=ModelStore(world, gate))
    assert report.outcome is Outcome.COPIED
    assert world.streams[TARGET].sealed
    assert world.staging() == []


@pytest.mark.parametrize("divided", [False, True], ids=["whole", "parts"])
def test_events_are_counted_whatever_the_source_says(world: World, divided: bool) -> None:  # noqa: FBT001
    """A store does not count events of transactions, but report and target have all of them."""
    sizes = [40, 0, 3, 40, 100, 7, 0, 0, 20]
    put_source(world, sizes, [9])
    for index in range(2):
        world.segments[segment_name(SOURCE, index)].attributes[EVENT_COUNT] = index
    store = ModelStore(world)
    plan = planned(store)
    assert plan.events == 1
    (report,) = copy_all(store, split(plan) if divided else plan)
    assert [segment.events for segment in report.segments] == [len(sizes), 1]
    counts = [
        world.segments[segment_name(TARGET, s.id)].attributes[EVENT_COUNT]
        for s in world.streams[TARGET].segments
    ]
    assert counts == [len(sizes), 1]


def test_events_that_another_driver_counts_meanwhile_are_published(world: World) -> None:
    """Another driver records the number and sets the mark between this driver's two looks."""
    put_source(world, [40, 3, 40])
    world.segments[segment_name(SOURCE, 0)].attributes[EVENT_COUNT] = 0
    store = ModelStore(world)
    other = StreamCopyWork(planned(store), 0, [store], store)
    other.plan = other.journal.begin(other.plan)
    step: Step
    while not isinstance(step := other.look(), Verify):
        _do(other, step, store)

    def gate(what: str) -> Fate:
        nonlocal step
        if what.startswith("infos") and what != "infos 16" and isinstance(step, Verify):
            _do(other, step, store)
            step = Done("")
        return Fate.DONE

    late = StreamCopyWork(other.plan, 0, [store], ModelStore(world, gate))
    publish = late.look()
    assert isinstance(publish, Publish)
    late.perform(publish)
    (segment,) = world.streams[TARGET].segments
    assert world.segments[segment_name(TARGET, segment.id)].attributes[EVENT_COUNT] == 3


def _do(copy: StreamCopyWork, step: Step, store: ModelStore) -> None:
    """Let a driver carry out a step."""
    if isinstance(step, Transfer | Verify):
        work = copy.slices(step, Limits(), 1)
        copy.absorb(step, InlineExecutor([store], store).run(work))
    else:
        copy.perform(step)


def test_plain_bytes_have_the_stores_count(world: World) -> None:
    """Bytes without events are copied, too, with the number that their store reports."""
    name = segment_name(SOURCE, 0)
    world.segments[name].data[:] = b"plain bytes, and more than a chunk of them"
    world.segments[name].attributes[EVENT_COUNT] = 6
    (report,) = copy_all(ModelStore(world), planned(ModelStore(world)))
    assert [segment.events for segment in report.segments] == [6, 0, 1]
    assert world.bytes_of(TARGET) == world.bytes_of(SOURCE)


def test_without_verification_the_stores_count_is_taken(world: World) -> None:
    """No byte is read again for a count."""
    name = segment_name(SOURCE, 0)
    world.segments[name].attributes[EVENT_COUNT] = 1
    plan = planned(ModelStore(world)).model_copy(update={"verify": False})
    (report,) = copy_all(ModelStore(world), plan)
    assert [segment.events for segment in report.segments] == [1, 0, 1]


def test_the_digest_does_not_depend_on_parts(world: World) -> None:
    """Whole or divided, a segment has the same digest."""
    store = ModelStore(world)
    plan = planned(store)
    (whole,) = copy_all(store, plan)
    other = plan.model_copy(update={"copy_id": "ef" * 16, "target": SECOND.target})
    (divided,) = copy_all(store, split(other))
    assert divided.digest == whole.digest
    assert [s.digest for s in divided.segments] == [s.digest for s in whole.segments]


def test_a_second_run_copies_nothing(world: World) -> None:
    """Another run of a finished plan reports it as complete, with the same digest."""
    store = ModelStore(world)
    plan = planned(store)
    (first,) = copy_all(store, plan)
    (second,) = copy_all(store, plan)
    assert (second.outcome, second.digest) == (Outcome.ALREADY_COMPLETE, first.digest)
    assert second.segments == ()


def test_without_verification_the_copy_is_marked_so_or_has_its_digest(world: World) -> None:
    """A copy without verification still has the digest that was computed during the transfer."""
    store = ModelStore(world)
    plan = planned(store)
    quick = plan.model_copy(update={"verify": False, "copy_id": "ef" * 16, "target": SECOND.target})
    heard = Heard()
    (report,) = copy_all(store, quick, listener=heard)
    (verified,) = copy_all(store, plan)
    assert report.digest == verified.digest
    assert world.bytes_of(SECOND.target) == world.bytes_of(SOURCE)


@pytest.mark.parametrize("first", [True, False], ids=["first fails", "second fails"])
def test_a_failing_stream_does_not_stop_another(world: World, first: bool) -> None:  # noqa: FBT001
    """In a plan of two streams, one stream that fails for good leaves the other to its end."""
    store = ModelStore(world)
    plans = [planned(store), planned(store, SECOND)]
    failing, good = (0, 1) if first else (1, 0)
    name = segment_name(plans[failing].sources[0].stream, 0)
    world.segments[name].attributes[CREATION_TIME] = 5
    reports = copy_all(store, *plans)
    error = reports[failing].error
    assert error is not None
    assert (error.reason, reports[failing].cleaned) == ("SourceReplaced", True)
    assert reports[good].outcome is Outcome.COPIED
    assert list(world.streams) == [SOURCE, SECOND.sources[0].stream, plans[good].target]
    assert world.staging() == []


def test_two_streams_are_copied_side_by_side(world: World) -> None:
    """Each stream of a plan has its own report."""
    store = ModelStore(world)
    reports = copy_all(store, planned(store), planned(store, SECOND))
    assert [report.copy_id for report in reports] == [COPY, SECOND.copy_id]
    assert world.bytes_of(SECOND.target) == world.bytes_of(SECOND.sources[0].stream)


def test_a_store_that_comes_back_is_waited_for(world: World) -> None:
    """Retryable errors double the wait each time, and the copy goes on."""
    plan, clock, heard = planned(ModelStore(world)), ManualClock(), Heard()

    def gate(what: str) -> Fate:
        return Fate.REQUEST_LOST if what.startswith("setup") and clock.now < 2 else Fate.DONE

    store = ModelStore(world)
    (report,) = copy_all(store, plan, target=ModelStore(world, gate), clock=clock, listener=heard)
    assert report.outcome is Outcome.COPIED
    assert heard.retries == [
        ("StoreUnavailable", 0.2),
        ("StoreUnavailable", 0.4),
        ("StoreUnavailable", 0.8),
        ("StoreUnavailable", 1.6),
    ]


def test_patience_ends_and_keeps_what_is_staged(world: World) -> None:
    """If a store stays away, the driver gives up after its patience. Staged bytes stay."""
    plan, clock = split(planned(ModelStore(world))), ManualClock()

    def gate(what: str) -> Fate:
        return Fate.REQUEST_LOST if what.startswith("seal") else Fate.DONE

    store = ModelStore(world)
    (report,) = copy_all(store, plan, target=ModelStore(world, gate), clock=clock, patience=30)
    assert report.error is not None
    assert (report.error.reason, report.error.retryable) == ("StoreUnavailable", True)
    assert report.cleaned is False
    assert 30 < clock.now <= 60
    assert sum(len(world.segments[name].data) for name in world.staging()) > 113
    (again,) = copy_all(store, plan)
    assert again.outcome is Outcome.COPIED
    assert world.staging() == []


def test_a_round_that_breaks_is_tried_again(world: World) -> None:
    """The environment of the slices may fail: the round is repeated after a wait."""
    store, heard = ModelStore(world), Heard()
    executor = Failing(store, [InfrastructureError("worker lost"), InfrastructureError("again")])
    (report,) = copy_all(store, planned(store), executor=executor, listener=heard)
    assert report.outcome is Outcome.COPIED
    assert heard.retries == [("InfrastructureError", 0.5)]


def test_a_digest_mismatch_cleans_up(world: World) -> None:
    """Staged bytes that differ are never published: the copy fails and leaves nothing."""
    store = Flipping(world)
    (report,) = copy_all(store, planned(store))
    assert report.error is not None
    assert (report.error.reason, report.error.category) == ("DigestMismatch", "Integrity")
    assert report.cleaned is True
    assert list(world.streams) == [SOURCE, SECOND.sources[0].stream]
    assert world.staging() == []


def test_a_store_that_contradicts_itself_is_given_up(world: World) -> None:
    """Unexplained refusals end the copy after a few looks."""
    store = ModelStore(world)

    class Lost(InlineExecutor):
        """An executor that reports the segment of each slice as gone."""

        def submit(self, work: Slice) -> Future[SliceResult]:
            """See Executor."""
            gone = NoSuchSegment("gone", segment="x")
            return ended(SliceResult(slice=work, error=gone))

    heard = Heard()
    (report,) = copy_all(store, planned(store), executor=Lost(store, store), listener=heard)
    assert report.error is not None
    assert report.error.reason == "NoSuchSegment"
    assert heard.steps.count("Transfer") == 6


def test_a_target_made_by_someone_else_is_left_alone(world: World) -> None:
    """A plan whose target was taken meanwhile fails and touches nothing."""
    store = ModelStore(world)
    plan = planned(store)
    put_source(world, [3], name=TARGET)
    before = set(world.segments)
    (report,) = copy_all(store, plan)
    assert report.error is not None
    assert (report.error.reason, report.cleaned) == ("TargetExists", False)
    assert set(world.segments) == before


def test_cleaning_up_that_fails_is_said(world: World) -> None:
    """If staging cannot be deleted after a failure, the report says so and keeps the reason."""
    plan = planned(ModelStore(world))
    world.segments[segment_name(SOURCE, 0)].attributes[CREATION_TIME] = 5

    def gate(what: str) -> Fate:
        return Fate.REQUEST_LOST if what.startswith("delete") else Fate.DONE

    (report,) = copy_all(ModelStore(world), plan, target=ModelStore(world, gate))
    assert report.error is not None
    assert report.error.reason == "SourceReplaced"
    assert "cleaning up failed as well" in report.error.message
    assert report.cleaned is False


@pytest.mark.parametrize(
    ("again", "reason"),
    [(True, "SourceReplaced"), (False, "SourceNotFound")],
    ids=["again", "gone"],
)
def test_a_source_deleted_before_it_is_staged_is_refused(
    world: World,
    again: bool,  # noqa: FBT001
    reason: str,
) -> None:
    """A source that is gone, or was made again, fails the copy without a trace."""
    store = ModelStore(world)
    plan = planned(store)
    store.seal_stream(SOURCE)
    store.delete_stream(SOURCE)
    if again:
        world.numbers[SOURCE] = 7
        store.create_stream(SOURCE, plan.config)
    (report,) = copy_all(store, plan)
    assert report.error is not None
    assert (report.error.reason, report.cleaned) == (reason, True)
    assert TARGET not in world.streams
    assert world.staging() == []
