"""Implement `sluice archive`: work with archives in a bucket or a directory, without Kubernetes.

Only `drill` is about a StreamArchive in a cluster.
"""

from __future__ import annotations

import os
import sys
import time
from typing import TYPE_CHECKING, Any

import click

from sluice import console, tracing
from sluice.archive.runs.archive import find_run
from sluice.archive.runs.verify import verify_archive
from sluice.commands.cluster.drill import drill
from sluice.commands.copying import TASKS, own_tasks, read, run_job
from sluice.commands.places import (
    STORES_FILE,
    address_of,
    archive_place,
    resources_of,
    stream_of,
    writable,
)
from sluice.commands.retaining import retain
from sluice.commands.runs import ON_TRUNCATION, RUN, UNTIL
from sluice.commands.shared import (
    CREDENTIALS,
    OUTPUT,
    PATIENCE,
    VOLUMES,
    exit_code,
    print_json,
    settings_of,
)
from sluice.core.copy.planner import ArchiveChoice, CopyRequest, SourceRequest
from sluice.core.values import identity
from sluice.core.values.model import StreamName
from sluice.engine.tasks.limits import Limits
from sluice.errors import EXIT_CODES, ArchiveNotFound, Category, SluiceError
from sluice.pipelines.programs.jobs import Job
from sluice.pipelines.programs.stores import Stores

if TYPE_CHECKING:
    from pathlib import Path

    from sluice.archive.runs.archive import Archive
    from sluice.archive.runs.verify import ArchiveVerification
    from sluice.commands.places import ArchivePlace
    from sluice.commands.runs import Until
    from sluice.core.archive.head import Head
    from sluice.core.copy.plan import OnTruncation
    from sluice.core.values.model import StoreAddress


@click.group()
def archive() -> None:
    """Look at archives, verify them, restore streams from them.

    A PLACE is STORE/PATH, by the name of a StreamStore in the file, or the path of a directory that
    begins with `.` or `/`. Only drill needs a cluster.
    """


archive.add_command(retain)
archive.add_command(drill)


@archive.command()
@click.argument("place")
@STORES_FILE
@OUTPUT
@CREDENTIALS
@VOLUMES
def ls(
    *,
    place: str,
    file: str | None,
    output: str,
    credentials_dir: Path | None,
    volumes_dir: Path | None,
) -> None:
    """List the archives at PLACE and below it."""
    code = 0
    found: list[tuple[str, Head]] = []
    with Stores(settings_of(credentials_dir, volumes_dir)) as stores:
        where = archive_place(place, resources_of(file))
        root = stores.root(where.address)
        for path in root.paths(where.path):
            try:
                found.append((path, _head(root.archive(path), path)))
            except SluiceError as error:
                error.add_note(f"archive {path}")
                console.show_error(error)
                code = max(code, EXIT_CODES[error.category])
    if output == "json":
        print_json([{"path": path, **_head_json(head)} for path, head in found])
    else:
        console.show_archives(found)
    sys.exit(code)


@archive.command()
@click.argument("place")
@RUN
@UNTIL
@STORES_FILE
@OUTPUT
@CREDENTIALS
@VOLUMES
def inspect(
    *,
    place: str,
    run: int | None,
    until: Until | None,
    file: str | None,
    output: str,
    credentials_dir: Path | None,
    volumes_dir: Path | None,
) -> None:
    """Show the runs of the archive at PLACE, and the content of one: by default the last."""
    with Stores(settings_of(credentials_dir, volumes_dir)) as stores:
        where = archive_place(place, resources_of(file))
        found = where.archive(stores)
        head = _head(found, where.name)
        manifest = found.manifest(find_run(head, run=run, until=until and until.ms))
    if output == "json":
        body = manifest.model_dump(mode="json", by_alias=True, exclude_none=True)
        print_json({**_head_json(head), "manifest": body})
    else:
        console.show_inspection(head, manifest)


@archive.command()
@click.argument("place")
@click.option("--run", "runs", type=int, multiple=True, help="Only this run; may be repeated.")
@click.option("--head", metavar="SHA256", help="The SHA-256 of its head, as you wrote it down.")
@STORES_FILE
@OUTPUT
@CREDENTIALS
@VOLUMES
def verify(
    *,
    place: str,
    runs: tuple[int, ...],
    head: str | None,
    file: str | None,
    output: str,
    credentials_dir: Path | None,
    volumes_dir: Path | None,
) -> None:
    """Read the archive at PLACE and compare all of it with what was recorded.

    Objects that are missing, changed or swapped are named, and the runs that cannot be restored for
    it. The SHA-256 of the head stands for all that the archive holds: write it down elsewhere, and
    give it as --head later. Exit code 6: something is damaged.
    """
    with Stores(settings_of(credentials_dir, volumes_dir)) as stores:
        where = archive_place(place, resources_of(file))
        found = where.archive(stores)
        total = max((one.bytes for one in _head(found, where.name).runs), default=0)
        with console.ReadProgress(f"verifying {where.name}", total) as progress:
            verification = verify_archive(found, runs=runs or None, head=head, told=progress.told)
    if output == "json":
        print_json(_verification_json(verification))
    else:
        console.show_archive_verification(verification)
    sys.exit(EXIT_CODES[Category.INTEGRITY] if verification.problems else 0)


@archive.command()
@click.argument("place")
@click.argument("target")
@RUN
@UNTIL
@click.option("--append", is_flag=True, help="Append to TARGET if it is there.")
@click.option("--create-scope", is_flag=True, help="Make TARGET's scope if it does not exist.")
@click.option("--seal", is_flag=True, help="Seal TARGET when it is whole.")
@ON_TRUNCATION
@click.option(
    "-f",
    "--filename",
    "file",
    required=True,
    type=click.Path(dir_okay=False, allow_dash=True),
    help="YAML with StreamStores; - reads standard input.",
)
@OUTPUT
@CREDENTIALS
@VOLUMES
@TASKS
@PATIENCE
def restore(
    *,
    place: str,
    target: str,
    run: int | None,
    until: Until | None,
    append: bool,
    create_scope: bool,
    seal: bool,
    on_truncation: OnTruncation,
    file: str,
    output: str,
    credentials_dir: Path | None,
    volumes_dir: Path | None,
    tasks: int | None,
    patience: float | None,
) -> None:
    """Restore a stream from the archive at PLACE to TARGET, which is STORE:SCOPE/STREAM.

    The last run is restored unless --run or --until says otherwise. Bytes, configuration, scale
    events and key ranges are those of the stream that was archived. All is compared with the
    archive before TARGET can be seen. The same command again goes on where it was cut off.
    """
    settings = settings_of(credentials_dir, volumes_dir)
    slots = tasks or os.cpu_count() or 1
    resources = read(file, copies=False)
    where = archive_place(place, resources)
    store, stream = stream_of(target, field="TARGET")
    writable(stream, field="TARGET")
    address = address_of(store, resources, field="TARGET")
    choice = ArchiveChoice(path=where.path, run=run, until=until and until.ms)
    job = Job(
        name=where.name,
        request=CopyRequest(
            copy_id=restore_id(
                settings.cluster_id, (where.address, choice), (address, stream), append=append
            ),
            sources=(_source(where, choice),),
            target=stream,
            seal=seal,
            on_truncation=on_truncation,
            part_bytes=settings.part_bytes,
            append=append,
            make_scope=create_scope,
            tasks=slots,
        ),
        sources=(where.address,),
        target=address,
        limits=Limits(),
    )
    began = time.monotonic()
    with tracing.started("sluice"), Stores(settings) as stores, own_tasks(settings, slots) as own:
        ended = run_job(job, stores, own, patience)
    if ended is None:  # for the type checker: only a suspended job has no result
        return
    if output == "json":
        print_json(ended.json)
    seconds = console.duration(time.monotonic() - began)
    console.note.print(f"{console.summary(ended.words)} in {seconds}")
    sys.exit(exit_code(ended.failures))


def _source(where: ArchivePlace, choice: ArchiveChoice) -> SourceRequest:
    """Return an archive as a source of a copy."""
    name = StreamName(scope=where.address.uri, stream=where.path)
    return SourceRequest(stream=name, field="PLACE", archive=choice)


def restore_id(
    cluster: str,
    source: tuple[StoreAddress, ArchiveChoice],
    target: tuple[StoreAddress, StreamName],
    *,
    append: bool,
) -> str:
    """Return the identity of a restore. The same command has the same one, so it goes on."""
    place, choice = source
    there = {"uri": place.uri, "endpoint": place.endpoint, **choice.model_dump(mode="json")}
    wish = {
        "source": there,
        "target": {"uri": target[0].uri, "stream": str(target[1]), "append": append},
    }
    return identity.copy_id(cluster=cluster, namespace="", name="archive restore", identity=wish)


def _head(archive: Archive, name: str) -> Head:
    """Read an archive's head.

    Raises:
        ArchiveNotFound: there is no archive.
    """
    head = archive.head()
    if head is None:
        raise ArchiveNotFound(f"there is no archive at {name}", field="PLACE")
    return head


def _head_json(head: Head) -> dict[str, Any]:
    """Convert a head to JSON values."""
    return {
        "head": head.number,
        "runs": [one.model_dump(mode="json", by_alias=True) for one in head.runs],
    }


def _verification_json(found: ArchiveVerification) -> dict[str, Any]:
    """Convert an archive's verification to JSON values."""
    return {
        "headSha256": found.head,
        "runs": list(found.runs),
        "objects": found.objects,
        "bytes": found.bytes,
        "damagedRuns": sorted(found.damaged),
        "problems": [
            {"name": one.name, "what": one.what, "runs": list(one.runs)} for one in found.problems
        ],
    }
