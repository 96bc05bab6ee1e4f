"""The plan of a query: a document whose hash is the version of the query.

The plan has all that decides about the results, and nothing else. So a change of limits or of the
trigger is no new version. It also has what Spark made of the text. A text that is only written in
another way is the same query then.
"""

from __future__ import annotations

import hashlib
import json
from typing import Annotated, Any, Literal

from pydantic import Field

from sluice.core.tables.columns import EventFormat, Malformed
from sluice.core.values.model import Frozen, StoreAddress, StreamName

MOST_TREE = 1 << 20
"""Characters of the longest resolved plan. Ledgers hold it."""


class EventTime(Frozen):
    """The column of a source that says when an event happened, and how late it may come.

    Attributes:
        column: the column.
        lateness_ms: by how much an event may come after later ones.
        idle_after_ms: how long no event has to come until time goes on by the clock; None if it
            never does.
    """

    column: str
    lateness_ms: int
    idle_after_ms: int | None = None


class PlannedSource(Frozen):
    """A stream as a table of the query.

    Attributes:
        name: the table's name.
        stream: the stream.
        store: the address of its store.
        archive: the address of an archive of the stream; None without one.
        begins: where the query begins: `Head`, `Tail`, the text of a StreamCut, or the JSON of a
            position.
        format: how events are decoded.
        columns: the columns and their types in Spark's DDL; None for those of the format.
        delimiter: between the values of a record of CSV.
        malformed: what becomes of events that do not fit.
        event_time: when an event happened; None if nothing says so.
    """

    name: str
    stream: StreamName
    store: StoreAddress
    archive: StoreAddress | None = None
    begins: str
    format: EventFormat
    columns: str | None = None
    delimiter: str = ","
    malformed: Malformed = Malformed.FAIL
    event_time: EventTime | None = None


class PlannedSink(Frozen):
    """A stream that takes the results.

    Attributes:
        stream: the stream.
        store: the address of its store.
        segments: the number of its segments.
        keep_ms: for how long a live one keeps rows; None for one that keeps all, and stays.
    """

    stream: StreamName
    store: StoreAddress
    segments: int
    keep_ms: int | None = None


class PlannedParameter(Frozen):
    """A value that the text names."""

    name: str
    type: str
    value: str


class Compiled(Frozen):
    """What Spark made of the text.

    Attributes:
        spark: Spark's version. Plans of two versions are not compared.
        columns: the columns of the result and their types, in Spark's DDL.
        tree: the resolved plan, in which names and numbers that Spark gives are left out.
    """

    spark: str
    columns: str
    tree: Annotated[str, Field(max_length=MOST_TREE)]


class _Query(Frozen):
    """What a query is, before and after it is compiled.

    Attributes:
        version: of this format.
        query_id: the query's identity: 32 hexadecimal digits.
        sources: the tables.
        sql: the text.
        parameters: the values that it names.
        keys: the columns that tell rows of the result apart.
        emit: whether rows are written once, or as they change.
        sinks: what takes the results.
        engine: what computes the batches.
    """

    version: Literal[1] = 1
    query_id: str
    sources: tuple[PlannedSource, ...]
    sql: str
    parameters: tuple[PlannedParameter, ...] = ()
    keys: tuple[str, ...] = ()
    emit: Literal["Final", "Changes"] = "Final"
    sinks: tuple[PlannedSink, ...]
    engine: Literal["Spark", "Arrow"] = "Spark"


class QueryRequest(_Query):
    """What a process needs to run a query: the query, and how it is run.

    Attributes:
        once: whether it ends at the tail that its sources have at the beginning.
        interval_seconds: from the beginning of a batch to that of the next one; 0 for no pause.
        batch_bytes: the most bytes of each source in a batch.
        restart: whether a changed query goes on as a new version, with empty windows.
    """

    once: bool = False
    interval_seconds: int
    batch_bytes: int
    restart: bool = False

    def planned(self, made: Compiled) -> QueryPlan:
        """Return the plan, with what Spark made of the text."""
        return QueryPlan(
            compiled=made, **{name: getattr(self, name) for name in _Query.model_fields}
        )


class QueryPlan(_Query):
    """The plan of a query. Its attributes are those of `QueryRequest` that decide about results.

    Attributes:
        compiled: what Spark made of the text.
    """

    compiled: Compiled

    @property
    def canonical(self) -> str:
        """The plan as JSON; equal plans give equal texts."""
        return json.dumps(self.to_json(), sort_keys=True, separators=(",", ":"))

    @property
    def hash(self) -> str:
        """SHA-256 of the canonical JSON, in hexadecimal digits."""
        return hashlib.sha256(self.canonical.encode()).hexdigest()

    def to_json(self) -> dict[str, Any]:
        """Return the plan as JSON values."""
        return self.model_dump(mode="json", exclude_none=True)
