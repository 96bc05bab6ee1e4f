"""Implement `sluice position --reader-group G`: make a reader group go on in the target."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple

import click

from sluice import console
from sluice.commands.shared import print_json
from sluice.core.values.groups import GroupName
from sluice.engine.positions.reader_groups import FIELD, look, make
from sluice.errors import InvalidSpec

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from sluice.core.copy.planner import CopyRequest
    from sluice.engine.positions.position_map import Mapped
    from sluice.pipelines.programs.jobs import Job
    from sluice.pipelines.programs.stores import Stores


class GroupOptions(NamedTuple):
    """The options about a reader group.

    Attributes:
        group: scope and name of the source's group; the scope is empty if not given.
        new: scope and name of the target's group; None for the same name.
        apply: whether to make the target's group.
        alone: whether the group may read other streams as well, which stay behind.
    """

    group: tuple[str, str]
    new: tuple[str, str] | None
    apply: bool
    alone: bool


def parse(text: str, field: str) -> tuple[str, str]:
    """Read `SCOPE/NAME` or `NAME`.

    Returns:
        The scope, empty if it is left out, and the name.

    Raises:
        InvalidSpec: the text is neither.
    """
    scope, slash, name = text.rpartition("/")
    if not name or "/" in scope or bool(slash) != bool(scope):
        raise InvalidSpec(
            f"{text!r} is no name of a reader group", field=field, remedy="Give NAME or SCOPE/NAME."
        )
    return scope, name


def move_group(
    job: Job[CopyRequest],
    wish: GroupOptions,
    mapped: Sequence[Mapped],
    *,
    stores: Stores,
    given: tuple[int, Mapping[int, int]] | None,
    output: str,
) -> None:
    """Print a group's position in the source and in the target; make the target's group if asked.

    Args:
        job: the copy.
        wish: the options.
        mapped: the copy's map of positions.
        stores: this process' connections.
        given: the group's position, if the command line gives it: the index of its stream among
            the sources, and a cut.
        output: text or json.
    """
    place, cut = given or (_place(job, wish, stores), None)
    source = job.request.sources[place]
    store, target = stores[job.sources[source.store]], stores[job.target]
    group = _in(source.stream.scope, wish.group)
    new = _in(job.request.target.scope, wish.new or ("", group.name))
    there = [one for one in mapped if one.stream == place]
    move = look(group, source.stream, there, store, cut=cut, alone=wish.alone)
    made = None
    if wish.apply:
        made = make(
            new,
            job.request.target,
            move.target,
            settings=move.settings,
            copy_id=job.request.copy_id,
            store=target,
        )
    told = {
        "readerGroup": str(group),
        "source": str(source.stream),
        "sourceStreamCut": store.write_cut(source.stream, move.source),
        "sourceOffsets": _offsets(move.source),
        "target": str(job.request.target),
        "streamCut": target.write_cut(job.request.target, move.target),
        "offsets": _offsets(move.target),
        "otherStreams": [str(stream) for stream in move.left],
        "targetReaderGroup": str(new),
        "applied": {None: "No", True: "Created", False: "AlreadyThere"}[made],
    }
    if output == "json":
        print_json(told)
    else:
        _print(told)


def _place(job: Job[CopyRequest], wish: GroupOptions, stores: Stores) -> int:
    """Return the index of the source that the group reads.

    Raises:
        InvalidSpec: the group reads none of the sources, or more than one.
    """
    sources = job.request.sources
    if len(sources) == 1:
        return 0
    found = {}
    for place, source in reversed([*enumerate(sources)]):  # if a source is there twice, the first
        group = _in(source.stream.scope, wish.group)
        config = stores[job.sources[source.store]].reader_group(group)
        if config is not None and source.stream in config.streams:
            found[source.store, source.stream] = place
    if len(found) != 1:
        raise InvalidSpec(
            f"the reader group {wish.group[1]} reads {len(found)} of the {len(sources)} sources",
            field=FIELD,
            remedy="Only of one that it reads is there a position. With --cut, give one yourself.",
        )
    return next(iter(found.values()))


def _in(scope: str, given: tuple[str, str]) -> GroupName:
    """Name a group; `scope` is used if none is given."""
    return GroupName(given[0] or scope, given[1])


def _offsets(cut: Mapping[int, int]) -> list[dict[str, int]]:
    return [{"segmentID": segment, "offset": at} for segment, at in sorted(cut.items())]


def _print(told: Mapping[str, Any]) -> None:
    click.echo(f"{told['readerGroup']} is, in {told['source']}, at\n{told['sourceStreamCut']}")
    click.echo(f"which is, in {told['target']},\n{told['streamCut']}")
    if told["otherStreams"]:
        others = console.printable(", ".join(told["otherStreams"]))  # the group's state has them
        click.echo(f"It reads these as well, which stay behind: {others}")
    new = told["targetReaderGroup"]
    click.echo(
        {
            "No": f"Nothing is made; with --apply the reader group {new} begins there.",
            "Created": f"The reader group {new} is made and begins there.",
            "AlreadyThere": f"The reader group {new} is there and began there; it is untouched.",
        }[told["applied"]]
    )
