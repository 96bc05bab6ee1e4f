"""What people see: tables, a progress bar, errors with their remedy. Text goes to stderr.

Only results go to stdout, so that `--output json` can be piped.
"""

from __future__ import annotations

import threading
import time
from collections import Counter
from contextlib import contextmanager
from typing import TYPE_CHECKING, Self

import structlog
from rich.console import Console
from rich.progress import BarColumn, Progress, SpinnerColumn, TextColumn
from rich.table import Table

from sluice.core.plan import origin
from sluice.core.progress import Meter
from sluice.core.steps import Publish, Stitch, Transfer, Verify
from sluice.core.verification import Result
from sluice.engine.progress import Watch
from sluice.engine.report import Outcome
from sluice.errors import SluiceError
from sluice.stores.connect import connect

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from sluice.config import Settings
    from sluice.core.plan import Plan
    from sluice.core.progress import Pace
    from sluice.core.steps import Step
    from sluice.core.verification import Difference, StreamSide, Verification
    from sluice.engine.report import StreamReport
    from sluice.engine.stream import StreamCopy

_log = structlog.get_logger()

err = Console(stderr=True, highlight=False, soft_wrap=True)
out = Console(highlight=False, soft_wrap=True)

_UNITS = ("B", "KiB", "MiB", "GiB", "TiB", "PiB")
_STEP = 1024
_POLL_SECONDS = 0.5
_MINUTE = 60
_HOUR = 3600
_MOST_DIFFERENCES = 10


def size(count: float) -> str:
    """Bytes for people: 1536 -> `1.5 KiB`."""
    value = float(count)
    for unit in _UNITS:
        if round(value, 1) < _STEP or unit == _UNITS[-1]:
            return f"{value:.0f} {unit}" if unit == "B" else f"{value:.1f} {unit}"
        value /= _STEP
    raise AssertionError


def duration(seconds: float | None) -> str:
    """Seconds for people: 3700 -> `1h01m`."""
    if seconds is None:
        return "-"
    whole = round(seconds)
    if whole < _MINUTE:
        return f"{whole}s"
    if whole < _HOUR:
        return f"{whole // _MINUTE}m{whole % _MINUTE:02}s"
    return f"{whole // _HOUR}h{whole % _HOUR // _MINUTE:02}m"


def plan_table(plan: Plan, *, recorded: bool) -> Table:
    """A plan as a table: a line for each segment."""
    events = [stream.events for stream in plan.streams]
    counted = "unknown" if None in events else f"{sum(e for e in events if e is not None):,}"
    state = "begun, bounds are fixed" if recorded else "not begun, bounds are taken at the start"
    table = Table(
        title=f"Plan {plan.hash[:12]} ({state})",
        caption=f"{size(plan.bytes)}, {counted} events, {_uris(plan)} -> {plan.target.uri}",
        title_justify="left",
        caption_justify="left",
    )
    for column in ("Source", "Target", "Segment", "Keys"):
        table.add_column(column, overflow="fold")
    scaled = any(len(stream.generations) > 1 for stream in plan.streams)
    for column in (*["Made"] * scaled, "Start", "End", "Bytes", "Events", "Parts"):
        table.add_column(column, justify="right")
    for stream in plan.streams:
        for segment in stream.segments:
            table.add_row(
                str(stream.source_of(segment).stream),
                f"{stream.target} (append)" if stream.append else str(stream.target),
                str(segment.id),
                f"{segment.keys.low:.3f}-{segment.keys.high:.3f}",
                *[f"scale {segment.generation}" if segment.generation else "first"] * scaled,
                f"{segment.start:,}",
                f"{segment.end:,}",
                size(segment.length),
                "counted later" if segment.events is None else f"{segment.events:,}",
                str(len(segment.parts)),
            )
    return table


def _uris(plan: Plan) -> str:
    """Where a plan reads from."""
    return ", ".join(dict.fromkeys(address.uri for address in plan.sources))


def report_table(report: StreamReport, seconds: float) -> Table:
    """A finished copy as a table: a line for each segment."""
    table = Table(
        title=f"{report.source} -> {report.target}",
        caption=(
            f"{report.events:,} events, {size(report.bytes)} in {duration(seconds)} "
            f"({size(report.bytes / seconds if seconds else 0)}/s), digest {report.digest}"
        ),
        title_justify="left",
        caption_justify="left",
    )
    for column in ("Segment", "Target"):
        table.add_column(column)
    for column in ("Start", "End", "Bytes", "Events"):
        table.add_column(column, justify="right")
    table.add_column("SHA-256 of chunks", overflow="fold")
    for segment in report.segments:
        table.add_row(
            str(segment.source),
            str(segment.target),
            f"{segment.start:,}",
            f"{segment.end:,}",
            size(segment.end - segment.start),
            "unknown" if segment.events is None else f"{segment.events:,}",
            segment.digest,
        )
    return table


def verification_table(found: Verification) -> Table:
    """Two streams that were compared, as a table: a line for each pair of segments."""
    counted = "bytes that are no events" if found.source.events is None else "events"
    events = "" if found.source.events is None else f"{found.source.events:,} "
    several = len(found.sources) > 1
    stores = ", ".join(dict.fromkeys(source.store for source in found.sources))
    table = Table(
        title=f"{origin([source.stream for source in found.sources])} ({stores}) - "
        f"{found.target.stream} ({found.target.store})",
        caption=f"{events}{counted}, {size(found.source.bytes)}, digest {found.source.digest}",
        title_justify="left",
        caption_justify="left",
    )
    for column in (*(("Stream",) if several else ()), "Segment", "Target"):
        table.add_column(column, overflow="fold")
    for column in ("Start", "End", "Bytes", "Events", "Shift"):
        table.add_column(column, justify="right", overflow="fold")
    table.add_column("", overflow="fold")
    for segment in found.segments:
        gone = "equal, as far as it is there" if segment.gone else "equal"
        table.add_row(
            *([str(found.sources[segment.source_index].stream)] if several else []),
            str(segment.source.segment),
            str(segment.target.segment),
            f"{segment.start:,}",
            f"{segment.end:,}",
            size(segment.end - segment.start),
            "-" if segment.source.events is None else f"{segment.source.events:,}",
            f"{segment.shift:,}",
            gone if segment.equal else "[bold red]different[/]",
        )
    return table


def show_verification(found: Verification) -> None:
    """How streams compare."""
    out.print(verification_table(found))
    if found.gone:
        out.print(f"{found.gone:,} bytes of the source are gone and could not be compared.")
    if found.beyond:
        out.print(
            f"{found.beyond:,} bytes of the target are outside of these bounds, not compared."
        )
    for one in found.differences[:_MOST_DIFFERENCES]:
        out.print(f"{one.what}{_place(one, found.sources)}: {one.message}", markup=False)
    more = len(found.differences) - _MOST_DIFFERENCES
    if more > 0:
        out.print(f"... and {more:,} more differences, which are in the report.")
    colour = "green" if found.result is Result.EQUAL else "bold red"
    out.print(f"[{colour}]{found.result}[/]")


def _place(one: Difference, sources: Sequence[StreamSide]) -> str:
    """Where a difference begins; of several sources, in which of them."""
    of = ""
    if one.source_index is not None and len(sources) > 1:
        of = f" of {sources[one.source_index].stream}"
    source = "" if one.segment is None else f" in segment {one.segment}{of} at {one.offset:,}"
    if one.target_segment is None:
        return source
    return f"{source} (in the target: segment {one.target_segment} at {one.target_offset:,})"


def show_error(error: SluiceError) -> None:
    """An error with its reason and remedy."""
    err.print(f"[bold red]{error.reason}[/]: ", end="")
    err.print(str(error), markup=False)
    for note in getattr(error, "__notes__", ()):
        err.print(f"  {note}", markup=False)
    err.print(f"  {error.remedy}", markup=False)


def show_report(report: StreamReport, seconds: float) -> None:
    """How one stream's copy ended."""
    if report.outcome is Outcome.COPIED:
        err.print(report_table(report, seconds))
    elif report.outcome is Outcome.ALREADY_COMPLETE:
        err.print(
            f"{report.source} -> {report.target}: already copied, nothing to do "
            f"(digest {report.digest})"
        )
    elif report.error is not None:
        failure = report.error
        err.print(f"[bold red]{failure.reason}[/]: ", end="")
        err.print(
            f"{failure.field}: {failure.message}" if failure.field else failure.message,
            markup=False,
        )
        err.print(f"  {failure.remedy}", markup=False)
        if report.cleaned:
            err.print("  Staged bytes and the unpublished target were deleted.")


def _bar() -> Progress:
    return Progress(
        SpinnerColumn(),
        TextColumn("{task.description}"),
        BarColumn(bar_width=24),
        TextColumn("{task.fields[text]}"),
        console=err,
        transient=True,
    )


def _progress(done: int, total: int, pace: Pace, events: int | None = None) -> str:
    """How far it is, of so many bytes and events."""
    share = done / total if total else 1.0
    text = f"{share:4.0%} {size(done)}/{size(total)}"
    if events is not None:
        text += f"  ~{round(events * share):,} events"
    return f"{text}  {size(pace.rate)}/s  ETA {duration(pace.eta)}"


class ReadProgress:
    """A progress bar of bytes that several threads read.

    Args:
        what: they do.
        total: bytes to read.
    """

    def __init__(self, what: str, total: int) -> None:
        self._total = total
        self._done = 0
        self._lock = threading.Lock()
        self._meter = Meter()
        self._bar = _bar()
        self._task = self._bar.add_task(what, total=total or 1, text="")

    def __enter__(self) -> Self:
        """Show it."""
        self._bar.start()
        return self

    def __exit__(self, *_: object) -> None:
        """Show it no more."""
        self._bar.stop()

    def told(self, count: int) -> None:
        """So many more bytes were read."""
        with self._lock:
            self._done += count
            pace = self._meter.read(time.monotonic(), self._done, self._total)
            text = _progress(self._done, self._total, pace)
            self._bar.update(self._task, completed=self._done, text=text)


class LiveProgress:
    """A progress bar that reads the target store, and says what goes wrong meanwhile."""

    def __init__(self, plan: Plan, settings: Settings) -> None:
        self._plan = plan
        self._settings = settings
        self._phase = "starting"
        self._stop = threading.Event()
        self._bar = _bar()

    def step(self, copy: StreamCopy, step: Step) -> None:
        """See Listener."""
        _log.debug("step", source=copy.plan.origin, step=type(step).__name__)
        match step:
            case Transfer():
                self._phase = "copying"
            case Stitch() | Verify():
                self._phase = "verifying"
            case Publish():
                self._phase = "publishing"

    def retry(self, copy: StreamCopy, error: SluiceError, delay: float) -> None:
        """See Listener."""
        err.print(
            f"{copy.plan.origin}: {error.reason}: {error} (trying again in {delay:.1f} s)",
            markup=False,
        )

    @contextmanager
    def shown(self) -> Iterator[None]:
        """Show the bar while the block runs."""
        with self._bar:
            thread = threading.Thread(target=self._watch, name="progress", daemon=True)
            thread.start()
            try:
                yield
            finally:
                self._stop.set()
                thread.join(timeout=_POLL_SECONDS * 4)

    def _watch(self) -> None:
        total = self._plan.bytes
        events = [stream.events for stream in self._plan.streams]
        count = None if None in events else sum(e for e in events if e is not None)
        task = self._bar.add_task("starting", total=total or 1, text="")
        meter = Meter()
        store = connect(self._plan.target, self._settings)
        watch = Watch(self._plan, store)
        try:
            while not self._stop.is_set():
                try:
                    progress = watch.measure()
                except SluiceError:
                    self._bar.update(task, description="waiting for the store")
                else:
                    pace = meter.read(time.monotonic(), progress.bytes, total)
                    text = _progress(progress.bytes, total, pace, count)
                    self._bar.update(
                        task, completed=progress.bytes, description=self._phase, text=text
                    )
                self._stop.wait(_POLL_SECONDS)
        finally:
            store.close()


def summary(ended: list[tuple[str, StreamReport, float]]) -> str:
    """One line over all copies: `2 copied, 1 failed`."""
    words = {
        Outcome.COPIED: "copied",
        Outcome.ALREADY_COMPLETE: "already complete",
        Outcome.FAILED: "failed",
    }
    counts = Counter(report.outcome for _, report, _ in ended)
    return ", ".join(f"{counts[o]} {words[o]}" for o in Outcome if counts[o]) or "nothing to do"
