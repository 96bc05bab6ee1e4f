"""Implement `sluice query plan | run -f FILE`: queries over streams, without Kubernetes."""

from __future__ import annotations

import os
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Final, NamedTuple

import click

from sluice import console
from sluice.api.kinds.streamquery import QueriedArchive, ResultStream
from sluice.commands.copying import TASKS, read
from sluice.commands.shared import CREDENTIALS, OUTPUT, VOLUMES, print_json, settings_of
from sluice.core.query import request
from sluice.core.query.plan import QueryPlan
from sluice.core.values.text import counted
from sluice.core.workloads import access
from sluice.core.workloads.request import store_address
from sluice.errors import InvalidSpec
from sluice.pipelines.programs.stores import Stores
from sluice.pipelines.query.compile import Wanted, compiled
from sluice.pipelines.query.program import Run, run_query
from sluice.pipelines.query.session import query_session

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from pyspark.sql import SparkSession

    from sluice.api.kinds.streamquery import QueriedStream, StreamQuery
    from sluice.api.load import Resources
    from sluice.config import Settings
    from sluice.core.query.ledger import BatchRecord
    from sluice.core.query.plan import PlannedSink
    from sluice.core.query.rows import Row
    from sluice.core.values.model import StoreAddress

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
        plans = [one.plan(spark.newSession()) for one in asked]
    if output == "json":
        print_json([{"hash": one.hash, "plan": one.to_json()} for one in plans])
        return
    for name, one in zip([one.name for one in asked], plans, strict=True):
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
    if len(asked) > 1 and any(not one.once for one in asked):
        raise InvalidSpec(
            f"{len(asked)} queries of the file go on for ever, or some of them",
            field="spec.mode",
            remedy="Run each from a file of its own, side by side.",
        )
    folder = checkpoints_dir or _state() / "sluice" / "queries"
    ended: list[dict[str, object]] = []
    with Stores(settings) as stores, query_session(tasks or os.cpu_count() or 1) as spark:
        for one in asked:
            own = spark.newSession()  # a query sees no tables of another one
            wanted = one.plan(own)
            show = _Show(one.name, printed=output == "text")
            one_run = Run(
                folder=folder / wanted.query_id,
                once=one.once,
                interval_seconds=one.query.spec.trigger.interval_seconds,
                batch_bytes=one.query.spec.limits.batch_bytes,
                restart=one.query.spec.on_change == "Restart",
                listener=show,
            )
            with _left(one.name):
                rows = run_query(wanted, own, stores, settings, one_run)
            console.note.print(f"{one.name}: {counted(rows, 'row')} written", markup=False)
            ended.append({"name": one.name, "hash": wanted.hash, "rows": rows})
    if output == "json":
        print_json(ended)


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


class _Show:
    """Prints the rows of each batch."""

    def __init__(self, name: str, *, printed: bool) -> None:
        self._name = name
        self._printed = printed

    def __call__(self, record: BatchRecord, rows: Sequence[Row]) -> None:
        """Print a batch."""
        for row in rows if self._printed else ():
            click.echo(row.text)
        if rows:
            said = f"{self._name}: batch {record.batch}, {counted(record.rows, 'row')}"
            console.note.print(console.Words(said))


class AskedQuery(NamedTuple):
    """A query of the file whose stores are resolved."""

    query: StreamQuery
    query_id: str
    wanted: Wanted
    sinks: Sequence[PlannedSink]

    @property
    def name(self) -> str:
        """The resource's name."""
        return self.query.metadata.name

    @property
    def once(self) -> bool:
        """Whether the query ends by itself."""
        return self.query.spec.mode == "Once"

    def plan(self, spark: SparkSession) -> QueryPlan:
        """Compile the query. Errors are those of `pipelines.query.compile.compiled`."""
        wanted = self.wanted
        return QueryPlan(
            query_id=self.query_id,
            sources=tuple(wanted.sources),
            sql=wanted.sql,
            parameters=tuple(wanted.parameters),
            keys=tuple(wanted.keys),
            emit=self.query.spec.result.emit,
            sinks=tuple(self.sinks),
            compiled=compiled(spark, wanted),
        )


def _asked(file: str, settings: Settings) -> list[AskedQuery]:
    """Return the queries of a file.

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
    return [resolved(one, resources, settings) for one in resources.queries]


def resolved(query: StreamQuery, resources: Resources, settings: Settings) -> AskedQuery:
    """Resolve the stores of a query. Arguments and errors are those of `_asked`."""

    def address_of(
        field: str, place: QueriedStream | QueriedArchive | ResultStream
    ) -> StoreAddress:
        named = f"{field}.{place.store_field}"
        found = resources.store(query, place.ref, field=named)
        access.check_kind(found.spec, store=place.store, archives=place.holds_archives, field=named)
        sink = isinstance(place, ResultStream)
        if not isinstance(place, QueriedArchive):
            access.check(
                found.spec.access,
                store=place.store,
                scope=place.scope,
                operations=("Create", "Append") if sink else ("Read",),
                field=field,
            )
        return store_address(found)

    spec = query.spec
    return AskedQuery(
        query,
        request.query_id(query, cluster=settings.cluster_id),
        Wanted(
            request.planned_sources(query, address_of),
            spec.query.sql,
            request.planned_parameters(query),
            spec.result.keys,
            spec.result.emit,
        ),
        request.planned_sinks(query, address_of),
    )


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
