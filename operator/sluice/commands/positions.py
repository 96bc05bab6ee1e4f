"""Implement `sluice position -f FILE`: translate positions of a source to positions of its copy."""

from __future__ import annotations

from contextlib import suppress
from typing import TYPE_CHECKING, Final

import click

from sluice import console
from sluice.commands.copying import read
from sluice.commands.groups import GroupOptions, move_group, parse
from sluice.commands.shared import CREDENTIALS, FILE, OUTPUT, VOLUMES, print_json, settings_of
from sluice.core.scope.request import ScopeRequest
from sluice.engine.positions.position_map import position_map, translate
from sluice.errors import InvalidSpec, SluiceError
from sluice.pipelines.programs.jobs import all_jobs, job_of_stream, jobs, with_runs
from sluice.pipelines.programs.stores import Stores

if TYPE_CHECKING:
    from pathlib import Path

    from sluice.config import Settings
    from sluice.core.copy.planner import CopyRequest
    from sluice.engine.positions.position_map import Mapped
    from sluice.pipelines.programs.jobs import Job
    from sluice.stores.base import Store


_ONE_COPY: Final = "Name a file with exactly one."


@click.command()
@FILE
@OUTPUT
@CREDENTIALS
@VOLUMES
@click.option("--cut", help="A StreamCut of the source as text, to be translated.")
@click.option(
    "--reader-group",
    "group",
    metavar="[SCOPE/]GROUP",
    help="A reader group of the source: where is it? Its readers have to be closed, or --cut says.",
)
@click.option(
    "--apply", is_flag=True, help="Make a reader group that goes on there, in the target's scope."
)
@click.option(
    "--as", "name", metavar="[SCOPE/]NAME", help="Its name. [default: that of the source's group]"
)
@click.option(
    "--stream", help="The stream of a ScopeCopy. The file has to have one, and no StreamCopy."
)
@click.option(
    "--only-this-stream",
    "alone",
    is_flag=True,
    help="The group reads other streams as well; they stay behind.",
)
def position(
    file: str,
    output: str,
    credentials_dir: Path | None,
    volumes_dir: Path | None,
    *,
    cut: str | None,
    group: str | None,
    apply: bool,
    name: str | None,
    stream: str | None,
    alone: bool,
) -> None:
    """Tell which position of a source is which one of its copy's target.

    Without --cut and --reader-group, print the map: which bytes of each source segment are in which
    target segment. The file has to have one StreamCopy, and its target to be whole or live. For a
    ScopeCopy, name the stream.
    """
    if group is None and (apply or name or alone):
        raise InvalidSpec(
            "--apply, --as and --only-this-stream are about a reader group",
            field="--reader-group",
            remedy="Name one, as in --reader-group GROUP --apply.",
        )
    wish = None
    if group is not None:
        new = None if name is None else parse(name, "--as")
        wish = GroupOptions(parse(group, "--reader-group"), new, apply, alone)
    settings = settings_of(credentials_dir, volumes_dir)
    job = _job(file, settings, stream)
    with Stores(settings) as stores:
        store = stores[job.target]
        request = job.request
        mapped = position_map(request.copy_id, request.target, store, follow=request.follow)
        with suppress(SluiceError):  # an archive that is gone costs only the names of its streams
            job = with_runs(job, stores)
        given = None if cut is None else _given(job, cut, store)
        if wish is not None:
            move_group(job, wish, mapped, stores=stores, given=given, output=output)
        elif given is None:
            _print_map(job, mapped, output)
        else:
            place, at = given
            translated = translate(at, [one for one in mapped if one.stream == place])
            _print_cut(job, translated, store, output)


def _job(file: str, settings: Settings, stream: str | None) -> Job[CopyRequest]:
    """Return the only StreamCopy of a file, or a stream of its only ScopeCopy.

    Raises:
        InvalidSpec: there is not one, or it has no positions.
    """
    resources = read(file)
    if stream is None:
        found = jobs(resources, settings)
        if len(found) != 1:
            whole = resources.scopes and not found
            raise InvalidSpec(
                f"there are {len(found)} StreamCopies in {file}",
                field="--stream" if whole else "--filename",
                remedy="Name a stream of the ScopeCopy." if whole else _ONE_COPY,
            )
        return found[0]
    scopes = [one for one in all_jobs(resources, settings) if isinstance(one.request, ScopeRequest)]
    if len(scopes) != 1 or resources.copies:
        raise InvalidSpec(
            f"there are {len(scopes)} ScopeCopies and {len(resources.copies)} StreamCopies in "
            f"{file}",
            field="--stream",
            remedy="Name a file with exactly one ScopeCopy, or leave the option out.",
        )
    if scopes[0].target.holds_archives:
        raise InvalidSpec(
            f"{scopes[0].name} archives its streams, and archives have no positions",
            field="--filename",
            remedy="Name a file with a copy to a scope.",
        )
    return job_of_stream(scopes[0], stream)


def _given(job: Job[CopyRequest], text: str, store: Store) -> tuple[int, dict[int, int]]:
    """Read a cut, and find the index of its stream among the sources.

    Raises:
        InvalidSpec: the text is no cut, or is a cut of a stream that the copy does not read.
    """
    try:
        stream, cut = store.read_cut(text)
    except InvalidSpec as error:
        raise InvalidSpec(error.message, field="--cut", remedy=error.remedy) from None
    places = [
        i
        for i, source in enumerate(job.request.sources)
        if source.stream == stream or (source.archive and not source.pinned)
    ]
    if not places:
        raise InvalidSpec(
            f"this is a cut of {stream}, and the copy is of {job.request.origin}", field="--cut"
        )
    return places[0], cut


def _print_map(job: Job[CopyRequest], mapped: list[Mapped], output: str) -> None:
    if output == "json":
        entries = [
            {
                "source": str(job.request.sources[one.stream].stream),
                "segment": one.source,
                "from": one.start,
                "to": one.end,
                "targetSegment": one.target,
                "shift": one.shift,
                "lost": one.lost,
            }
            for one in mapped
        ]
        print_json(
            {
                "target": str(job.request.target),
                "segments": entries,
            }
        )
        return
    several = len(job.request.sources) > 1
    table = console.Grid(
        *[console.Column("Source", name=True)] * several,
        *(
            console.Column(heading, right=True)
            for heading in ("Segment", "From", "To", "Target segment", "Shift")
        ),
    )
    for one in mapped:
        source = job.request.sources[one.stream].stream
        numbers = (one.source, one.start, one.end, one.target, one.shift)
        table.add(*[str(source)] * several, *map(str, numbers))
    console.out.print(console.Words(f"{job.request.origin} -> {job.request.target}", "italic"))
    console.out.print(table)
    for one in mapped:
        if one.lost:
            source = job.request.sources[one.stream].stream
            console.out.print(
                f"{source} was truncated before it was read: of segment {one.source}, offsets "
                f"{one.start - one.lost:,} to {one.start:,} are not in the copy."
            )


def _print_cut(job: Job[CopyRequest], cut: dict[int, int], store: Store, output: str) -> None:
    text = store.write_cut(job.request.target, cut)
    if output == "json":
        offsets = [{"segmentID": segment, "offset": at} for segment, at in sorted(cut.items())]
        print_json({"target": str(job.request.target), "streamCut": text, "offsets": offsets})
        return
    click.echo(text)
