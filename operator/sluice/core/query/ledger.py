"""The ledger of a query: which version runs, which attempt, and which batches are whole.

Records lie beside the first sink. They are what the results can be checked by without Spark: each
batch has the positions up to which it read, and a digest of its rows.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, Any, Final, Literal, NamedTuple, Self

from pydantic import AfterValidator, Field, TypeAdapter, ValidationError, model_validator

from sluice.core.query.plan import QueryPlan
from sluice.core.tables.positions import StreamPosition
from sluice.core.values.model import Frozen
from sluice.errors import CheckpointDiverged, CheckpointLost, InvalidSpec, JournalDamaged

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping


def _position(value: dict[str, Any]) -> dict[str, Any]:
    """Check that a value is the JSON of a position: any client may write beside a sink."""
    try:
        return StreamPosition.from_json(value).to_json()
    except InvalidSpec as error:
        raise ValueError(str(error)) from None


Position = Annotated[dict[str, Any], AfterValidator(_position)]
Positions = tuple[Position, ...]
"""Positions in sources, as JSON: see `core.tables.positions`."""

MOST_MILLIS: Final = 1 << 62
"""The farthest from 1970 that a watermark may be, in milliseconds."""

MOST_BYTES: Final = 1 << 60
"""The most bytes that a state may have."""

Number = Annotated[int, Field(ge=0, lt=1 << 40, strict=True)]
"""A number or a count. Event numbers have room for it."""


class VersionRecord(Frozen):
    """The beginning of a version of the query.

    Attributes:
        number: of the version, from 1.
        plan: the plan of this version.
        begins: the position of each source at which the version begins, as JSON of a position.
        results: the position of each sink at which its rows begin; none for the heads.
    """

    record: Literal["version"] = "version"
    number: Number
    plan: QueryPlan
    begins: Positions
    results: Positions = ()

    @model_validator(mode="after")
    def _one_for_each(self) -> Self:
        if len(self.begins) != len(self.plan.sources):
            raise ValueError("a version has a position for each source")
        if len(self.results) not in {0, len(self.plan.sinks)}:
            raise ValueError("a version has a position for each sink, or none")
        return self


class AttemptRecord(Frozen):
    """The beginning of an attempt. Earlier attempts end when they see it.

    Attributes:
        number: of the attempt, from 1 in each ledger.
    """

    record: Literal["attempt"] = "attempt"
    number: Number


class BegunRecord(Frozen):
    """A batch whose rows may be in some sinks. It is written before the first of them.

    Attributes:
        batch: its number in the version, from 0.
        ends: the position of each source up to which it reads, as JSON of a position.
        keys: the SHA-256 of the keys of its rows.
        part: the most rows of a segment that are appended at once.
    """

    record: Literal["begun"] = "begun"
    batch: Number
    ends: Positions
    keys: str
    part: Annotated[int, Field(ge=1, lt=1 << 40, strict=True)]


class BatchRecord(Frozen):
    """A batch whose rows are in all sinks.

    Attributes:
        batch: its number in the version, from 0.
        ends: the position of each source up to which it read, as JSON of a position.
        rows: the number of its rows.
        sha256: the SHA-256 of its rows, as the sinks have them, in their order.
        watermark: windows that end up to it are closed, and their rows are in the sinks, in
            milliseconds since 1970; 0 before the first event, and in a query without event time.
        late: the number of its events that are older than the watermark. Those of closed windows
            are left out.
        malformed: the number of events that did not fit and were left out.
        state_rows, state_bytes: what the engine keeps of windows: Spark before the batch, Arrow
            behind it.
        latency: how long the last hundred batches took, from the beginning until the next one could
            begin, in milliseconds: the median, and what 99 of 100 did not exceed; None if no batch
            of this attempt has ended.
        attempt: the attempt that wrote it.
    """

    record: Literal["batch"] = "batch"
    batch: Number
    ends: Positions
    rows: Number
    late: Number = 0
    malformed: Number = 0
    state_rows: Number = 0
    state_bytes: Annotated[int, Field(ge=0, le=MOST_BYTES, strict=True)] = 0
    latency: tuple[Number, Number] | None = None
    sha256: str
    watermark: Annotated[int, Field(ge=-MOST_MILLIS, le=MOST_MILLIS, strict=True)] = 0
    attempt: Number = 0


class SummaryRecord(Frozen):
    """A record that stands for all before it."""

    record: Literal["summary"] = "summary"
    version: VersionRecord
    attempt: Number
    last: BatchRecord | None = None
    begun: BegunRecord | None = None
    rows: Number
    late: Number = 0
    malformed: Number = 0


Record = Annotated[
    VersionRecord | AttemptRecord | BegunRecord | BatchRecord | SummaryRecord,
    Field(discriminator="record"),
]

_RECORDS: TypeAdapter[Record] = TypeAdapter(Record)


class LedgerState(NamedTuple):
    """The content of a ledger.

    Attributes:
        version: the version that runs; None before the first.
        attempt: the number of the last attempt; 0 before the first.
        last: the last batch of the version that is whole; None before the first.
        begun: the batch after it, if its rows may be in some sinks; else None.
        rows: the rows of all versions.
        late: the late events of all versions.
        malformed: the malformed events of all versions, which were left out.
    """

    version: VersionRecord | None = None
    attempt: int = 0
    last: BatchRecord | None = None
    begun: BegunRecord | None = None
    rows: int = 0
    late: int = 0
    malformed: int = 0

    @property
    def whole(self) -> int:
        """The number of the last batch that is whole; -1 before the first."""
        return -1 if self.last is None else self.last.batch

    @property
    def summary(self) -> SummaryRecord | None:
        """The record that stands for this state; None before the first version."""
        if self.version is None:
            return None
        return SummaryRecord(
            version=self.version,
            attempt=self.attempt,
            last=self.last,
            begun=self.begun,
            rows=self.rows,
            late=self.late,
            malformed=self.malformed,
        )

    def after(self, record: Mapping[str, Any]) -> LedgerState:
        """Return the state with one more record.

        Raises:
            JournalDamaged: it is no record, or does not follow those before it.
        """
        try:
            read = _RECORDS.validate_python(record)
        except ValidationError as error:
            first = error.errors(include_input=False, include_url=False)[0]
            raise JournalDamaged(f"the ledger has no record: {first['msg']}") from None
        return _folded(self, read)


def _folded(state: LedgerState, record: Record) -> LedgerState:
    match record:
        case SummaryRecord():
            return LedgerState(
                record.version,
                record.attempt,
                record.last,
                record.begun,
                record.rows,
                record.late,
                record.malformed,
            )
        case VersionRecord():
            if record.number <= (state.version.number if state.version else 0):
                raise _out_of_order(f"version {record.number}")
            return state._replace(version=record, last=None, begun=None)
        case AttemptRecord():
            if record.number != state.attempt + 1:
                raise _out_of_order(f"attempt {record.number}")
            return state._replace(attempt=record.number)
        case BegunRecord():
            _check_next(state, record, fits=state.begun is None)
            return state._replace(begun=record)
        case BatchRecord():
            begun = state.begun
            same = begun is None or (begun.batch, begun.ends) == (record.batch, record.ends)
            _check_next(state, record, fits=same)
            return state._replace(
                last=record,
                begun=None,
                rows=state.rows + record.rows,
                late=state.late + record.late,
                malformed=state.malformed + record.malformed,
            )


def _check_next(state: LedgerState, record: BegunRecord | BatchRecord, *, fits: bool) -> None:
    if state.version is None or record.batch <= state.whole or not fits:
        raise _out_of_order(f"batch {record.batch}")


def _out_of_order(what: str) -> JournalDamaged:
    return JournalDamaged(f"the ledger has {what} at the wrong place")


class QueryReading(NamedTuple):
    """How far a query is, as the stores tell it.

    Attributes:
        state: the content of its ledger.
        lag_bytes: bytes in the sources behind the last batch; None if a source does not tell.
    """

    state: LedgerState
    lag_bytes: int | None = None


class PlannedBatch(NamedTuple):
    """A batch as a checkpoint has planned it.

    Attributes:
        ends: the positions up to which it reads, one for each source.
        watermark: see `BatchRecord`.
    """

    ends: tuple[dict[str, Any], ...]
    watermark: int = 0


class Checkpoint(NamedTuple):
    """What a checkpoint says.

    Attributes:
        version: the version of the query whose checkpoint it is; None if there is none.
        planned: the last batch whose positions it has; None before the first.
        done: the last batch that it counts as done; None before the first.
        ends: the positions of the batches that it still has, by batch.
    """

    version: int | None = None
    planned: int | None = None
    done: int | None = None
    ends: Mapping[int, tuple[dict[str, Any], ...]] = {}


def check_checkpoint(state: LedgerState, found: Checkpoint) -> None:
    """Check that a checkpoint goes on where the ledger ends.

    A process may end between any two of: positions of batch N are in the checkpoint, its beginning
    is in the ledger, its rows in the sinks, its record in the ledger, N is done in the checkpoint.
    So each of them is one ahead of the next at most.

    Raises:
        CheckpointLost: there is none, though batches are in the ledger.
        CheckpointDiverged: it is the checkpoint of another version, or has other batches.
    """
    if state.version is None:
        return
    last = state.whole
    seen = last if state.begun is None else state.begun.batch
    number = state.version.number
    if found.version not in {None, number}:
        raise CheckpointDiverged(
            f"the checkpoint is that of version {found.version}, and version {number} runs"
        )
    if found.planned is None:
        if seen >= 0:
            raise CheckpointLost(f"the ledger has batch {seen}, and there is no checkpoint")
        return
    done = -1 if found.done is None else found.done
    if found.planned < seen:
        raise CheckpointDiverged(
            f"the checkpoint ends with batch {found.planned}, and the ledger with batch {seen}"
        )
    if last < done:
        raise CheckpointDiverged(
            f"batch {done} is done in the checkpoint, and the ledger ends with batch {last}"
        )
    for record in (state.last, state.begun):
        if record is not None and found.ends.get(record.batch, record.ends) != record.ends:
            raise CheckpointDiverged(
                f"checkpoint and ledger have other positions of batch {record.batch}"
            )


def check_repeated(state: LedgerState, batch: BegunRecord) -> None:
    """Check that a batch that is in the ledger, or was begun, reads and gives the same as before.

    Raises:
        CheckpointDiverged: it does not.
    """
    for record in (state.last, state.begun):
        if record is not None and record.batch == batch.batch and record.ends != batch.ends:
            raise CheckpointDiverged(f"batch {batch.batch} reads up to other positions than before")
    begun = state.begun
    if begun is not None and begun.batch == batch.batch and begun.keys != batch.keys:
        raise CheckpointDiverged(
            f"batch {batch.batch} gives rows with other keys than before",
            remedy="A floating-point number decides about its rows or their keys. Take DECIMAL, in "
            "a query with another name and another sink.",
        )


def record_json(record: Record) -> dict[str, Any]:
    """Return a record as JSON values."""
    return record.model_dump(mode="json", exclude_none=True)


def states(records: Iterable[Mapping[str, Any]], state: LedgerState) -> LedgerState:
    """Return the state after some more records. Raises as `LedgerState.after`."""
    for record in records:
        state = state.after(record)
    return state
