"""Show the progress of many resources: as bars on a terminal, and elsewhere as lines."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final, NamedTuple, Self

from rich.live import Live
from rich.progress_bar import ProgressBar
from rich.table import Table
from rich.text import Text

from sluice.api.status.common import ConditionType, CopyingStatus
from sluice.api.status.query_status import StreamQueryStatus
from sluice.api.status.scope_status import ScopeCopyStatus
from sluice.console.overview import done as streams_done
from sluice.console.overview import followed
from sluice.console.page import duration, note, out, printable
from sluice.core.values.text import counted, size

if TYPE_CHECKING:
    from collections.abc import Sequence

    from sluice.administration.following import FollowedResource
    from sluice.api.status.common import ResourceStatus

_BAR: Final = 24
_LEAST_BAR: Final = 8
"""Columns of a bar, at most and at least."""

_GAP: Final = 2
"""Columns between two columns of the table."""

_STEP: Final = 10
"""Percent after which a line is printed again."""


class Shown(NamedTuple):
    """The line of a resource.

    Attributes:
        name: its kind and name.
        percent: how far it is; None if that is unknown.
        done: bytes, or streams, that are done.
        rate: bytes per second, and the time left.
        state: the reason of its condition Ready.
        style: the colour of the state.
        rests: whether nothing happens to it until a person acts.
    """

    name: str
    percent: int | None
    done: str
    rate: str
    state: str
    style: str
    rests: bool

    @property
    def line(self) -> str:
        """The resource as one line of text."""
        share = "" if self.percent is None else f"{self.percent}%"
        parts = (self.name, self.state, share, self.done, self.rate)
        return "  ".join(part for part in parts if part)


def shown(one: FollowedResource, *, namespaces: bool) -> Shown:
    """Return the line of a resource, with its namespace if that is wanted."""
    place = f"{one.resource.namespace}/" if namespaces else ""
    state, style = _state(one)
    percent, done, rate = _progress(one.status, ended=one.rests)
    return Shown(printable(f"{place}{one.resource}"), percent, done, rate, state, style, one.rests)


def _state(one: FollowedResource) -> tuple[str, str]:
    ready = one.status.condition(ConditionType.READY)
    if one.gone:
        return "Deleted", "red"
    if ready is None:
        return "New", "yellow"
    if one.end is None:
        return printable(ready.reason), "yellow"
    return printable(ready.reason), "green" if one.end.met else "bold red"


def _progress(status: ResourceStatus, *, ended: bool) -> tuple[int | None, str, str]:
    """Return percent, bytes and rate; a resource that rests has no rate."""
    if isinstance(status, StreamQueryStatus) and status.progress is not None:
        behind = status.progress.lag
        parts = [counted(status.progress.rows, "row"), *([f"lag {behind}"] if behind else [])]
        return None, ", ".join(parts), ""
    if not isinstance(status, CopyingStatus) or status.progress is None:
        return None, "", ""
    progress, follow = status.progress, followed(status)
    done = f"{size(progress.bytes)}/{size(progress.total_bytes)}"
    if follow is not None:
        done = follow.lag
    if isinstance(status, ScopeCopyStatus) and status.streams is not None:
        done = f"{streams_done(status, status.streams)}  {done}"
    if follow is not None:
        moves = progress.bytes_per_second is not None and not ended
        return None, done, f"{size(progress.bytes_per_second or 0)}/s" if moves else ""
    if ended or progress.bytes_per_second is None:
        return progress.percent, done, ""
    rate = f"{size(progress.bytes_per_second)}/s  ETA {duration(progress.eta_seconds)}"
    return progress.percent, done, rate


class Watching:
    """The progress of resources, on standard output. Nothing is shown after `hush`.

    Args:
        namespaces: whether names have their namespace.
    """

    def __init__(self, *, namespaces: bool) -> None:
        self._namespaces = namespaces
        self._told: dict[str, tuple[str, int]] = {}
        bars = out.is_terminal and not out.is_dumb_terminal and not note.quiet
        self._live = Live(console=out, auto_refresh=False) if bars else None

    def __enter__(self) -> Self:
        """Begin to show."""
        if self._live is not None:
            self._live.start()
        return self

    def __exit__(self, *_: object) -> None:
        """Leave the last bars on the terminal."""
        if self._live is not None:
            self._live.stop()

    def show(self, found: Sequence[FollowedResource]) -> None:
        """Show the resources as they are now."""
        rows = [shown(one, namespaces=self._namespaces) for one in found]
        if self._live is not None:
            self._live.update(
                _bars(rows, width=out.width, most=max(1, out.height - 2)), refresh=True
            )
        elif not note.quiet:
            self._lines(rows)

    def _lines(self, rows: Sequence[Shown]) -> None:
        """Print the resources whose state is new, or whose progress is a step farther."""
        for row in rows:
            news = (row.state, (row.percent or 0) // _STEP)
            if self._told.get(row.name) != news:
                self._told[row.name] = news
                out.print(Text(row.line))


def _bars(rows: Sequence[Shown], *, width: int, most: int) -> Table:
    """Return a line for each resource. Those at work come first, as a terminal may be short.

    On a narrow terminal bars are shorter, and then the end of the lines is cut.
    """
    ordered = sorted(rows, key=lambda row: row.rests)
    shown = ordered[:most]
    texts = [f"{row.done}  {row.rate}".strip() for row in shown]
    others = [[row.name for row in shown], [row.state for row in shown], texts]
    taken = sum(max(map(len, column), default=0) for column in others)
    left = width - taken - len("100%") - 4 * _GAP
    bar_width = min(_BAR, max(_LEAST_BAR, left))
    table = Table.grid(padding=(0, _GAP, 0, 0))
    for _ in range(4):
        table.add_column(no_wrap=True)
    table.add_column()  # the only one that rich shrinks
    for row, text in zip(shown, texts, strict=True):
        bar = "" if row.percent is None else ProgressBar(100, row.percent, width=bar_width)
        share = "" if row.percent is None else f"{row.percent:3}%"
        state = Text(row.state, style=row.style)
        end = Text(text, no_wrap=True, overflow="ellipsis")
        table.add_row(Text(row.name), bar, share, state, end)
    if len(ordered) > most:
        table.add_row(f"... and {len(ordered) - most:,} more")
    return table
