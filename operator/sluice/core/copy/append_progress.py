"""The progress of a copy that appends to a stream, as its journal records it.

A copy appends in attempts. An attempt stages bytes, and opens transactions to merge them into. A
new attempt begins if the store has dropped a transaction before its commit was decided, or if bytes
were staged in the wrong place. Records of an attempt other than the latest are ignored, and so are
all records after an abort.
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any, NamedTuple

from sluice.core.values.model import KeyRange

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence


class Opened(NamedTuple):
    """A transaction: its key, and the ids of the target's segments beside which its own lie.

    The ids are in key order.
    """

    key: str
    segments: tuple[int, ...]


@dataclass(frozen=True, slots=True)
class Roll:
    """The progress of an append.

    Attributes:
        attempt: the number of the latest attempt, from 0.
        layout: the key ranges that the target had before the append scaled it.
        transactions: the attempt's transactions, by generation of the plan.
        decided: whether the transactions are to be committed.
        committed: the generations that are committed.
        aborted: whether the copy was aborted, so that nothing is to be committed.
        former: for each earlier attempt, the ids of the segments beside which it staged.
    """

    attempt: int = 0
    layout: tuple[KeyRange, ...] | None = None
    transactions: Mapping[int, Opened] = field(default_factory=dict)
    decided: bool = False
    committed: frozenset[int] = frozenset()
    aborted: bool = False
    former: tuple[tuple[int, ...], ...] = ()


def layout_record(attempt: int, ranges: Iterable[KeyRange]) -> dict[str, Any]:
    """Return the record of the key ranges that the target is to get back."""
    keys = [[one.low, one.high] for one in ranges]
    return {"record": "layout", "attempt": attempt, "keys": keys}


def transaction_record(attempt: int, generation: int, opened: Opened) -> dict[str, Any]:
    """Return the record of a generation's transaction; of several records the first counts."""
    return {
        "record": "transaction",
        "attempt": attempt,
        "generation": generation,
        "key": opened.key,
        "segments": list(opened.segments),
    }


def attempt_record(attempt: int, segments: Iterable[int], *, keep: bool) -> dict[str, Any]:
    """Return the record that begins another attempt.

    Args:
        attempt: its number.
        segments: ids of the target's segments beside which it stages.
        keep: whether it keeps the transactions of the attempt before.
    """
    return {"record": "attempt", "attempt": attempt, "segments": list(segments), "keep": keep}


def decision_record(attempt: int) -> dict[str, Any]:
    """Return the record that all bytes are in transactions, which are to be committed."""
    return {"record": "decision", "attempt": attempt}


def committed_record(generations: Iterable[int]) -> dict[str, Any]:
    """Return the record that these generations are appended."""
    return {"record": "committed", "generations": list(generations)}


def aborted_record() -> dict[str, Any]:
    """Return the record of an abort. It is ignored if a commit was decided or made before."""
    return {"record": "aborted"}


RECORDS = ("layout", "transaction", "attempt", "decision", "committed", "aborted")


def after(  # noqa: PLR0911 - one case for each record
    roll: Roll, bound: tuple[int, ...] | None, record: Mapping[str, Any]
) -> tuple[Roll, tuple[int, ...] | None]:
    """Apply a record.

    Args:
        roll: the progress before the record.
        bound: ids of the segments beside which bytes are staged, before the record.
        record: the record.

    Returns:
        Both after the record.

    Raises:
        ValueError, TypeError, KeyError: the record is damaged.
    """
    if roll.aborted:
        return roll, bound
    match record:
        case {"record": "aborted"} if not (roll.decided or roll.committed):
            return replace(roll, aborted=True), bound
        case {"record": "committed", "generations": done}:
            return replace(roll, committed=roll.committed | set(_numbers(done))), bound
        case {"record": "attempt", "attempt": number, "segments": ids, "keep": keep} if (
            number == roll.attempt + 1 and bound is not None and not (keep and roll.decided)
        ):
            begun = replace(roll, attempt=number, former=(*roll.former, bound))
            if not keep:
                begun = replace(begun, layout=None, transactions={}, decided=False)
            return begun, tuple(_numbers(ids))
        case {"attempt": number} if number != roll.attempt or roll.decided:
            return roll, bound
        case {"record": "layout", "keys": keys} if roll.layout is None:
            ranges = tuple(KeyRange(low=low, high=high) for low, high in keys)
            return replace(roll, layout=ranges), bound
        case {"record": "transaction", "generation": number, "key": str(key), "segments": ids} if (
            number not in roll.transactions
        ):
            opened = Opened(key, tuple(_numbers(ids)))
            return replace(roll, transactions={**roll.transactions, number: opened}), bound
        case {"record": "decision"}:
            return replace(roll, decided=True), bound
        case _:
            return roll, bound


def _numbers(values: Sequence[object]) -> list[int]:
    """Return a record's list of numbers, or raise ValueError if it is damaged."""
    numbers = [value for value in values if type(value) is int and value >= 0]
    if len(numbers) != len(values):
        raise ValueError(f"{values!r} are no numbers of a record")
    return numbers
