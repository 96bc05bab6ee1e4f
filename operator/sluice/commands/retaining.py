"""Implement `sluice archive retain`: remove runs of an archive, and objects that no run needs."""

from __future__ import annotations

from typing import TYPE_CHECKING

import click
from pydantic import ValidationError

from sluice import console
from sluice.api.fields.schedule import RunRetentionSpec as KeptRuns
from sluice.commands.places import STORES_FILE, archive_place, resources_of
from sluice.commands.shared import CREDENTIALS, OUTPUT, VOLUMES, print_json, settings_of
from sluice.core.archive.retention import Retention
from sluice.core.values.archive_layout import RUNS
from sluice.engine.archive.retention import retain as run_retention
from sluice.engine.scope.recorded_runs import named_runs
from sluice.errors import PermissionDenied
from sluice.pipelines.programs.stores import Stores

if TYPE_CHECKING:
    from pathlib import Path

    from sluice.commands.places import ArchivePlace


@click.command()
@click.argument("place")
@click.option("--keep-last", type=click.IntRange(min=1), help="As many of the last runs are kept.")
@click.option(
    "--keep-within",
    metavar="TIME",
    callback=lambda _context, _option, value: None if value is None else _duration(value),
    help="Runs are kept for this long, as 12h or 30d.",
)
@click.option(
    "--no-scope",
    is_flag=True,
    help="Look for no records of a scope's runs: no ScopeCopy archives to the folder of PLACE.",
)
@click.option("--dry-run", is_flag=True, help="Change nothing, only tell what would go.")
@STORES_FILE
@OUTPUT
@CREDENTIALS
@VOLUMES
def retain(
    *,
    place: str,
    keep_last: int | None,
    keep_within: int | None,
    no_scope: bool,
    dry_run: bool,
    file: str | None,
    output: str,
    credentials_dir: Path | None,
    volumes_dir: Path | None,
) -> None:
    """Remove runs at PLACE that no rule keeps, and delete objects that no run needs.

    Without a rule all runs are kept, and only what killed processes have left is deleted. Kept in
    any case are the last run, the newest one that was verified, one that a process reads, and those
    that the last complete run of a ScopeCopy names. An object is deleted a day after it was made at
    the earliest.
    """
    rule = Retention(keep_last=keep_last, keep_seconds=keep_within)
    with Stores(settings_of(credentials_dir, volumes_dir)) as stores:
        where = archive_place(place, resources_of(file))
        named = _named(where, stores) if rule.has_rule and not no_scope else frozenset[str]()
        archive = where.archive(stores)
        done = run_retention(archive, rule, dry=dry_run, thorough=True, named=named)
    if output == "json":
        swept = done.swept
        print_json(
            {
                "dryRun": dry_run,
                "letGo": list(done.let_go),
                "keptForScope": list(done.named),
                "objects": swept.objects if swept else 0,
                "bytes": swept.bytes if swept else 0,
            }
        )
    else:
        console.show_retained(done, dry=dry_run)


def _named(place: ArchivePlace, stores: Stores) -> frozenset[str]:
    """Return the runs of an archive that a restore of its scope needs, by their SHA-256.

    Raises:
        PermissionDenied: the login may not read the records of the scope's runs.
        SluiceError: the records cannot be read.
    """
    folder = place.folder
    if folder is None:
        return frozenset()
    root = stores.root(folder.address)
    try:
        return named_runs(root, folder.path, place.stream, field="PLACE")
    except PermissionDenied as error:
        error.field = "PLACE"
        error.remedy = (
            f"Let this login list and read {folder.name}/{RUNS}, which may have records of a "
            "scope's runs. If no ScopeCopy archives there, give --no-scope."
        )
        raise


def _duration(text: str) -> int:
    """Read an option's duration, in seconds."""
    try:
        seconds = KeptRuns(keepWithin=text).seconds
    except ValidationError:
        seconds = None
    if seconds is None:
        raise click.BadParameter(f"{text!r} is no time like 12h or 30d")
    return seconds
