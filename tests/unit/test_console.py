import ast
import re
from pathlib import Path

import pytest
from rich.console import Console
from rich.table import Table

import sluice
from sluice import console
from sluice.core.values.model import StreamName
from sluice.core.values.trouble import Trouble
from sluice.engine.copy.report import Outcome, SegmentReport, StreamReport
from sluice.errors import DigestMismatch
from support.engine.plans import COPY, SOURCE, TARGET, segment_plan, stream_plan, whole_plan

LONG = StreamName(scope="a-scope-of-some-length", stream="a-stream-with-a-rather-long-name-0123")


def drawn(table: Table, width: int = 200) -> str:
    """A table as text of this width."""
    page = Console(width=width)
    with page.capture() as capture:
        page.print(table)
    return capture.get()


@pytest.mark.parametrize(
    ("seconds", "expected"),
    [
        (None, "-"),
        (0, "0s"),
        (0.4, "0s"),
        (59.4, "59s"),
        (59.6, "1m00s"),
        (61, "1m01s"),
        (3599.7, "1h00m"),
        (3700, "1h01m"),
        (360_000, "100h00m"),
    ],
)
def test_durations_are_written_for_people(seconds: float | None, expected: str) -> None:
    """Seconds, minutes or hours, rounded; a dash where there is nothing to tell."""
    assert console.duration(seconds) == expected


def report(**changes: object) -> StreamReport:
    """A report of a copy of one segment."""
    segment = SegmentReport(source=7, target=8, start=10, end=1034, events=12345, digest="5e" * 32)
    done = StreamReport(
        copy_id=COPY,
        source=str(LONG),
        target=TARGET,
        outcome=Outcome.COPIED,
        digest="d1" * 32,
        segments=(segment,),
    )
    return done.model_copy(update=changes)


def test_a_report_shows_whole_names_and_digests() -> None:
    """At a width of 200 nothing is cut: names, bounds, counts and both digests are whole."""
    text = drawn(console.report_table(report(), seconds=2))
    for shown in (
        str(LONG),
        "out/t",
        "d1" * 32,
        "5e" * 32,
        "1,034",
        "12,345",
        "1.0 kB",
        "512 B/s",
    ):
        assert shown in text


def test_a_plan_shows_whole_names() -> None:
    """At a width of 200 a plan shows streams, segments, bounds, parts and addresses whole."""
    plan = stream_plan(segment_plan(3 << 20, start=1 << 20, cuts=(2 << 20,), events=9), source=LONG)
    text = drawn(console.plan_table(whole_plan(plan), recorded=False))
    expected = (str(LONG), "out/t", "0.000-1.000", "1,048,576", "2.1 MB", "9 events", "not begun")
    for shown in (*expected, "tcp://model:1 -> tcp://model:1"):
        assert shown in text


def test_a_plan_says_where_it_appends() -> None:
    """Before anything moves, one sees whether the target is to be made."""
    plan = stream_plan(segment_plan(3))
    appending = plan.model_copy(update={"append": True})
    assert "(append)" not in drawn(console.plan_table(whole_plan(plan), recorded=False))
    assert "(append)" in drawn(console.plan_table(whole_plan(appending), recorded=False))


def test_names_survive_a_narrow_page() -> None:
    """On a narrow page long names are folded and never cut."""
    plan = stream_plan(segment_plan(3), source=LONG)
    for table in (
        console.plan_table(whole_plan(plan), recorded=True),
        console.report_table(report(), seconds=1),
    ):
        assert "…" not in drawn(table, width=80)


def test_uncounted_events_are_said_to_be_unknown() -> None:
    """A plan whose events are counted later does not show a number."""
    text = drawn(
        console.plan_table(whole_plan(stream_plan(segment_plan(3, events=None))), recorded=True)
    )
    assert "unknown events" in text
    assert "counted later" in text
    assert "begun, bounds are fixed" in text


@pytest.mark.parametrize("cleaned", [True, False])
def test_a_failure_shows_reason_and_remedy(
    capsys: pytest.CaptureFixture[str],
    cleaned: bool,  # noqa: FBT001
) -> None:
    """A failed copy is shown on stderr with reason, text, remedy, and whether it was cleaned."""
    error = DigestMismatch("bytes [0, 5) differ")
    failed = StreamReport.failed(stream_plan(segment_plan(3)), error, cleaned=cleaned)
    console.show_report(failed, 1)
    shown = capsys.readouterr()
    assert shown.out == ""
    assert "DigestMismatch: bytes [0, 5) differ" in shown.err
    assert "Run again to copy anew" in shown.err
    assert ("were deleted" in shown.err) is cleaned


def test_markup_in_names_is_shown_as_it_is(capsys: pytest.CaptureFixture[str]) -> None:
    """What looks like markup in an error's text reaches the reader."""
    error = DigestMismatch("[bold]no[/bold]")
    error.add_note("[red]note")
    console.show_error(error)
    shown = capsys.readouterr().err
    assert "[bold]no[/bold]" in shown
    assert "[red]note" in shown


def test_a_complete_copy_says_that_there_is_nothing_to_do(
    capsys: pytest.CaptureFixture[str],
) -> None:
    """A copy that was complete before is shown with its digest."""
    console.show_report(report(outcome=Outcome.ALREADY_COMPLETE, source=str(SOURCE)), 0)
    assert "in/s -> out/t: already copied, nothing to do" in capsys.readouterr().err


def test_a_plan_shows_which_scale_event_made_a_segment() -> None:
    """Only where the source was scaled, so that all other tables stay narrow."""
    plan = stream_plan(segment_plan(3), segment_plan(4, number=1))
    first, second = plan.segments
    later = second.model_copy(update={"generation": 1, "keys": first.keys})
    scaled = plan.model_copy(update={"segments": (first, later)})
    text = drawn(console.plan_table(whole_plan(scaled), recorded=True))
    assert "Made" not in drawn(console.plan_table(whole_plan(plan), recorded=True))
    for shown in ("Made", "first", "scale 1"):
        assert shown in text


def test_sizes_are_told_in_one_system_of_units() -> None:
    """Conditions, events, tables and the command tell decimal sizes: no text of theirs has MiB."""
    folder = Path(sluice.__file__).parent
    places = ("console", "commands", "administration", "core/reconcile", "core/catalogue")
    for path in (one for place in places for one in (folder / place).rglob("*.py")):
        tree = ast.parse(path.read_text(encoding="utf-8"))
        docs = {node.value for node in ast.walk(tree) if isinstance(node, ast.Expr)}
        texts = [
            node.value
            for node in ast.walk(tree)
            if isinstance(node, ast.Constant) and isinstance(node.value, str) and node not in docs
        ]
        assert not [text for text in texts if re.search(r"\b[KMGT]iB\b", text)], path


def test_quiet_leaves_failures(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """A copy that is done says nothing, and no bar is shown."""
    monkeypatch.setattr(console.note, "quiet", False)
    console.hush()
    console.show_report(report(), 1.0)
    with console.ReadProgress("reading", 10) as bar:
        bar.told(10)
    assert capsys.readouterr() == ("", "")
    trouble = Trouble.of(DigestMismatch("the bytes differ"))
    console.show_report(report(outcome=Outcome.FAILED, error=trouble), 1.0)
    assert "DigestMismatch: the bytes differ" in capsys.readouterr().err
