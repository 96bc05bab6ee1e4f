from sluice.core.copy.steps import Step
from sluice.core.scope.progress import Progress
from sluice.core.values.trouble import Trouble
from sluice.engine.copy.progress import ProgressWatch
from sluice.engine.copy.report import Outcome, SegmentReport, StreamReport
from sluice.engine.copy.stream_copy import StreamCopyWork
from sluice.engine.tasks.work import Silent
from sluice.errors import SegmentTruncated, TargetExists
from support.engine.plans import COPY, SOURCE, TARGET, segment_plan, stream_plan, whole_plan
from support.engine.sources import copy_all, planned, put_source, split
from support.model import ModelStore, World


def segment(start: int, end: int, events: int) -> SegmentReport:
    """Make a segment's report."""
    return SegmentReport(source=1, target=2, start=start, end=end, events=events, digest="d")


def test_a_report_adds_its_segments_up() -> None:
    """Bytes and events are sums over all segments, counted from their first offset."""
    report = StreamReport(
        copy_id=COPY,
        source=str(SOURCE),
        target=TARGET,
        outcome=Outcome.COPIED,
        segments=(segment(10, 40, 3), segment(0, 5, 1)),
    )
    assert (report.bytes, report.events) == (35, 4)


def test_a_failure_carries_all_that_a_person_needs() -> None:
    """Reason, category, field, message with notes, and remedy come from the error."""
    error = TargetExists("out/t exists", field="spec.target.stream")
    error.add_note("and was written")
    assert Trouble.of(error) == Trouble(
        reason="TargetExists",
        category="Spec",
        message="out/t exists; and was written",
        remedy="Name another target, or delete the stream if it is not needed.",
        field="spec.target.stream",
        retryable=False,
    )


def test_a_failed_report_survives_json() -> None:
    """A report of a failure reads back equal from its JSON, whose keys are camelCase."""
    report = StreamReport.failed(
        stream_plan(segment_plan(3)), SegmentTruncated("gone", segment="a", start_offset=4)
    )
    assert StreamReport.model_validate_json(report.model_dump_json()) == report
    assert set(report.model_dump(mode="json")) == {
        "copyID",
        "source",
        "target",
        "outcome",
        "digest",
        "segments",
        "error",
        "cleaned",
    }


def test_progress_is_read_from_the_target() -> None:
    """It is empty at first, grows while bytes are staged, and ends at the whole."""
    world = World()
    put_source(world, [40, 40], [9])
    store = ModelStore(world)
    plan = split(planned(store))
    watch = ProgressWatch(whole_plan(plan), store)
    readings = []

    class Looking(Silent):
        """A listener that measures before every step."""

        def step(self, copy: StreamCopyWork, step: Step) -> None:  # noqa: ARG002 - a listener has it
            """See Listener."""
            readings.append((type(step).__name__, watch.measure()))

    looking = Looking()
    copy_all(store, plan, listener=looking)
    before = dict(reversed(readings))
    assert before["MakeTarget"] == Progress(0, 113, published=False)
    assert before["Stitch"] == Progress(113, 113, published=False)
    assert before["Publish"] == Progress(113, 113, published=False)
    assert before["Done"] == Progress(113, 113, published=True)
    counts = [progress.bytes for _, progress in readings]
    assert counts == sorted(counts)
