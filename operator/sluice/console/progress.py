"""Show progress bars."""

from __future__ import annotations

import math
import threading
import time
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any, Self

import structlog
from rich.progress import BarColumn, Progress, SpinnerColumn, TextColumn

from sluice.console import following
from sluice.console.page import Words, duration, err, note
from sluice.console.scopes import named
from sluice.core.copy.steps import (
    BeginCatchUp,
    Follow,
    Halt,
    Prove,
    Publish,
    RecordRun,
    SealSource,
    Stitch,
    Stop,
    Transfer,
    Verify,
)
from sluice.core.scope.progress import Meter
from sluice.core.values.text import size
from sluice.core.workloads.plan import ArchiveRunPlan, ScopeCopyPlan
from sluice.errors import SluiceError
from sluice.pipelines.programs.stores import Stores

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from sluice.config import Settings
    from sluice.core.copy.steps import Step
    from sluice.core.follow.lag import Followed
    from sluice.core.scope.progress import Pace
    from sluice.core.scope.progress import Progress as Reading
    from sluice.core.scope.scope import Counts, StreamResult
    from sluice.core.workloads.plan import Plan
    from sluice.engine.tasks.work import Work
    from sluice.engine.workloads.workload import Workload

_log = structlog.get_logger()

_POLL_SECONDS = 0.5
_LIVE_SECONDS = 2.0
"""Seconds between two looks at a copy that follows its source, perhaps for months."""
_REST = 5
"""How many times as long as a look takes, the next one is waited for: this process follows, too."""
_WAITS = "waiting for the store"
_WIDE_PAGE, _WIDE_BAR, _NARROW_BAR = 100, 24, 8
"""Columns from which on a page has the wide bar, and the characters of both bars."""
_GAPS = 4
"""Characters of the spinner, and between it, description, bar and text."""
_PHASES: Mapping[type[Step], str] = {
    Stitch: "verifying",
    Verify: "verifying",
    Publish: "publishing",
    RecordRun: "recording",
    SealSource: "sealing the source",
    Halt: "proving",
    Prove: "proving",
}
_MOVING = frozenset({"copying", "archiving"})
"""Phases in which bytes come."""


def _bar_width() -> int:
    return _WIDE_BAR if note.width >= _WIDE_PAGE else _NARROW_BAR


def _bar() -> Progress:
    return Progress(
        SpinnerColumn(),
        TextColumn("{task.description}"),
        BarColumn(bar_width=_bar_width()),
        TextColumn("{task.fields[text]}"),
        console=note,
        transient=True,
    )


def _room() -> int:
    """Return the characters that a bar leaves for the text behind it."""
    return note.width - _bar_width() - len(_WAITS) - _GAPS


def _progress(
    done: int,
    total: int,
    pace: Pace,
    *,
    events: int | None = None,
    streams: Counts | None = None,
) -> str:
    """Write how many of the bytes, events and streams are done, and how fast.

    On a narrow page, the parts that are needed least are left out.
    """
    share = done / total if total else 1.0
    parts = {
        "streams": "" if streams is None else f"{streams.copied:,}/{streams.total:,} streams",
        "bytes": f"{share:4.0%} {size(done)}/{size(total)}",
        "failed": f"{streams.failed:,} failed" if streams is not None and streams.failed else "",
        "events": "" if events is None else f"~{round(events * share):,} events",
        "rate": f"{size(pace.rate)}/s",
        "left": f"ETA {duration(pace.eta)}",
    }
    room = _room()
    for spare in ("", "events", "rate"):
        parts.pop(spare, None)
        text = "  ".join(part for part in parts.values() if part)
        if len(text) <= room:
            break
    return text


class ReadProgress:
    """A progress bar of bytes that several threads read.

    Args:
        what: the text before the bar.
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
        """Show the bar."""
        self._bar.start()
        return self

    def __exit__(self, *_: object) -> None:
        """Remove the bar."""
        self._bar.stop()

    def told(self, count: int) -> None:
        """Count bytes that were read, and move the bar."""
        with self._lock:
            self._done += count
            pace = self._meter.read(time.monotonic(), self._done, self._total)
            text = _progress(self._done, self._total, pace)
            self._bar.update(self._task, completed=self._done, text=text)


class LiveProgress:
    """A progress bar that reads the target store, and a listener that prints what goes wrong.

    When a store is away, many streams of a scope fail for the same reason at once. So a reason is
    printed once, and again only after `QUIET_SECONDS`, with the number of failures since.

    Args:
        plan: the plan of one stream, or of a scope.
        workload: measures the progress of the plan.
        settings: for the connection to the store.

    Attributes:
        is_live: whether a copy that follows its source has begun to follow.
        followed: how far such a copy is, as it was last seen; None before that.
    """

    QUIET_SECONDS = 10.0

    def __init__(self, plan: Plan, workload: Workload, settings: Settings) -> None:
        self._plan = plan
        self._follows = plan.follows
        self._workload = workload
        self._settings = settings
        self._phase = "starting"
        self._waiting: str | None = None
        self._stop = threading.Event()
        self._bar = _bar()
        self._lock = threading.Lock()  # several workers report streams of a scope
        self._said: dict[str, tuple[float, int]] = {}
        self._retries = 0
        self.is_live = False
        self.followed: Followed | None = None

    def step(self, copy: Work[Any, Any], step: Step) -> None:
        """Show the phase that a step belongs to."""
        _log.debug("step", source=copy.plan.origin, step=type(step).__name__)
        if isinstance(self._plan, ScopeCopyPlan):
            # Streams are at different steps, so the bar names the work as a whole.
            self._phase = _phase_of(self._plan, is_live=self.is_live)
            return
        match step:
            case Transfer():
                self._phase = "archiving" if isinstance(self._plan, ArchiveRunPlan) else "copying"
            case Follow():
                self._follow(copy.plan.origin)
            case BeginCatchUp():
                note.print(Words(f"{copy.plan.origin} {following.FAR_BEHIND}"))
            case Stop(why):
                note.print(Words(f"{copy.plan.origin} is to end: {following.ending(why)}"))
                self._phase = "ending"
            case _:
                self._phase = _PHASES.get(type(step), self._phase)

    def _follow(self, origin: str) -> None:
        """Show that a source is followed; print it the first time, for terminals without a bar."""
        self._phase = "following"
        if not self.is_live:
            self.is_live = True
            note.print(Words(f"{origin} is followed: all planned bytes are verified and readable"))

    def joined(self, streams: Sequence[str]) -> None:
        """Print which streams join a scope that is followed."""
        note.print(Words(f"{named(streams, len(streams))} joined"))

    def retry(self, copy: Work[Any, Any], error: SluiceError, delay: float) -> None:
        """Print why a step is tried again, and after how many seconds."""
        self._retries += 1
        unsaid = self._unsaid(error.reason) if isinstance(self._plan, ScopeCopyPlan) else 0
        if unsaid is None:
            return
        more = f"; {unsaid:,} times more since that was said" if unsaid else ""
        note.print(
            Words(
                f"{copy.plan.origin}: {error.reason}: {error} (trying again in {delay:.1f} s{more})"
            )
        )

    def _unsaid(self, reason: str) -> int | None:
        """Count how often a reason was held back since it was last printed.

        Returns:
            The count; None if the reason must be held back now as well.
        """
        now = time.monotonic()
        with self._lock:
            last, unsaid = self._said.get(reason, (-math.inf, 0))
            quiet = now < last + self.QUIET_SECONDS
            self._said[reason] = (last, unsaid + 1) if quiet else (now, 0)
            return None if quiet else unsaid

    def ended(self, result: StreamResult) -> None:
        """Print why a stream failed."""
        failure = result.trouble
        # A retryable failure mostly hits many streams, and was printed when it was tried again.
        if failure is None or (failure.retryable and self._unsaid(failure.reason) is None):
            return
        err.print(Words(f"{result.stream}: {failure.reason}: {failure.message}"))

    @contextmanager
    def waiting(self, what: str) -> Iterator[None]:
        """Show the reason of a wait while the block runs. The speed is measured anew afterwards."""
        self._waiting = what
        try:
            yield
        finally:
            self._waiting = None

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

    def _description(self, progress: Reading, pace: Pace) -> str:
        """Return the phase; while bytes are to come and none do, that a store is waited for."""
        waits = pace.waits and progress.bytes < progress.total and self._phase in _MOVING
        return _WAITS if waits else self._phase

    def _text(self, progress: Reading, pace: Pace) -> str:
        """Return the text behind the bar."""
        follow = progress.follow
        if follow is not None and follow.live:
            self._came_live(follow)
            self.followed = follow
            return following.live_line(follow, pace.rate, self._retries, _room())
        return _progress(
            progress.bytes,
            self._plan.bytes,
            pace,
            events=self._plan.events,
            streams=progress.streams,
        )

    def _came_live(self, follow: Followed) -> None:
        """Print once that the streams of a scope are followed, also for terminals without a bar."""
        if self.is_live or follow.streams is None or self._plan.scope is None:
            return
        self.is_live, self._phase = True, "following"
        note.print(Words(following.scope_is_live(self._plan.scope.source, follow.streams)))

    def _watch(self) -> None:
        total = self._plan.bytes
        task = self._bar.add_task("starting", total=total or 1, text="")
        meter = Meter()
        with Stores(self._settings) as stores:  # on connections of its own
            sources = [stores.place(one) for one in self._plan.sources] if self._follows else []
            watch = self._workload.watch(self._plan, stores.place(self._plan.target), sources)
            while not self._stop.is_set():
                began = time.monotonic()
                try:
                    progress = watch.measure()
                except SluiceError:
                    self._bar.update(task, description=_WAITS)
                else:
                    waiting = self._waiting
                    meter = meter if waiting is None else Meter()
                    pace = meter.read(time.monotonic(), progress.bytes, total)
                    done, whole = _extent(progress)
                    self._bar.update(
                        task,
                        completed=done,
                        total=whole,
                        description=waiting or self._description(progress, pace),
                        text=self._text(progress, pace),
                    )
                pause = _LIVE_SECONDS if self.followed else _POLL_SECONDS
                self._stop.wait(max(pause, _REST * (time.monotonic() - began)))


def _phase_of(plan: ScopeCopyPlan, *, is_live: bool) -> str:
    """Name the work on a scope as a whole."""
    if is_live:
        return "following"
    return "archiving" if plan.runs else "copying"


def _extent(progress: Reading) -> tuple[int, int]:
    """Return how much of the bar is full, and its length.

    Both count bytes, or streams if there are no bytes to copy.
    """
    if progress.total or progress.streams is None:
        return progress.bytes, progress.total or 1
    counts = progress.streams
    return counts.total - counts.left, counts.total or 1
