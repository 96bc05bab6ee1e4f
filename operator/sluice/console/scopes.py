"""Print copies of whole scopes: plans, reports, failed streams."""

from __future__ import annotations

from collections import Counter
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Final

from rich.console import Group
from rich.text import Text

from sluice.console import cells, following
from sluice.console.grid import Column, Grid
from sluice.console.page import Words, duration, err, note, show_trouble
from sluice.core.copy.plan import StreamPlan
from sluice.core.scope.scope import StreamState, Why
from sluice.core.values import text
from sluice.core.values.text import size

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence

    from sluice.core.archive.plan import ArchivePlan
    from sluice.core.scope.request import Rename, ScopeRequest
    from sluice.core.scope.scope import ScopePlan, StreamResult
    from sluice.core.workloads.plan import ScopeCopyPlan
    from sluice.engine.scope.report import ScopeReport

    Item = StreamPlan | ArchivePlan

MOST_FAILED: Final = 50
"""How many failed streams a table shows; the report has all."""

_NAMED: Final = 5
"""How many names a line shows that counts them."""

_LEFT_OUT: Final = {
    Why.NOT_SELECTED: "spec.streams does not select them",
    Why.INTERNAL: "their names begin with _, which nothing that is included names",
    Why.EPHEMERAL: "EphemeralStreams own them; includeEphemeral would copy them",
    Why.EXISTS: "their targets are there, and onExists is Skip",
    Why.OWN: "this very copy made them",
    Why.LATER: "no run of theirs ends by the time that until says",
    Why.NOT_IN_RUN: "the run of the scope that is restored did not add to them",
}


def scope_plan(
    name: str,
    request: ScopeRequest,
    plan: ScopeCopyPlan,
    *,
    recorded: bool,
    most: int | None = None,
) -> Group:
    """Make a table of a scope's plan, a line for each stream, and lines about the whole below.

    Args:
        name: the resource's name.
        request: the resource's request.
        plan: the plan.
        recorded: whether a run has begun with this plan.
        most: how many streams are shown; None for all.
    """
    scope = plan.scope
    shown = plan.items[:most]
    more = len(plan.items) - len(shown)
    rest = [f"... and {more:,} smaller ones; `sluice plan` shows all of them."] if more else []
    lines = [*rest, _totals(plan), *_renamed(request.rename, plan), *_beside(scope)]
    if shown:
        lines += _to_come(scope)
    failed = [result for result in scope.settled if result.state is StreamState.FAILED]
    return Group(
        Words(
            f"Plan {plan.hash[:12]} of ScopeCopy {name}, {scope.source} -> {scope.target} "
            f"({_state(plan, scope, recorded=recorded)})"
        ),
        *([_plan_table(shown)] if shown else ()),
        *map(Words, lines),
        *([_failed(failed, "Cannot be copied")] if failed else ()),
    )


def _state(plan: ScopeCopyPlan, scope: ScopePlan, *, recorded: bool) -> str:
    if not plan.items and plan.follows and not scope.settled:
        return "no stream yet; and then follows"
    if not plan.items:
        whole = all(result.state is StreamState.COPIED for result in scope.settled)
        return "nothing is left to do" if whole else "nothing can be copied"
    state = cells.bounds(recorded=recorded)
    if plan.follows:
        state = f"{state}; and then follows"
    return f"{state}; run {scope.run}, of what failed or was stopped" if scope.run > 1 else state


def _totals(plan: ScopeCopyPlan) -> str:
    uris = f"{', '.join(address.uri for address in plan.sources)} -> {plan.target.uri}"
    if not plan.items:
        return uris
    events = _events([stream.events for stream in plan.items])
    streams = "1 stream" if len(plan.items) == 1 else f"{len(plan.items):,} streams"
    return f"{streams}, {size(plan.bytes)}, {events} events, {uris}"


def _events(counts: Sequence[int | None]) -> str:
    """Write the sum of events, as far as the counts are known."""
    known = [count for count in counts if count is not None]
    if counts and not known:
        return "unknown"
    return f"{'' if len(known) == len(counts) else 'at least '}{sum(known):,}"


def _plan_table(streams: Sequence[Item]) -> Grid:
    alike = all(one.name == one.target_name and not one.append for one in streams)
    table = Grid(
        Column("Stream", name=True),
        Column("Target", name=True, rank=3 if alike else 0),
        Column("Bytes", right=True),
        Column("Events", right=True),
        Column("Segments", right=True, rank=1),
        Column("Parts", right=True, rank=2),
    )
    for stream in streams:
        table.add(
            stream.name,
            f"{stream.target_name} (append)" if stream.append else stream.target_name,
            size(stream.bytes),
            "counted later" if stream.events is None else f"{stream.events:,}",
            str(len(stream.segments)),
            str(parts_of(stream)),
        )
    return table


def parts_of(stream: Item) -> int:
    """Count a stream's parts; in an archive's plan, which has none, the segments with new bytes."""
    if not isinstance(stream, StreamPlan):
        return sum(1 for segment in stream.segments if segment.length)
    return sum(len(segment.parts) for segment in stream.segments)


def renames_of(renames: Sequence[Rename], plan: ScopeCopyPlan) -> list[tuple[Rename, list[Item]]]:
    """Return the renames that apply, each with the planned streams that it renames."""
    found: list[tuple[Rename, list[Item]]] = [(rename, []) for rename in renames]
    for stream in plan.items:
        name = stream.name
        fits = next((them for rename, them in found if name.startswith(rename.from_prefix)), None)
        if fits is not None and name != stream.target_name:
            fits.append(stream)
    return [(rename, streams) for rename, streams in found if streams]


def _renamed(renames: Sequence[Rename], plan: ScopeCopyPlan) -> Iterator[str]:
    for rename, streams in renames_of(renames, plan):
        pairs = [f"{one.name} -> {one.target_name}" for one in streams]
        yield (
            f"Renamed, {rename.from_prefix!r} to {rename.to_prefix!r}: "
            f"{len(streams):,} ({named(pairs, len(pairs))})"
        )


def _beside(scope: ScopePlan) -> Iterator[str]:
    """Yield lines about parts that are not copied: left out, key-value tables, copied before."""
    for left in scope.left_out:
        yield (
            f"Left out: {left.count:,}, {_LEFT_OUT[left.why]} ({named(left.streams, left.count)})"
        )
    if scope.tables:
        yield f"Key-value tables are not copied: {named(scope.tables, len(scope.tables))}"
    done = [result for result in scope.settled if result.state is StreamState.COPIED]
    if done:
        whole = size(sum(result.bytes for result in done))
        names = named([result.stream for result in done], len(done))
        yield f"Copied already: {len(done):,}, {whole} ({names})"


def _to_come(scope: ScopePlan) -> Iterator[str]:
    """Yield lines about the copying: when bounds were taken, streams that are made and deleted."""
    yield (
        f"Bounds were taken within {scope.end - scope.begin:,} ms, from {_moment(scope.begin)} to "
        f"{_moment(scope.end)}"
    )
    if scope.following is not None:
        yield f"Streams that {scope.source} gets later join, if they are selected."
    if scope.make_scope:
        yield f"The scope {scope.target} is made if it is not there."
    if scope.move:
        yield (
            "Each source is sealed and deleted once its target is whole, and then the scope "
            f"{scope.source} if nothing is left in it."
        )


def named(names: Sequence[str], count: int) -> str:
    """List the first names of `count`, and how many more there are."""
    shown = ", ".join(names[:_NAMED])
    more = count - len(names[:_NAMED])
    return f"{shown} and {more:,} more" if more > 0 else shown


def _moment(milliseconds: int) -> str:
    """Write a time in ms since 1970 as UTC text."""
    moment = datetime.fromtimestamp(milliseconds / 1000, tz=UTC)
    return moment.isoformat(sep=" ", timespec="milliseconds").replace("+00:00", "Z")


def _failed(failed: Sequence[StreamResult], title: str) -> Group:
    """Write the streams that cannot be copied: why, and what to do."""
    lines = [Words(f"{title}:")]
    for result in failed[:MOST_FAILED]:
        trouble = result.trouble
        if trouble is None:
            lines.append(Words(result.stream, indent=2))
            continue
        why = (trouble.reason, "bold red"), f": {trouble.message}"
        lines.append(Words(Text.assemble(f"{result.stream}: ", *why), indent=2))
        lines.append(Words(trouble.remedy, indent=4))
    more = len(failed) - MOST_FAILED
    rest = [Words(f"... and {more:,} more, which -o json shows.")] if more > 0 else []
    return Group(*lines, *rest)


def show_scope_report(name: str, report: ScopeReport, seconds: float) -> None:
    """Print how a scope's copy ended."""
    scope = report.plan.scope
    before = {result.stream for result in scope.settled}
    copied = _in_state(report.results, StreamState.COPIED)
    now = [result for result in copied if result.stream not in before]
    moved = sum(result.bytes for result in now)
    events = _events([result.events for result in now])
    pace = f"{duration(seconds)} ({size(moved / seconds if seconds else 0)}/s)"
    what = f"; {events} events, {size(moved)} in {pace}" if now else ""
    note.print(
        Words(
            f"ScopeCopy {name}: {scope.source} -> {scope.target}: {len(copied):,} of "
            f"{len(report.results):,} streams are copied{what}"
        )
    )
    if not report.results:
        note.print("  Nothing was selected.")
    for result in [one for one in copied if one.lost][:MOST_FAILED]:
        err.print(
            Words(
                f"{result.stream}: {size(result.lost)} were truncated before they were read, and "
                "are not in the copy."
            )
        )
    for why, count in Counter(one.ended for one in copied if one.ended).items():
        note.print(Words(f"{text.counted(count, 'stream')}: {following.ending(why)}"))
    failed = _in_state(report.results, StreamState.FAILED)
    if failed:
        err.print(_failed(failed, f"{len(failed):,} could not be copied"))
    waiting = _in_state(report.results, StreamState.PLANNED)
    if waiting:
        names = named([result.stream for result in waiting], len(waiting))
        err.print(Words(f"Not finished, another run goes on: {len(waiting):,} ({names})"))
    stopped = _in_state(report.results, StreamState.STOPPED)
    if stopped:
        names = named([result.stream for result in stopped], len(stopped))
        err.print(Words(f"Not begun, since another one had failed: {names}"))
    if report.kept is not None:
        err.print(Words(f"The scope {scope.source} is kept: {report.kept}"))
    elif scope.move and copied and len(copied) == len(report.results):
        note.print(Words(f"The scope {scope.source} is gone: all of its streams were moved."))
    if report.trouble is not None:
        show_trouble(report.trouble)


def _in_state(results: Iterable[StreamResult], state: StreamState) -> list[StreamResult]:
    return [result for result in results if result.state is state]
