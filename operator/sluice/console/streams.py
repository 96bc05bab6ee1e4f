"""Print scopes and streams as a store has them."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from sluice.console import cells
from sluice.console.grid import Column, Grid
from sluice.console.page import Words, out
from sluice.core.values.text import size
from sluice.engine.streams.overview import Forbidden

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from sluice.engine.streams.overview import Overview

_FORBIDDEN: Final = "not permitted"


def show_scopes(found: Iterable[tuple[str, int | None]]) -> None:
    """Print scopes with their numbers of streams; None where these are not permitted."""
    table = Grid(Column("Scope", name=True), Column("Streams", right=True))
    for scope, count in found:
        table.add(scope, _FORBIDDEN if count is None else f"{count:,}")
    out.print(table)


def show_streams(scope: str, found: Iterable[Overview | Forbidden]) -> None:
    """Print the streams of a scope, a line for each."""
    table = Grid(
        Column("Stream", name=True),
        Column("Segments", right=True, rank=1),
        Column("Bytes", right=True),
        Column("Events", right=True),
        Column("State"),
    )
    for one in found:
        if isinstance(one, Forbidden):
            table.add(one.name.stream, "", "", "", _FORBIDDEN)
            continue
        table.add(
            one.name.stream,
            str(len(one.stream.tail)),
            size(one.bytes),
            cells.events(one.events),
            "sealed" if one.stream.sealed else "open",
        )
    out.print(Words(f"Streams of {scope}", "italic"))
    out.print(table)


def show_stream(found: Overview, cuts: Mapping[str, str]) -> None:
    """Print a stream: its segments in a table, and its policies, tags and ends.

    Args:
        found: the stream.
        cuts: StreamCuts as text, by the ends where they are: head and tail.
    """
    config = found.stream.config
    state = "sealed" if found.stream.sealed else "open"
    table = Grid(
        Column("Segment", right=True),
        Column("Keys", rank=1),
        Column("Made", rank=2),
        Column("Start", right=True),
        Column("End", right=True),
        Column("Bytes", right=True, rank=3),
        Column("Events", right=True),
    )
    for one in found.segments:
        table.add(
            str(one.id),
            cells.keys(one.keys),
            cells.made(one.generation),
            f"{one.start:,}",
            f"{one.end:,}",
            size(one.end - one.start),
            cells.events(one.events),
        )
    whole = f"{found.name}: {size(found.bytes)}, {cells.events(found.events)} events, {state}"
    out.print(Words(whole, "italic"))
    out.print(table)
    scaling, retention = config.scaling, config.retention
    target = f", {scaling.target_rate:,} each, factor {scaling.scale_factor}"
    out.print(
        f"Scaling: {scaling.type}{target if scaling.target_rate else ''}, "
        f"at least {scaling.min_segments} segments"
    )
    limit = f", {retention.minimum:,}" if retention.minimum else ""
    out.print(f"Retention: {retention.type}{limit}")
    out.print(Words(f"Tags: {', '.join(config.tags) or 'none'}"))
    for end, text in cuts.items():
        out.print(f"{end.capitalize()}: {text}", markup=False)
