"""The ledger of a query: which version runs, which attempt, and which batches are whole.

Records lie beside the first sink. They are what the results can be checked by without Spark: each
batch has the positions up to which it read, and a digest of its rows.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, Any, Literal, NamedTuple

from pydantic import Field, TypeAdapter, ValidationError

from sluice.core.query.plan import QueryPlan
from sluice.core.values.model import Frozen
from sluice.errors import CheckpointDiverged, CheckpointLost, JournalDamaged

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping


class VersionRecord(Frozen):
    """The beginning of a version of the query.

    Attributes:
        number: of the version, from 1.
        plan: the plan of this version.
        begins: the position of each source at which the version begins, as JSON of a position.
    """

    record: Literal["version"] = "version"
    number: int
    plan: QueryPlan
    begins: tuple[dict[str, Any], ...]


class AttemptRecord(Frozen):
    """The beginning of an attempt. Earlier attempts end when they see it.

    Attributes:
        number: of the attempt, from 1 in each ledger.
    """

    record: Literal["attempt"] = "attempt"
    number: int


class BatchRecord(Frozen):
    """A batch whose rows are in all sinks.

    Attributes:
        batch: its number in the version, from 0.
        ends: the position of each source up to which it read, as JSON of a position.
        rows: the number of its rows.
        sha256: the SHA-256 of its rows, as the sinks have them, in their order.
    """

    record: Literal["batch"] = "batch"
    batch: int
    ends: tuple[dict[str, Any], ...]
    rows: int
    sha256: str


class SummaryRecord(Frozen):
    """A record that stands for all before it."""

    record: Literal["summary"] = "summary"
    version: VersionRecord
    attempt: int
    last: BatchRecord | None = None
    rows: int


Record = Annotated[
    VersionRecord | AttemptRecord | BatchRecord | SummaryRecord, Field(discriminator="record")
]

_RECORDS: TypeAdapter[Record] = TypeAdapter(Record)


class LedgerState(NamedTuple):
    """The content of a ledger.

    Attributes:
        version: the version that runs; None before the first.
        attempt: the number of the last attempt; 0 before the first.
        last: the last batch of the version that is whole; None before the first.
        rows: the rows of all versions.
    """

    version: VersionRecord | None = None
    attempt: int = 0
    last: BatchRecord | None = None
    rows: int = 0

    @property
    def summary(self) -> SummaryRecord | None:
        """The record that stands for this state; None before the first version."""
        if self.version is None:
            return None
        return SummaryRecord(
            version=self.version, attempt=self.attempt, last=self.last, rows=self.rows
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
            return LedgerState(record.version, record.attempt, record.last, record.rows)
        case VersionRecord():
            if record.number != (state.version.number if state.version else 0) + 1:
                raise _out_of_order(f"version {record.number}")
            return state._replace(version=record, last=None)
        case AttemptRecord():
            if record.number != state.attempt + 1:
                raise _out_of_order(f"attempt {record.number}")
            return state._replace(attempt=record.number)
        case BatchRecord():
            if state.version is None or record.batch <= (state.last.batch if state.last else -1):
                raise _out_of_order(f"batch {record.batch}")
            return state._replace(last=record, rows=state.rows + record.rows)


def _out_of_order(what: str) -> JournalDamaged:
    return JournalDamaged(f"the ledger has {what} at the wrong place")


class Checkpoint(NamedTuple):
    """What a checkpoint of Spark says.

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

    A process may end between any two of: positions of batch N are in the checkpoint, its rows in
    the sinks, its record in the ledger, N is done in the checkpoint. So each of them is one ahead
    of the next at most.

    Raises:
        CheckpointLost: there is none, though batches are in the ledger.
        CheckpointDiverged: it is the checkpoint of another version, or has other batches.
    """
    if state.version is None:
        if found.version is not None:
            raise CheckpointDiverged("there is a checkpoint, and no ledger beside the first sink")
        return
    last = -1 if state.last is None else state.last.batch
    if found.version is None:
        if last >= 0:
            raise CheckpointLost(f"the ledger has batch {last}, and there is no checkpoint")
        return
    number = state.version.number
    if found.version != number:
        raise CheckpointDiverged(
            f"the checkpoint is that of version {found.version}, and version {number} runs"
        )
    planned = -1 if found.planned is None else found.planned
    done = -1 if found.done is None else found.done
    if planned < last:
        raise CheckpointDiverged(
            f"the checkpoint ends with batch {planned}, and the ledger with batch {last}"
        )
    if last < done:
        raise CheckpointDiverged(
            f"batch {done} is done in the checkpoint, and the ledger ends with batch {last}"
        )
    if state.last is not None and last in found.ends and found.ends[last] != state.last.ends:
        raise CheckpointDiverged(f"checkpoint and ledger have other positions of batch {last}")


def check_repeated(state: LedgerState, batch: BatchRecord) -> None:
    """Check that a batch that is in the ledger was read up to the same positions.

    Raises:
        CheckpointDiverged: it was not.
    """
    last = state.last
    if last is not None and last.batch == batch.batch and last.ends != batch.ends:
        raise CheckpointDiverged(f"batch {batch.batch} reads up to other positions than before")


def record_json(record: Record) -> dict[str, Any]:
    """Return a record as JSON values."""
    return record.model_dump(mode="json", exclude_none=True)


def states(records: Iterable[Mapping[str, Any]], state: LedgerState) -> LedgerState:
    """Return the state after some more records. Raises as `LedgerState.after`."""
    for record in records:
        state = state.after(record)
    return state
