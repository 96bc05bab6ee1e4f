"""`sluice position --reader-group G`: a reader group that goes on in the target."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple

import click

from sluice.commands.shared import print_json
from sluice.core.groups import GroupName
from sluice.engine.groups import FIELD, look, make
from sluice.errors import InvalidSpec

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from sluice.engine.groups import Move
    from sluice.engine.positions import Mapped
    from sluice.pipelines.program import Job
    from sluice.stores.base import Store


class Wish(NamedTuple):
    """What the command line asks for.

    Attributes:
        group: the source's, perhaps with its scope.
        name: of the target's, perhaps with its scope; None for the same name.
        apply: whether the target's group is to be made.
        alone: whether the group may read other streams as well.
    """

    group: str
    name: str | None
    apply: bool
    alone: bool


def move_group(
    job: Job,
    wish: Wish,
    mapped: Sequence[Mapped],
    *,
    source: Store,
    target: Store,
    cut: Mapping[int, int] | None,
    output: str,
) -> None:
    """Print where a group is, in the source and in the target, and make the target's."""
    request = job.request
    group = _named(wish.group, request.source.scope, FIELD)
    new = _named(wish.name or group.name, request.target.scope, "--as")
    move = look(group, request.source, mapped, source, cut=cut, alone=wish.alone)
    made = None
    if wish.apply:
        made = make(
            new,
            request.target,
            move.target,
            settings=move.settings,
            copy_id=request.copy_id,
            store=target,
        )
    told = _told(job, group, new, move, made, source=source, target=target)
    if output == "json":
        print_json(told)
    else:
        _print(told, move)


def _named(text: str, scope: str, field: str) -> GroupName:
    before, slash, name = text.rpartition("/")
    if not name or "/" in before or bool(slash) != bool(before):
        raise InvalidSpec(
            f"{text!r} is no name of a reader group", field=field, remedy="Give NAME or SCOPE/NAME."
        )
    return GroupName(before or scope, name)


def _told(
    job: Job,
    group: GroupName,
    new: GroupName,
    move: Move,
    made: bool | None,  # noqa: FBT001 - an outcome
    *,
    source: Store,
    target: Store,
) -> dict[str, Any]:
    return {
        "readerGroup": str(group),
        "source": str(job.request.source),
        "sourceStreamCut": source.write_cut(job.request.source, move.source),
        "sourceOffsets": _offsets(move.source),
        "target": str(job.request.target),
        "streamCut": target.write_cut(job.request.target, move.target),
        "offsets": _offsets(move.target),
        "otherStreams": [str(stream) for stream in move.left],
        "targetReaderGroup": str(new),
        "applied": {None: "No", True: "Created", False: "AlreadyThere"}[made],
    }


def _offsets(cut: Mapping[int, int]) -> list[dict[str, int]]:
    return [{"segmentID": segment, "offset": at} for segment, at in sorted(cut.items())]


def _print(told: Mapping[str, Any], move: Move) -> None:
    click.echo(f"{told['readerGroup']} is, in {told['source']}, at\n{told['sourceStreamCut']}")
    click.echo(f"which is, in {told['target']},\n{told['streamCut']}")
    if move.left:
        click.echo(f"It reads these as well, which stay behind: {', '.join(told['otherStreams'])}")
    new = told["targetReaderGroup"]
    click.echo(
        {
            "No": f"Nothing is made; with --apply the reader group {new} begins there.",
            "Created": f"The reader group {new} is made and begins there.",
            "AlreadyThere": f"The reader group {new} is there and began there; it is untouched.",
        }[told["applied"]]
    )
