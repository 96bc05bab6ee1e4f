"""The texts that users see of a scope's copy: its plan and its report."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from rich.console import Console

from sluice import console
from sluice.config import Settings
from sluice.core.scope.request import Rename, ScopeRequest
from sluice.core.scope.scope import LeftOut, ScopePlan, StreamResult, StreamState, Why
from sluice.core.values.model import StreamName
from sluice.core.values.trouble import Trouble
from sluice.engine.copy.stream_copy import StreamCopyWork
from sluice.engine.scope.report import ScopeReport
from sluice.engine.workloads.scope import ScopeWorkload
from sluice.errors import SourceUnsupported, StoreUnavailable
from support.archiving.scope_roots import TO, Env
from support.engine.plans import COPY, segment_plan, stream_plan, whole_scope
from support.engine.sources import put_source
from support.model import ModelStore, World

if TYPE_CHECKING:
    import pytest

    from sluice.core.copy.plan import StreamPlan
    from sluice.core.workloads.plan import Plan

NOON = 1_767_268_800_000
"""The time 2026-01-01T12:00:00Z, in milliseconds."""

FAILED = StreamResult(
    stream="odd",
    target="odd",
    state=StreamState.FAILED,
    trouble=Trouble.of(SourceUnsupported("it has [no] shape", remedy="Copy it by hand.")),
)


def stream(name: str, *sizes: int, target: str = "") -> StreamPlan:
    """Return the plan of a stream with segments of these sizes, in bytes."""
    return stream_plan(
        *(segment_plan(size, number=number) for number, size in enumerate(sizes)),
        source=StreamName(scope="in", stream=name),
        target=StreamName(scope="out", stream=target or name),
    )


def scope_plan(*streams: StreamPlan, **changes: Any) -> Plan:
    """Return a plan of these streams."""
    scope = ScopePlan(
        scope_id=COPY, source="in", target="out", begin=NOON, end=NOON + 1234, **changes
    )
    return whole_scope(scope, *streams)


def request(*renames: tuple[str, str]) -> ScopeRequest:
    """Return a request with these renames."""
    return ScopeRequest(
        scope_id=COPY,
        source="in",
        target="out",
        rename=tuple(Rename(from_prefix=old, to_prefix=new) for old, new in renames),
    )


def drawn(plan: Plan, *renames: tuple[str, str], width: int = 200, **how: Any) -> str:
    """Return a plan as text on a terminal of this width."""
    page = Console(width=width, soft_wrap=True, force_terminal=True, color_system=None)
    with page.capture() as capture:
        page.print(
            console.scope_plan("shop", request(*renames), plan, **{"recorded": False, **how})
        )
    return capture.get()


def result(name: str, state: StreamState = StreamState.COPIED, **changes: Any) -> StreamResult:
    """Return the result of a stream."""
    return StreamResult(stream=name, target=name, state=state, **changes)


def shown(capsys: pytest.CaptureFixture[str], plan: Plan, **report: Any) -> str:
    """Return the text of a report, and check that it is on standard error only."""
    console.show_scope_report("shop", ScopeReport(plan=plan, **report), 2)
    said = capsys.readouterr()
    assert said.out == ""
    return said.err


def test_a_plan_has_a_line_for_each_stream() -> None:
    """The line has bytes, events, segments and parts. The totals are below."""
    big = stream("big", 3 << 20, 1 << 20)
    cut = big.segments[0].model_copy(update={"cuts": (1 << 20, 2 << 20)})
    big = big.model_copy(update={"segments": (cut, big.segments[1]), "append": True})
    text = drawn(scope_plan(big, stream("small", 10)))
    rows = [[cell.strip() for cell in line.split("│")[1:-1]] for line in text.splitlines()]
    assert [row for row in rows if row] == [
        ["big", "big (append)", "4.2 MB", "2", "2", "4"],
        ["small", "small", "10 B", "1", "1", "1"],
    ]
    for said in (
        "of ScopeCopy shop, in -> out",
        "not begun",
        "2 streams, 4.2 MB, 3 events, tcp://model:1",
    ):
        assert said in text
    assert "Bounds were taken within 1,234 ms, from 2026-01-01 12:00:00.000Z to " in text


def test_a_plan_of_archives_has_a_line_for_each_stream() -> None:
    """The line has the archive's name, after any rename."""
    world = World()
    put_source(world, [9, 1], name=StreamName(scope="in", stream="orders"))
    env = Env(world)
    renames = (Rename(from_prefix="", to_prefix="old-"),)
    plan = env.plan(TO.model_copy(update={"rename": renames}))
    text = drawn(plan, ("", "old-"))
    rows = [[cell.strip() for cell in line.split("│")[1:-1]] for line in text.splitlines()]
    assert [row for row in rows if row] == [["orders", "old-orders", "26 B", "2", "1", "1"]]
    assert "of ScopeCopy shop, in -> shop" in text
    assert "Renamed, '' to 'old-': 1 (orders -> old-orders)" in text


def test_events_that_are_counted_later_are_not_made_up() -> None:
    """The total of the known events is a lower bound."""
    unknown = stream_plan(segment_plan(9, events=None), source=StreamName(scope="in", stream="u"))
    assert "2 streams, 19 B, at least 1 events" in drawn(scope_plan(stream("a", 10), unknown))
    text = drawn(scope_plan(unknown))
    assert "1 stream, 9 B, unknown events" in text
    assert "counted later" in text


def test_a_plan_says_what_it_leaves_out() -> None:
    """Each reason has a number, an explanation and the first names. Tables are named, too."""
    names = tuple(f"n{number}" for number in range(9))
    left_out = (
        LeftOut(why=Why.NOT_SELECTED, count=1234, streams=names),
        LeftOut(why=Why.EXISTS, count=1, streams=("there",)),
    )
    text = drawn(scope_plan(stream("a", 1), left_out=left_out, tables=("prices", "stock")))
    assert "1,234, spec.streams does not select them (n0, n1, n2, n3, n4 and 1,229 more)" in text
    assert "Left out: 1, their targets are there, and onExists is Skip (there)" in text
    assert "Key-value tables are not copied: prices, stock\n" in text


def test_every_reason_to_leave_out_is_explained() -> None:
    """No reason is shown as a bare word."""
    for why in Why:
        left_out = (LeftOut(why=why, count=1, streams=("a",)),)
        assert "Left out: 1, " in drawn(scope_plan(left_out=left_out))


def test_a_plan_without_streams_says_no_more_than_that() -> None:
    """The plan names no bounds, and no scope that is made or deleted."""
    text = drawn(scope_plan(make_scope=True, move=True, settled=(result("done"),)))
    assert "nothing is left to do" in text
    for said in ("Bounds", "is made", "deleted", "0 streams", "Stream"):
        assert said not in text
    assert "nothing can be copied" in drawn(scope_plan(settled=(FAILED,)))


def test_a_plan_shows_the_renames_that_apply() -> None:
    """The first rename that fits a name applies. Renames without effect are not shown."""
    plan = scope_plan(
        stream("tmp-a", 1, target="old-tmp-a"),
        stream("shop-a", 1, target="archive-a"),
        stream("shop-b", 1, target="archive-b"),
    )
    text = drawn(plan, ("shop-", "archive-"), ("shop-b", "never"), ("", "old-"), ("x", "y"))
    assert "Renamed, 'shop-' to 'archive-': 2 (shop-a -> archive-a, shop-b -> archive-b)" in text
    assert "Renamed, '' to 'old-': 1 (tmp-a -> old-tmp-a)" in text
    assert text.count("Renamed") == 2


def test_a_plan_names_what_cannot_be_copied_and_what_is_copied() -> None:
    """Streams that cannot be copied have a reason and a remedy, with their text unchanged."""
    plan = scope_plan(stream("a", 1), settled=(FAILED, result("done", bytes=2048)), run=2)
    text = drawn(plan, recorded=True)
    for said in (
        "Cannot be copied",
        "SourceUnsupported",
        "it has [no] shape",
        "Copy it by hand.",
        "Copied already: 1, 2.0 kB (done)",
        "begun, bounds are fixed; run 2, of what failed or was stopped",
    ):
        assert said in text


def test_a_plan_says_what_becomes_of_scopes() -> None:
    """The plan tells whether the target's scope is made, and the source's scope deleted."""
    plain = drawn(scope_plan(stream("a", 1)))
    assert "is made" not in plain
    assert "deleted" not in plain
    text = drawn(scope_plan(stream("a", 1), make_scope=True, move=True))
    assert "The scope out is made if it is not there." in text
    assert "and then the scope in if nothing is left in it." in text


def test_a_run_shows_the_biggest_streams_only() -> None:
    """The number of the other streams is shown."""
    plan = scope_plan(*(stream(f"s{number}", 9 - number) for number in range(5)))
    text = drawn(plan, most=2)
    assert "│ s1 " in text
    assert "│ s2 " not in text
    assert "... and 3 smaller ones;" in text
    assert "5 streams, 35 B" in text


def test_a_terminal_of_80_columns_breaks_no_word() -> None:
    """The least important columns are left out. Long names continue behind a separator."""
    names = tuple(f"a-stream-that-is-left-out-{number}" for number in range(9))
    left_out = (LeftOut(why=Why.NOT_SELECTED, count=1234, streams=names),)
    long = "a-stream-with-a-rather-long-name-0123-" * 3
    streams = [stream(f"s{number}", 1 << 40, target=f"old-s{number}") for number in range(3)]
    for one in (long, "short"):
        plan = scope_plan(
            *streams, stream(one, 1), settled=(FAILED,), left_out=left_out, make_scope=True
        )
        text = drawn(plan, ("s", "old-s"), width=80)
        assert max(map(len, text.splitlines())) <= 80
        for word in (
            "Stream",
            "Target",
            "Bytes",
            "Events",
            "old-s1",
            "SourceUnsupported",
            *names[:5],
        ):
            assert word in text
    plan = scope_plan(stream(long, 1))
    lines = drawn(plan, width=80).splitlines()
    cells = [line.split("│")[1].strip() for line in lines if line.startswith("│")]
    assert "".join(cells) == long
    assert "Target" not in drawn(plan, width=80)  # the column would repeat the stream's name


def test_a_report_counts_what_was_copied(capsys: pytest.CaptureFixture[str]) -> None:
    """Bytes of this run have a size and a speed. Streams copied before are only counted."""
    plan = scope_plan(stream("a", 1), settled=(result("done", bytes=9999),))
    results = (result("a", bytes=2048, events=12), result("done", bytes=9999))
    assert shown(capsys, plan, results=results) == (
        "ScopeCopy shop: in -> out: 2 of 2 streams are copied; 12 events, 2.0 kB in 2s (1.0 kB/s)\n"
    )


def test_a_report_shows_failures_with_their_remedies(capsys: pytest.CaptureFixture[str]) -> None:
    """Streams that were not begun because of a failure are named, too."""
    results = (result("a"), FAILED, result("late", StreamState.STOPPED))
    text = shown(capsys, scope_plan(stream("a", 1)), results=results)
    for said in ("1 of 3 streams", "1 could not be copied", "odd", "SourceUnsupported", "[no]"):
        assert said in text
    assert "Not begun, since another one had failed: late" in text


def test_a_report_of_many_failures_is_bounded(capsys: pytest.CaptureFixture[str]) -> None:
    """Fifty are shown, and all are counted."""
    results = tuple(FAILED.model_copy(update={"stream": f"odd{number}"}) for number in range(60))
    text = shown(capsys, scope_plan(), results=results)
    assert text.count("SourceUnsupp") == 50
    assert "60 could not be copied" in text
    assert "... and 10 more, which -o json shows." in text


def test_a_report_says_what_else_there_is_to_know(capsys: pytest.CaptureFixture[str]) -> None:
    """It tells of lost bytes, a kept scope, the cause of an early end, and an empty selection."""
    trouble = Trouble.of(StoreUnavailable("no answer"))
    text = shown(
        capsys,
        scope_plan(stream("a", 1)),
        results=(result("a", lost=1024),),
        trouble=trouble,
        kept="a key-value table is in it",
    )
    assert "a: 1.0 kB were truncated before they were read" in text
    assert "The scope in is kept: a key-value table is in it" in text
    assert "StoreUnavailable: no answer" in text
    assert trouble.remedy in text
    nothing = shown(capsys, scope_plan(), results=())
    assert "0 of 0 streams are copied\n  Nothing was selected." in nothing


def test_what_was_given_up_for_now_is_named_in_a_line(capsys: pytest.CaptureFixture[str]) -> None:
    """A store that is away fails all streams alike, so the reason is shown once."""
    away = Trouble.of(StoreUnavailable("no answer"))
    results = tuple(result(f"s{n}", StreamState.PLANNED, trouble=away) for n in range(30))
    text = shown(capsys, scope_plan(stream("s0", 1)), results=results, trouble=away)
    assert "Not finished, another run goes on: 30 (s0, s1, s2, s3, s4 and 25 more)\n" in text
    assert text.count("no answer") == 1


def test_a_reason_of_many_streams_is_said_once(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """It is repeated later, with a count. A failure that is not retryable is always shown."""
    plan = scope_plan(stream("a", 1), stream("b", 1))
    live = console.LiveProgress(plan, ScopeWorkload(request()), Settings())
    store = ModelStore(World())
    copies = [
        StreamCopyWork(one, number, [store], store) for number, one in enumerate(plan.streams)
    ]
    error = StoreUnavailable("no answer")
    for copy in copies * 3:
        live.retry(copy, error, 1.5)
    live.ended(result("b", StreamState.FAILED, trouble=Trouble.of(error)))
    live.ended(FAILED)
    live.ended(result("a"))
    assert capsys.readouterr().err == (
        "in/a: StoreUnavailable: no answer (trying again in 1.5 s)\n"
        "odd: SourceUnsupported: it has [no] shape\n"
    )
    monkeypatch.setattr(live, "QUIET_SECONDS", 0.0)
    live.retry(copies[1], error, 1.5)
    assert capsys.readouterr().err == (
        "in/b: StoreUnavailable: no answer "
        "(trying again in 1.5 s; 6 times more since that was said)\n"
    )


def test_a_summary_counts_streams_by_what_became_of_them() -> None:
    """The counts have a fixed order, and zeros are left out."""
    words = {"failed": 1, "copied": 28, "already complete": 1, "stopped": 0}
    assert console.summary(words) == "28 copied, 1 already complete, 1 failed"
    assert console.summary({}) == "nothing to do"
