"""Print the results of comparing streams."""

from __future__ import annotations

from typing import TYPE_CHECKING

from rich.console import Group
from rich.text import Text

from sluice.console.grid import Column, Grid
from sluice.console.page import Words, out
from sluice.core.copy.plan import origin
from sluice.core.values.text import size
from sluice.core.verify.verification import Result

if TYPE_CHECKING:
    from collections.abc import Sequence

    from sluice.core.verify.verification import Difference, StreamSide, Verification

_MOST_DIFFERENCES = 10


def verification_table(found: Verification) -> Group:
    """Make a table of two streams, a line for each pair of segments, between lines about both."""
    counted = "bytes that are no events" if found.source.events is None else "events"
    events = "" if found.source.events is None else f"{found.source.events:,} "
    several = len(found.sources) > 1
    stores = ", ".join(dict.fromkeys(source.store for source in found.sources))
    shifted = any(segment.shift for segment in found.segments)
    table = Grid(
        *[Column("Stream", name=True)] * several,
        Column("Segment"),
        Column("Target", rank=1),
        Column("Start", right=True),
        Column("End", right=True),
        Column("Bytes", right=True, rank=3),
        Column("Events", right=True, rank=2),
        Column("Shift", right=True, rank=0 if shifted else 4),
        Column(""),
    )
    for segment in found.segments:
        gone = "equal, as far as it is there" if segment.gone else "equal"
        table.add(
            *([str(found.sources[segment.source_index].stream)] if several else []),
            str(segment.source.segment),
            str(segment.target.segment),
            f"{segment.start:,}",
            f"{segment.end:,}",
            size(segment.end - segment.start),
            "-" if segment.source.events is None else f"{segment.source.events:,}",
            f"{segment.shift:,}",
            gone if segment.equal else Text("different", "bold red"),
        )
    return Group(
        Words(
            f"{origin([source.stream for source in found.sources])} ({stores}) - "
            f"{found.target.stream} ({found.target.store})",
            "italic",
        ),
        table,
        Words(
            f"{events}{counted}, {size(found.source.bytes)}, digest {found.source.digest}",
            "dim italic",
        ),
    )


def show_verification(found: Verification) -> None:
    """Print how two streams compare."""
    out.print(verification_table(found))
    if found.gone:
        said = (
            "are gone; the copy compared them while it followed."
            if found.is_proved
            else "are gone and could not be compared."
        )
        out.print(f"{found.gone:,} bytes of the source {said}")
    if found.taken:
        out.print(f"{found.taken:,} bytes of the target are gone by its retention.")
    if found.beyond:
        out.print(
            f"{found.beyond:,} bytes of the target are outside of these bounds, not compared."
        )
    for one in found.differences[:_MOST_DIFFERENCES]:
        out.print(Words(f"{one.what}{_place(one, found.sources)}: {one.message}"))
    more = len(found.differences) - _MOST_DIFFERENCES
    if more > 0:
        out.print(f"... and {more:,} more differences, which are in the report.")
    colour = "green" if found.result is Result.EQUAL else "bold red"
    out.print(f"[{colour}]{found.result}[/]")


def _place(one: Difference, sources: Sequence[StreamSide]) -> str:
    """Write where a difference begins; with several sources, also in which one."""
    of = ""
    if one.source_index is not None and len(sources) > 1:
        of = f" of {sources[one.source_index].stream}"
    source = "" if one.segment is None else f" in segment {one.segment}{of} at {one.offset:,}"
    if one.target_segment is None:
        return source
    return f"{source} (in the target: segment {one.target_segment} at {one.target_offset:,})"
