"""Define StreamQuery: SQL over streams, whose results are appended to streams exactly once."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, Any, Final, Literal, Self

from pydantic import ConfigDict, Field, model_validator

from sluice.api.fields.backends import Holds, either
from sluice.api.fields.common import (
    ApiModel,
    ArchivePath,
    InOwnStore,
    NameInStore,
    ObjectName,
    OwnStoreRef,
    Resource,
    StoreName,
    only,
)
from sluice.api.fields.query_sinks import LiveStream, QuerySink, ResultStream
from sluice.api.fields.query_verify import QueryVerifySpec
from sluice.api.fields.ranges import Begin
from sluice.api.fields.running import DEFAULT_PROFILE, DriverSpec
from sluice.api.rules import Rule, rules
from sluice.api.scalars.quantities import Bytes

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

MOST_SQL: Final = 64 << 10
"""Characters of the longest query."""

MOST_SCHEMA: Final = 16 << 10
"""Characters of the longest schema."""

_WORD: Final = r"[A-Za-z_][A-Za-z0-9_]*"
_NO_WORD: Final = (
    "names of tables, columns and parameters begin with a letter, and have letters, digits and _"
)
_SAME_STREAM: Final = "two sinks append to one stream: name another one"
_SAME_TABLE: Final = "two sources have one name: give each its own"
_SAME_SOURCE: Final = "two sources read one stream: name it once, and twice in FROM with AS"
_SAME_PARAMETER: Final = "two parameters have one name: remove one"
_LOOP: Final = "the query reads the stream that this sink appends to: name another one"

Word = Annotated[str, Field(min_length=1, max_length=64), only(_WORD, _NO_WORD)]
"""The name of a table, a column or a parameter in SQL."""


class QueriedStream(InOwnStore):
    """A stream that a query reads."""

    store_ref: OwnStoreRef = Field(
        description=f"The StreamStore that holds the stream. Its kind is {either(Holds.LIVE)}."
    )
    scope: NameInStore = Field(description="The stream's scope.")
    stream: NameInStore = Field(description="The stream's name.")

    @property
    def title(self) -> str:
        """The stream with its scope, for messages."""
        return f"{self.scope}/{self.stream}"


class QueriedArchive(InOwnStore):
    """The archive of a stream that a query reads: what the stream no longer has comes from it."""

    store_ref: OwnStoreRef = Field(
        description=f"The StreamStore that holds the archive. Its kind is {either(Holds.ARCHIVES)}."
    )
    path: ArchivePath = Field(description="The archive's path in the store.")

    @property
    def holds_archives(self) -> bool:
        """Whether the StreamStore must hold archives."""
        return True

    @property
    def title(self) -> str:
        """The archive's path, for messages."""
        return self.path


class EventTimeSpec(ApiModel):
    """The column that says when an event happened."""

    column: Word = Field(description="A column of the schema with the type TIMESTAMP.")
    lateness_seconds: Annotated[int, Field(ge=0, le=31_536_000, strict=True)] = Field(
        description="By how many seconds an event may come after later ones. A window is closed "
        "once the newest event is so many seconds behind its end. Events of closed windows are "
        "late, and are left out."
    )
    idle_after_seconds: Annotated[int, Field(ge=1, le=31_536_000, strict=True)] | None = Field(
        default=None,
        description="Seconds without an event after which time goes on by the clock, so that the "
        "windows of a stream that is idle are closed. Events that come then and are older than the "
        "clock less these seconds and latenessSeconds are late. If left out, a window stays open "
        "until a newer event comes.",
    )


class QuerySource(ApiModel):
    """A stream as a table."""

    name: Word = Field(description="The table's name in the query.")
    stream: QueriedStream = Field(description="The stream.")
    archive: QueriedArchive | None = Field(
        default=None,
        description="An archive of the stream. What the stream no longer has is read from it.",
    )
    from_: Begin = Field(
        default=Begin(at="Head"), alias="from", description="Where the query begins."
    )
    format: Literal["Json", "Csv", "Text", "Bytes"] = Field(
        description="The format of an event: a JSON object, a record of CSV, a text in UTF-8, or "
        "bytes."
    )
    schema_: (
        Annotated[
            str,
            Field(min_length=1, max_length=MOST_SCHEMA),
            only(r"[^{}\\]*", "write columns and types as SQL does: k STRING, n BIGINT"),
        ]
        | None
    ) = Field(
        default=None,
        alias="schema",
        description="The columns and their types, in SQL: k STRING, n BIGINT, ts TIMESTAMP. Text "
        "and Bytes have one column, event, if it is left out.",
    )
    delimiter: Annotated[
        str,
        Field(min_length=1, max_length=1),
        only(r'[^"\r\n]', "the delimiter is neither a quote nor the end of a line"),
    ] = Field(default=",", description="The character between the values of a record of CSV.")
    malformed: Literal["Fail", "Drop"] = Field(
        default="Fail",
        description="What to do with an event that does not fit format and schema: fail, or leave "
        "it out.",
    )
    event_time: EventTimeSpec | None = Field(
        default=None,
        description="When an event happened. Windows need it: without it none is ever closed.",
    )


class Parameter(ApiModel):
    """A value that the query names as :NAME."""

    name: Word = Field(description="The name, without the colon.")
    type: Literal["String", "BigInt", "Double", "Boolean", "Timestamp"] = Field(
        description="The type of the value."
    )
    value: Annotated[str, Field(max_length=4096)] = Field(
        description="The value as a text, for example '3.5', 'true' or '2026-05-04T12:00:00Z'."
    )


class SqlQuery(ApiModel):
    """A query in the SQL of Spark."""

    sql: Annotated[str, Field(min_length=1, max_length=MOST_SQL)] = Field(
        description="One SELECT over the sources by their names. It may call functions whose "
        "results follow from the events alone."
    )
    parameters: Annotated[tuple[Parameter, ...], Field(max_length=64)] = Field(
        default=(), description="Values that the query names as :NAME."
    )


class ResultSpec(ApiModel):
    """What the rows of the result are."""

    keys: Annotated[tuple[Word, ...], Field(max_length=16)] = Field(
        default=(),
        description="The columns that tell rows apart. Rows of one key go to one segment of each "
        "sink, in the order of the batches that made them. If left out, all rows go to one.",
    )
    emit: Literal["Final", "Changes"] = Field(
        default="Final",
        description="Final: a row is written once, when it cannot change any more; a window when "
        "it is closed. Changes: a row is written again whenever it has changed.",
    )


class Trigger(ApiModel):
    """When batches begin."""

    interval_seconds: Annotated[int, Field(ge=0, le=3600, strict=True)] = Field(
        default=1,
        description="Seconds from the beginning of a batch to that of the next one. With 0, a "
        "batch begins once the last one has ended and there are events: rows come soonest. The "
        "engine Spark takes a processor and more then, and Arrow a fifth of one.",
    )


class QueryLimits(ApiModel):
    """The limits of a batch."""

    batch_bytes: Annotated[int, Bytes("64Ki", "4Gi")] = Field(
        default=64 << 20, description="Maximum bytes of each source in a batch. 64Ki to 4Gi."
    )


class CheckpointSpec(ApiModel):
    """The folder with the windows of a query that are not closed."""

    claim_name: ObjectName | None = Field(
        default=None,
        description="The PersistentVolumeClaim, in this namespace, in which the query has a folder "
        "of its own. Only one pod at a time mounts it. Queries in a cluster need it; the command "
        "line has --checkpoints-dir.",
    )


class QueryRuntime(ApiModel):
    """The pod that the query runs in."""

    profile: StoreName = Field(
        default=DEFAULT_PROFILE,
        description="One of the profiles that the administrator offers (Helm value `profiles`).",
    )
    driver: DriverSpec = Field(
        default=DriverSpec(),
        description="The pod. Half of its memory is for the windows.",
    )


_LIVE_STAYS: Final = (
    "sinks of which one is live cannot be changed: delete the query, and apply it again"
)

_LIVE_LAST: Final = "live sinks come behind the others: the query's ledger lies beside the first"

_HAS_LIVE: Final = "{0}.sinks.exists(one, has(one.live))"


class StreamQuerySpec(ApiModel):
    """The sources, the query, and what becomes of its results."""

    model_config = ConfigDict(
        json_schema_extra=rules(
            # Another list of sinks is another query, which would leave the live ones of this one.
            Rule(
                f"!({_HAS_LIVE.format('self')} || {_HAS_LIVE.format('oldSelf')})"
                " || self.sinks == oldSelf.sinks",
                _LIVE_STAYS,
                path=".sinks",
                reason="FieldValueForbidden",
            ),
            Rule(
                "!has(self.sinks[0].live) || self.sinks.all(one, has(one.live))",
                _LIVE_LAST,
                path=".sinks",
            ),
        )
    )

    sources: Annotated[tuple[QuerySource, ...], Field(min_length=1, max_length=8)] = Field(
        description="The streams, each as a table."
    )
    query: SqlQuery = Field(description="The query.")
    result: ResultSpec = Field(default=ResultSpec(), description="What the rows of the result are.")
    sinks: Annotated[tuple[QuerySink, ...], Field(min_length=1, max_length=4)] = Field(
        description="What takes the results."
    )
    mode: Literal["Continuous", "Once"] = Field(
        default="Continuous",
        description="Continuous: go on as long as the resource exists. Once: end at the tail that "
        "the sources have when the query begins.",
    )
    engine: Literal["Spark", "Arrow"] = Field(
        default="Spark",
        description="What computes the rows. Spark: any query. Arrow: rows come within tens of "
        "milliseconds, and the query takes a fraction of the memory and of the processors. It "
        "reads one source, and consists of parts that mean the same to both. Other queries are "
        "refused. A change of it is a change of the query.",
    )
    trigger: Trigger = Field(default=Trigger(), description="When batches begin.")
    on_change: Literal["Refuse", "Restart"] = Field(
        default="Refuse",
        description="What to do if the query or a source is changed. Refuse: the query stops, and "
        "says what was changed. Restart: it goes on as a new version, behind the last event that "
        "it has read, with empty windows.",
    )
    verify: QueryVerifySpec | None = Field(
        default=None,
        description="When another engine computes the results anew, and compares them with the "
        "sinks, in a pod of its own. The condition Verified tells what it found. Only in a "
        "cluster; the command line has sluice query verify.",
    )
    suspend: Annotated[bool, Field(strict=True)] = Field(
        default=False,
        description="Stop the query, and keep its checkpoint. It goes on from there.",
    )
    checkpoint: CheckpointSpec = Field(
        default=CheckpointSpec(),
        description="Where the windows that are not closed are kept.",
    )
    limits: QueryLimits = Field(default=QueryLimits(), description="The limits of a batch.")
    runtime: QueryRuntime = Field(
        default=QueryRuntime(), description="The pod that the query runs in."
    )

    @model_validator(mode="after")
    def _told_apart(self) -> Self:
        """Refuse names that are there twice, and a query that reads its own results.

        Raises:
            ValueError: so it is.
        """
        if _twice(source.name.lower() for source in self.sources):
            raise ValueError(_SAME_TABLE)
        read = [(one.stream.ref.title, one.stream.title) for one in self.sources]
        if _twice(read):
            raise ValueError(_SAME_SOURCE)
        if _twice(one.name for one in self.query.parameters):
            raise ValueError(_SAME_PARAMETER)
        sinks = [(one.ref.title, one.title) for _, one in self.goals]
        if _twice(sinks):
            raise ValueError(_SAME_STREAM)
        if any(one in sinks for one in read):
            raise ValueError(_LOOP)
        if self.sinks[0].live is not None and any(one.live is None for one in self.sinks):
            raise ValueError(_LIVE_LAST)
        return self

    @property
    def places(self) -> Sequence[tuple[str, QueriedStream | QueriedArchive | ResultStream]]:
        """All that names a StreamStore, each behind the path of its field."""
        return [*self.origins, *self.goals]

    @property
    def origins(self) -> Sequence[tuple[str, QueriedStream | QueriedArchive]]:
        """The streams and archives that are read, each behind the path of its field."""
        found: list[tuple[str, QueriedStream | QueriedArchive]] = []
        for index, source in enumerate(self.sources):
            found.append((f"spec.sources[{index}].stream", source.stream))
            if source.archive is not None:
                found.append((f"spec.sources[{index}].archive", source.archive))
        return found

    @property
    def goals(self) -> Sequence[tuple[str, ResultStream]]:
        """The streams that results are appended to, each behind the path of its field."""
        places = [sink.place for sink in self.sinks]
        return [(f"spec.sinks[{at}].{field}", one) for at, (field, one) in enumerate(places)]

    @property
    def live(self) -> Sequence[tuple[str, LiveStream]]:
        """The streams that go with the query, each behind the path of its field."""
        return [(field, one) for field, one in self.goals if isinstance(one, LiveStream)]

    def identity(self) -> dict[str, Any]:
        """Return the part of the spec that identifies the query: where its results go."""
        sinks = [
            {"store": one.store, "stream": one.title}
            # Rows that were promised to stay must never be taken for those of a live sink.
            | ({"live": True} if isinstance(one, LiveStream) else {})
            for _, one in self.goals
        ]
        return {"sinks": sinks}


def _twice(names: Iterable[object]) -> bool:
    found = list(names)
    return len(set(found)) < len(found)


class StreamQuery(Resource):
    """SQL over streams, whose results are appended to streams exactly once."""

    kind: Literal["StreamQuery"]
    spec: StreamQuerySpec
