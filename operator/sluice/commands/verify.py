"""Implement `sluice verify`: compare two streams, and tell where they differ."""

from __future__ import annotations

import os
import sys
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

import click

from sluice import __version__, console
from sluice.commands.copying import read
from sluice.commands.places import address_of, stream_of
from sluice.commands.shared import CREDENTIALS, FILE, OUTPUT, VOLUMES, print_json, settings_of
from sluice.core.archive.request import ArchiveRequest
from sluice.core.copy.planner import Range, RangeEnd
from sluice.core.scope.request import ScopeRequest
from sluice.core.verify.pairing import Alignment
from sluice.core.verify.verification import ReportFile, Result
from sluice.engine.verify.compare import Subject, compare, match_copy, match_streams
from sluice.errors import EXIT_CODES, Category, InvalidSpec, SluiceError
from sluice.pipelines.programs.jobs import all_jobs, jobs_of_streams, with_runs
from sluice.pipelines.programs.stores import Stores

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from sluice.api.load import Resources
    from sluice.config import Settings
    from sluice.core.copy.planner import CopyRequest
    from sluice.core.verify.verification import Verification
    from sluice.engine.verify.compare import Matched
    from sluice.pipelines.programs.jobs import Job


class _Ask(NamedTuple):
    """Two streams that the user named. Only these have ranges and an alignment."""

    source: str
    target: str
    source_range: Range
    target_range: Range
    alignment: Alignment


@click.command()
@click.argument("source", required=False)
@click.argument("target", required=False)
@FILE
@click.option("--source-from", metavar="CUT", help="Where SOURCE begins.  [default: its head]")
@click.option("--source-to", metavar="CUT", help="Where SOURCE ends.  [default: its tail]")
@click.option("--target-from", metavar="CUT", help="Where TARGET begins.  [default: its head]")
@click.option("--target-to", metavar="CUT", help="Where TARGET ends.  [default: its tail]")
@click.option(
    "--same-offsets",
    is_flag=True,
    help="Compare bytes of the same offset, rather than those that come first with each other.",
)
@click.option("--exact", is_flag=True, help="What TARGET has more is a difference, too.")
@click.option(
    "--tasks",
    type=click.IntRange(1, 256),
    default=None,
    help="Segments at a time. [default: the number of processors]",
)
@click.option(
    "--report",
    type=click.Path(dir_okay=False, path_type=Path),
    help="Write a report to this file, in JSON, that any reader can recompute.",
)
@OUTPUT
@CREDENTIALS
@VOLUMES
def verify(
    *,
    source: str | None,
    target: str | None,
    file: str,
    source_from: str | None,
    source_to: str | None,
    target_from: str | None,
    target_to: str | None,
    same_offsets: bool,
    exact: bool,
    tasks: int | None,
    report: Path | None,
    output: str,
    credentials_dir: Path | None,
    volumes_dir: Path | None,
) -> None:
    """Compare two streams byte by byte, and say where they differ first.

    Give SOURCE and TARGET as STORE:SCOPE/STREAM, by names of StreamStores in the file. Without
    them, each StreamCopy in the file is verified: its target against its source, as it was copied;
    and so is each stream of a ScopeCopy.

    A CUT is a StreamCut as text. Neither stream is changed. What is written while the command runs
    is not compared. Exit code 6: they differ, or could not be compared to the end.
    """
    settings = settings_of(credentials_dir, volumes_dir)
    ranges = _range(source_from, source_to), _range(target_from, target_to)
    alignment = Alignment.OFFSETS if same_offsets else Alignment.BEGINNINGS
    ask = _asked(source, target, ranges, alignment)
    resources = read(file, copies=ask is None)
    if report is not None:
        _write(report, "")  # fail now rather than after an hour if it cannot be written
    with Stores(settings) as stores:
        found, code = _compare_all(
            _matched(ask, resources, stores, settings), exact=exact, tasks=tasks, output=output
        )
    document = ReportFile(
        sluice=__version__,
        made=datetime.now(UTC).isoformat(timespec="seconds"),
        verifications=tuple(found),
    )
    if report is not None:
        _write(report, document.model_dump_json(indent=2) + "\n")
    if output == "json":
        print_json(document.model_dump(mode="json"))
    sys.exit(code)


def _range(begin: str | None, end: str | None) -> Range:
    return Range(begin=RangeEnd(text=begin), end=RangeEnd(text=end))


def _asked(
    source: str | None, target: str | None, ranges: tuple[Range, Range], alignment: Alignment
) -> _Ask | None:
    """Return the two streams to compare; None to verify the file's copies.

    Raises:
        UsageError: only one stream is named, or there are options for two streams without names.
    """
    if source is not None and target is not None:
        return _Ask(source, target, *ranges, alignment)
    if source is not None:
        raise click.UsageError("give both SOURCE and TARGET, or none to verify copies")
    if alignment is Alignment.OFFSETS or ranges != (Range(), Range()):
        raise click.UsageError("bounds and --same-offsets go with SOURCE and TARGET")
    return None


def _compare_all(
    wanted: Iterable[Matched | SluiceError], *, exact: bool, tasks: int | None, output: str
) -> tuple[list[Verification], int]:
    """Compare one pair of streams after the other; return the results and the exit code."""
    found: list[Verification] = []
    code = 0
    for matched in wanted:
        try:
            if isinstance(matched, SluiceError):
                raise matched
            verification = _compare(matched, exact=exact, tasks=tasks)
        except SluiceError as error:
            console.show_error(error)
            code = max(code, EXIT_CODES[error.category])
            continue
        found.append(verification)
        if output == "text":
            console.show_verification(verification)
        if verification.result is not Result.EQUAL:
            code = max(code, EXIT_CODES[Category.INTEGRITY])
    return found, code


def _compare(matched: Matched, *, exact: bool, tasks: int | None) -> Verification:
    with console.ReadProgress(f"comparing {matched.origin}", matched.bytes) as progress:
        return compare(matched, exact=exact, tasks=tasks or os.cpu_count() or 1, told=progress.told)


def _matched(
    ask: _Ask | None, resources: Resources, stores: Stores, settings: Settings
) -> Iterator[Matched | SluiceError]:
    """Yield the pairs of streams to compare; an error for each that cannot be compared."""
    if ask is not None:
        source = _subject("SOURCE", ask.source, ask.source_range, resources, stores)
        target = _subject("TARGET", ask.target, ask.target_range, resources, stores)
        yield match_streams(source, target, ask.alignment)
        return
    for job in all_jobs(resources, settings):
        if isinstance(job.request, ArchiveRequest) or job.target.holds_archives:
            continue  # `sluice archive verify` is for archives
        of_scope = isinstance(job.request, ScopeRequest)
        kind = "ScopeCopy" if of_scope else "StreamCopy"
        try:
            streams = jobs_of_streams(job, stores) if of_scope else [job]
        except SluiceError as error:
            yield _of(f"{kind} {job.name}", error)
            continue
        for one in streams:
            try:
                yield _of_copy(one, stores)
            except SluiceError as error:
                yield _of(f"{kind} {one.name}", error)


def _of(copy: str, error: SluiceError) -> SluiceError:
    """Add the copy's name to an error."""
    error.add_note(copy)
    return error


def _of_copy(job: Job[CopyRequest], stores: Stores) -> Matched:
    """Pair the segments of a copy's target with those of its sources."""
    job = with_runs(job, stores)
    request = job.request
    addresses = [job.sources[source.store] for source in request.sources]
    return match_copy(
        request.copy_id,
        job.name,
        [
            Subject(stores.source(address), address.uri, source.stream)
            for source, address in zip(request.sources, addresses, strict=True)
        ],
        Subject(stores[job.target], job.target.uri, request.target),
        follow=request.follow,
        whole=[i for i, source in enumerate(request.sources) if source.ranges == (Range(),)],
    )


def _subject(field: str, text: str, range_: Range, resources: Resources, stores: Stores) -> Subject:
    """Find the stream of a name like `main:shop/orders`, or `namespace/main:shop/orders`."""
    store, stream = stream_of(text, field=field)
    address = address_of(store, resources, field=field)
    return Subject(stores.source(address), address.uri, stream, range_)


def _write(report: Path, text: str) -> None:
    try:
        report.write_text(text, encoding="utf-8")
    except OSError as error:
        raise InvalidSpec(
            f"{report} cannot be written: {error}",
            field="--report",
            remedy="Name a file in a folder that exists.",
        ) from error
