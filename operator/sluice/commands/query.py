"""Implement `sluice query plan | run | state | verify -f FILE`, which need no Kubernetes."""

from __future__ import annotations

import os
import sys
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

import click

from sluice import console
from sluice.commands.copying import TASKS, read
from sluice.commands.shared import CREDENTIALS, OUTPUT, VOLUMES, print_json, settings_of
from sluice.core.query.request import query_request
from sluice.core.tables.positions import StreamPosition
from sluice.core.values.text import counted, instant
from sluice.core.workloads import access
from sluice.core.workloads.request import store_address
from sluice.engine.query.ledger import QueryLedger
from sluice.engine.query.progress import read_query
from sluice.errors import EXIT_CODES, Category, InvalidSpec
from sluice.pipelines.programs.stores import Stores
from sluice.pipelines.query.arrow.query import run_by_arrow
from sluice.pipelines.query.attempt import Run
from sluice.pipelines.query.planning import planned
from sluice.pipelines.query.session import query_session
from sluice.pipelines.query.spark_query import run_by_spark

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

    from sluice.api.kinds.streamquery import StreamQuery
    from sluice.api.load import Resources
    from sluice.config import Settings
    from sluice.core.query.arrow.program import Program
    from sluice.core.query.ledger import BatchRecord, QueryReading
    from sluice.core.query.plan import QueryPlan, QueryRequest
    from sluice.core.query.request import Place
    from sluice.core.query.rows import ResultRow
    from sluice.core.values.model import StoreAddress
    from sluice.pipelines.query.recount import SinkComparison

FILE = click.option(
    "-f",
    "--filename",
    "file",
    required=True,
    type=click.Path(dir_okay=False, allow_dash=True),
    help="YAML with StreamStore and StreamQuery resources; - reads standard input.",
)

_HOME: Final = "XDG_STATE_HOME"


@click.group()
def query() -> None:
    """Run queries over streams, whose results are appended to streams exactly once."""


@query.command()
@FILE
@OUTPUT
@CREDENTIALS
@VOLUMES
def plan(*, file: str, output: str, credentials_dir: Path | None, volumes_dir: Path | None) -> None:
    """Check queries, and show their plans. No store is asked, and nothing is made."""
    settings = _settings(credentials_dir, volumes_dir)
    asked = _asked(file, settings)
    with query_session(1) as spark:
        plans = [planned(spark.newSession(), request).plan for _, request in asked]
    if output == "json":
        print_json([{"hash": one.hash, "plan": one.to_json()} for one in plans])
        return
    for (name, _), one in zip(asked, plans, strict=True):
        console.note.print(console.Words(f"{name}: {one.compiled.columns}"))
        click.echo(f"{name} sha256:{one.hash}")


@query.command()
@FILE
@OUTPUT
@CREDENTIALS
@VOLUMES
@TASKS
@click.option(
    "--checkpoints-dir",
    type=click.Path(file_okay=False, path_type=Path),
    help="Folder of checkpoints, which have the windows that are not closed. It has to outlive the "
    "command. [default: sluice/queries in XDG_STATE_HOME, or in ~/.local/state]",
)
def run(
    *,
    file: str,
    output: str,
    credentials_dir: Path | None,
    volumes_dir: Path | None,
    tasks: int | None,
    checkpoints_dir: Path | None,
) -> None:
    """Run a query, or go on where an earlier run stopped. Print each row as JSON.

    With mode: Continuous it goes on until Ctrl-C.
    """
    settings = _settings(credentials_dir, volumes_dir)
    asked = _asked(file, settings)
    if len(asked) > 1 and any(not request.once for _, request in asked):
        raise InvalidSpec(
            f"{len(asked)} queries of the file go on for ever, or some of them",
            field="spec.mode",
            remedy="Run each from a file of its own, side by side.",
        )
    folder = checkpoints_dir or _state() / "sluice" / "queries"
    shows = [_Show(name, printed=output == "text") for name, _ in asked]
    runs = [
        Run.of(request, folder, listener=show)
        for (_, request), show in zip(asked, shows, strict=True)
    ]
    by_arrow: list[tuple[str, QueryPlan, Program, Run]] = []
    ended: list[dict[str, object]] = []
    with Stores(settings) as stores:
        with query_session(tasks or os.cpu_count() or 1) as spark:
            for (name, request), how in zip(asked, runs, strict=True):
                own = spark.newSession()  # a query sees no tables of another one
                wanted, program = planned(own, request)
                if program is not None:
                    by_arrow.append((name, wanted, program, how))
                    continue
                with _left(name):
                    rows = run_by_spark(wanted, own, stores, settings, how)
                ended.append(_written(name, wanted, rows))
        for name, wanted, program, how in by_arrow:  # without the JVM
            with _left(name):
                rows = run_by_arrow(wanted, program, stores, settings, how)
            ended.append(_written(name, wanted, rows))
    if output == "json":
        print_json(ended)


@query.command()
@FILE
@OUTPUT
@CREDENTIALS
@VOLUMES
def state(
    *, file: str, output: str, credentials_dir: Path | None, volumes_dir: Path | None
) -> None:
    """Tell how far queries are, by their ledgers and the tails of their sources.

    Nothing is made, and a query that runs is not disturbed. For one of a cluster, set
    SLUICE_CLUSTER_ID to the cluster's, and give the file its namespace.
    """
    settings = _settings(credentials_dir, volumes_dir)
    told = []
    with Stores(settings) as stores:
        for name, request in _asked(file, settings):
            first = request.sinks[0]
            ledger = QueryLedger(stores[first.store], request.query_id, first.stream)
            sources = [(one.stream, stores[one.store]) for one in request.sources]
            told.append(_told(name, read_query(ledger, sources)))
    if output == "json":
        print_json(told)
        return
    for one in told:
        for key, value in one.items():
            if key != "positions":
                click.echo(f"{key:9} {value}")
        for place in one.get("positions", ()):
            offsets = (f"{at['segmentID']}={at['offset']}" for at in place["offsets"])
            click.echo(f"position  {place['stream']} {','.join(offsets)}")


def _told(name: str, reading: QueryReading) -> dict[str, Any]:
    """Return what is known of a query, in the order in which it is shown."""
    version, last = reading.state.version, reading.state.last
    if version is None:
        return {"name": name, "rows": 0}
    found: dict[str, Any] = {
        "name": name,
        "version": version.number,
        "hash": version.plan.hash,
        "columns": version.plan.compiled.columns,
        "engine": version.plan.engine,
        "attempt": reading.state.attempt,
        "rows": reading.state.rows,
        "lateEvents": reading.state.late,
        "malformedEvents": reading.state.malformed,
    }
    if last is not None:
        found["batch"] = last.batch
        found["sha256"] = last.sha256
        found |= {"stateRows": last.state_rows, "stateBytes": last.state_bytes}
        if last.latency is not None:
            found |= dict(zip(("p50Milliseconds", "p99Milliseconds"), last.latency, strict=True))
        if last.watermark:
            found["watermark"] = instant(last.watermark)
    if reading.lag_bytes is not None:
        found["lagBytes"] = reading.lag_bytes
    ends = version.begins if last is None else last.ends
    found["positions"] = [_position(StreamPosition.from_json(end)) for end in ends]
    return found


@query.command()
@FILE
@OUTPUT
@CREDENTIALS
@VOLUMES
def verify(
    *, file: str, output: str, credentials_dir: Path | None, volumes_dir: Path | None
) -> None:
    """Compute results anew by another engine, DuckDB, and compare them with the sinks.

    All that the version has read is read again, up to its last batch; what its sources have lost is
    named. The query may run meanwhile. The exit code is that of `sluice verify`.
    """
    settings = _settings(credentials_dir, volumes_dir)
    recounted = _recounted()
    found: list[tuple[str, SinkComparison]] = []
    with Stores(settings) as stores:
        for name, request in _asked(file, settings):
            first = request.sinks[0]
            ledger = QueryLedger(stores[first.store], request.query_id, first.stream)
            found += [(name, one) for one in recounted(request, ledger, stores, settings)]
    if output == "json":
        print_json([_compared(*one) for one in found])
    for name, one in found if output == "text" else ():
        click.echo(f"{name}: {_verdict(one)}")
        for example in one.examples:
            click.echo(example)
    sys.exit(0 if all(one.equal for _, one in found) else EXIT_CODES[Category.INTEGRITY])


def _recounted() -> Callable[..., list[SinkComparison]]:
    """Return the function that compares, whose libraries only those who want it have."""
    try:
        from sluice.pipelines.query.recount import recounted  # noqa: PLC0415
    except ImportError as error:
        raise InvalidSpec(
            f"this installation has no {error.name}",
            remedy="Install what compares: pip install 'sluice[verify]'",
        ) from error
    return recounted


def _compared(name: str, one: SinkComparison) -> dict[str, Any]:
    return {
        "name": name,
        "sink": str(one.sink),
        "equal": one.equal,
        "batch": one.batch,
        "rows": one.rows,
        "missing": one.missing,
        "extra": one.extra,
        "lateEvents": one.late,
        "examples": list(one.examples),
    }


def _verdict(one: SinkComparison) -> str:
    """Return the result of a comparison as a sentence."""
    rows = f"{counted(one.rows, 'row')} of {one.sink}, up to batch {one.batch}"
    if one.equal:
        return f"{rows}, are those that DuckDB computes"
    said = (
        f"{rows}, are not those that DuckDB computes: "
        f"{one.missing:,} are missing (-), {one.extra:,} too many (+)"
    )
    late = counted(one.late, "event")
    return said if not one.late else f"{said}. {late} came late, and DuckDB counts them."


def _position(place: StreamPosition) -> dict[str, Any]:
    offsets = [{"segmentID": one, "offset": at} for one, at in sorted(place.offsets.items())]
    return {"stream": str(place.stream), "offsets": offsets}


@contextmanager
def _left(name: str) -> Iterator[None]:
    """Say what an interrupt leaves.

    Raises:
        KeyboardInterrupt: it came, with these words.
    """
    try:
        yield
    except KeyboardInterrupt:
        said = f"Interrupted. {name} goes on from its checkpoint: run it again."
        raise KeyboardInterrupt(said) from None


def _written(name: str, plan: QueryPlan, rows: int) -> dict[str, object]:
    """Say how many rows a query has written, and return it for JSON."""
    console.note.print(f"{name}: {counted(rows, 'row')} written", markup=False)
    return {"name": name, "hash": plan.hash, "rows": rows}


class _Show:
    """Prints the rows of each batch."""

    def __init__(self, name: str, *, printed: bool) -> None:
        self._name = name
        self._printed = printed

    def __call__(self, record: BatchRecord, rows: Sequence[ResultRow]) -> None:
        """Print a batch."""
        for row in rows if self._printed else ():
            click.echo(row.text)
        if rows:
            said = f"{self._name}: batch {record.batch}, {counted(record.rows, 'row')}"
            console.note.print(console.Words(said))


def _asked(file: str, settings: Settings) -> list[tuple[str, QueryRequest]]:
    """Return the queries of a file, each behind its name.

    Raises:
        InvalidSpec: a resource is wrong, names a store that is not in the file or of the wrong
            kind, or there is no query.
    """
    resources = read(file, copies=False)
    if not resources.queries:
        raise InvalidSpec(
            "there is no StreamQuery in the file",
            field="kind",
            remedy="Write a document with kind: StreamQuery.",
        )
    return [(one.metadata.name, _requested(one, resources, settings)) for one in resources.queries]


def _requested(query: StreamQuery, resources: Resources, settings: Settings) -> QueryRequest:
    """Resolve the stores of a query. Errors are those of `_asked`."""

    def address_of(field: str, place: Place) -> StoreAddress:
        found = resources.store(query, place.ref, field=f"{field}.{place.store_field}")
        access.check_queried(found.spec, place, field=field)
        return store_address(found)

    return query_request(query, address_of, cluster=settings.cluster_id)


def _settings(credentials_dir: Path | None, volumes_dir: Path | None) -> Settings:
    """Return the settings, which processes of Spark find in their environment."""
    settings = settings_of(credentials_dir, volumes_dir)
    for name, folder in (
        ("SLUICE_CREDENTIALS_DIR", settings.credentials_dir),
        ("SLUICE_VOLUMES_DIR", settings.volumes_dir),
    ):
        if folder is not None:
            os.environ[name] = str(folder.absolute())
    return settings


def _state() -> Path:
    given = os.environ.get(_HOME)
    return Path(given) if given else Path.home() / ".local" / "state"
