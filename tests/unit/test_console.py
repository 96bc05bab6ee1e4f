import ast
import re
from pathlib import Path

import pytest
from rich.console import Console, RenderableType

import sluice
from sluice import console
from sluice.core.copy.plan import SourceStream
from sluice.core.values.model import StreamName
from sluice.core.values.trouble import Trouble
from sluice.engine.copy.report import Outcome, SegmentReport, StreamReport
from sluice.errors import DigestMismatch
from support.engine.plans import COPY, SOURCE, TARGET, segment_plan, stream_plan, whole_plan

LONG = StreamName(scope="a-scope-of-some-length", stream="a-stream-with-a-rather-long-name-0123")


def drawn(shown: RenderableType, width: int = 200, *, terminal: bool = False) -> str:
    """Return text drawn on a page of this width, on a terminal or in a file."""
    page = Console(width=width, soft_wrap=True, force_terminal=terminal, color_system=None)
    with page.capture() as capture:
        page.print(shown)
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
    """They are seconds, minutes or hours, rounded; a dash stands for an unknown time."""
    assert console.duration(seconds) == expected


def report(**changes: object) -> StreamReport:
    """Return a report of a copy of one segment."""
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
    """At a width of 200, names, bounds, counts and both digests are whole."""
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
    """At a width of 200, a plan shows streams, segments, bounds, parts and addresses whole."""
    plan = stream_plan(segment_plan(3 << 20, start=1 << 20, cuts=(2 << 20,), events=9), source=LONG)
    text = drawn(console.plan_table(whole_plan(plan), recorded=False))
    expected = (str(LONG), "out/t", "0.000-1.000", "1,048,576", "2.1 MB", "9 events", "not begun")
    for shown in (*expected, "tcp://model:1 -> tcp://model:1"):
        assert shown in text


def test_a_plan_says_where_it_appends() -> None:
    """Users see before the copy whether it makes its target, or appends to it."""
    plan = stream_plan(segment_plan(3))
    appending = plan.model_copy(update={"append": True})
    assert "(append)" not in drawn(console.plan_table(whole_plan(plan), recorded=False))
    assert "(append)" in drawn(console.plan_table(whole_plan(appending), recorded=False))


def test_a_plan_of_several_sources_says_which_segment_is_of_which() -> None:
    """A single source is named above the table only."""
    second = segment_plan(4, number=1).model_copy(update={"source": 1})
    plan = stream_plan(segment_plan(3), second)
    other = SourceStream(stream=StreamName(scope="in", stream="other"))
    several = plan.model_copy(update={"sources": (*plan.sources, other)})
    text = drawn(console.plan_table(whole_plan(several), recorded=True), width=80)
    assert "in/s and 1 more -> out/t" in text
    assert [line.split()[1] for line in text.splitlines() if "│ in/" in line] == [
        "in/s",
        "in/other",
    ]
    alone = whole_plan(stream_plan(segment_plan(3)))
    assert "│ in/" not in drawn(console.plan_table(alone, recorded=True))


def test_a_terminal_of_80_columns_breaks_no_word_and_no_digest() -> None:
    """A digest shows both ends, and the least important columns are left out."""
    far = 1 << 40
    plan = stream_plan(
        segment_plan(3 * far, start=far, number=7, events=123_456_789_012), source=LONG
    )
    text = drawn(console.plan_table(whole_plan(plan), recorded=False), 80, terminal=True)
    assert max(map(len, text.splitlines())) <= 80
    for whole in (f"{LONG} -> out/t", "1,099,511,627,776", "123,456,789,012", "Segment", "Events"):
        assert whole in text
    assert "Parts" not in text
    (segment,) = report().segments
    big = segment.model_copy(update={"start": far, "end": 3 * far, "target": 1 << 41})
    text = drawn(console.report_table(report(segments=(big,)), seconds=9), 80, terminal=True)
    assert max(map(len, text.splitlines())) <= 80
    for whole in (str(LONG), "3,298,534,883,328", "5e5e5e..5e5e5e", "d1" * 32, "SHA-256"):
        assert whole in text


def test_lines_stay_whole_where_no_terminal_is() -> None:
    """Users search files, and words are broken nowhere."""
    text = drawn(console.report_table(report(), seconds=9), 80)
    assert f"12,345 events, 1.0 kB in 9s (114 B/s), digest {'d1' * 32}\n" in text
    words = console.Words("one two " * 30 + "x" * 99, indent=2)
    assert drawn(words, 80).count("\n") == 1
    lines = drawn(words, 80, terminal=True).splitlines()
    assert "".join(f"{line.strip()} " for line in lines) == "one two " * 30 + "x" * 99 + " "
    assert {line[:2] for line in lines} == {"  "}
    assert [line for line in lines if len(line) > 80] == ["  " + "x" * 99]


def test_a_long_name_goes_on_behind_a_separator() -> None:
    """A name is never cut, whatever the width of the page."""
    grid = console.Grid(console.Column("Stream", name=True), console.Column("Bytes", right=True))
    name = "a-stream.with-a-rather_long-name-0123-" * 6
    grid.add(name, "12 kB")
    for width in (40, 60, 80, 300):
        lines = drawn(grid, width, terminal=True).splitlines()
        cells = [line.split("│")[1].strip() for line in lines if line.startswith("│")]
        assert "".join(cells) == name
        assert max(map(len, lines)) <= width
        assert all(cell[-1] in "-._" for cell in cells)


def test_a_table_has_no_markup_and_no_control_characters() -> None:
    """Tenants and stores may have written the names."""
    grid = console.Grid(console.Column("Stream", name=True))
    grid.add("[bold]a[/]\x1b[2J")
    text = drawn(grid)
    assert "[bold]a[/] [2J" in text
    assert "\x1b" not in text


@pytest.mark.parametrize("width", [80, 200])
def test_a_failure_breaks_no_word(width: int) -> None:
    """Text and remedy are indented as a whole, and no line is wider than the page."""
    error = DigestMismatch("bytes [0, 5) of a-rather/long-name-of-a-stream-0123 differ " * 3)
    failed = Trouble.of(error)
    text = drawn(console.Words(str(failed), indent=2), width, terminal=True)
    assert text.split() == str(failed).split()
    assert max(map(len, text.splitlines())) <= width


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


@pytest.mark.parametrize("markup", [True, False])
def test_no_printed_text_controls_the_terminal(
    capsys: pytest.CaptureFixture[str], *, markup: bool
) -> None:
    """A store's tags and names may have any characters, and commands print them in sentences."""
    for page in (console.out, console.err, console.note):
        page.print("tagged \x1b]0;owned\x07 by\ta tenant\x9b31m", markup=markup)
    told = capsys.readouterr()
    for text in (told.out, told.err):
        assert "tagged  ]0;owned  by a tenant 31m\n" in text
        assert text.replace("\n", "").isprintable()


def test_markup_in_names_is_shown_as_it_is(capsys: pytest.CaptureFixture[str]) -> None:
    """Text of an error that looks like markup reaches the reader unchanged."""
    error = DigestMismatch("[bold]no[/bold]")
    error.add_note("[red]note")
    console.show_error(error)
    shown = capsys.readouterr().err
    assert "[bold]no[/bold]" in shown
    assert "[red]note" in shown


def test_a_complete_copy_says_that_there_is_nothing_to_do(
    capsys: pytest.CaptureFixture[str],
) -> None:
    """The line names source and target of a copy that was complete before."""
    console.show_report(report(outcome=Outcome.ALREADY_COMPLETE, source=str(SOURCE)), 0)
    assert "in/s -> out/t: already copied, nothing to do" in capsys.readouterr().err


def test_a_plan_shows_which_scale_event_made_a_segment() -> None:
    """The column appears only if the source was scaled, so all other tables stay narrow."""
    plan = stream_plan(segment_plan(3), segment_plan(4, number=1))
    first, second = plan.segments
    later = second.model_copy(update={"generation": 1, "keys": first.keys})
    scaled = plan.model_copy(update={"segments": (first, later)})
    text = drawn(console.plan_table(whole_plan(scaled), recorded=True))
    assert "Made" not in drawn(console.plan_table(whole_plan(plan), recorded=True))
    for shown in ("Made", "first", "scale 1"):
        assert shown in text


def test_sizes_are_told_in_one_system_of_units() -> None:
    """Texts of conditions, events, tables and the command have decimal units, and no MiB."""
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
    """A finished copy prints nothing, and no bar is shown."""
    monkeypatch.setattr(console.note, "quiet", False)
    console.hush()
    console.show_report(report(), 1.0)
    with console.ReadProgress("reading", 10) as bar:
        bar.told(10)
    assert capsys.readouterr() == ("", "")
    trouble = Trouble.of(DigestMismatch("the bytes differ"))
    console.show_report(report(outcome=Outcome.FAILED, error=trouble), 1.0)
    assert "DigestMismatch: the bytes differ" in capsys.readouterr().err
