"""What a copy that appends to a stream writes down of it, as its journal tells.

A copy appends in attempts. An attempt stages bytes and opens transactions to put them under; it is
given up when the store has dropped one of those before its commit was decided. Records of an
attempt that is not the latest count for nothing, and so do all records after an abort.
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any, NamedTuple

from sluice.core.values.model import KeyRange

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence


class Opened(NamedTuple):
    """A transaction: its key, and the ids of the segments that it lies beside, in key order."""

    key: str
    segments: tuple[int, ...]


@dataclass(frozen=True, slots=True)
class Roll:
    """How far an append has come.

    Attributes:
        attempt: which one this is, from 0.
        layout: the key ranges that the target had before it was scaled to be appended to.
        transactions: by generation of the plan.
        decided: whether they are to be committed.
        committed: generations that are.
        aborted: whether the copy is to end without them.
        former: per attempt before, the ids of segments beside which it has staged.
    """

    attempt: int = 0
    layout: tuple[KeyRange, ...] | None = None
    transactions: Mapping[int, Opened] = field(default_factory=dict)
    decided: bool = False
    committed: frozenset[int] = frozenset()
    aborted: bool = False
    former: tuple[tuple[int, ...], ...] = ()


def layout_record(attempt: int, ranges: Iterable[KeyRange]) -> dict[str, Any]:
    """The key ranges that the target is given back."""
    keys = [[one.low, one.high] for one in ranges]
    return {"record": "layout", "attempt": attempt, "keys": keys}


def transaction_record(attempt: int, generation: int, opened: Opened) -> dict[str, Any]:
    """A transaction for a generation; of several the first holds."""
    return {
        "record": "transaction",
        "attempt": attempt,
        "generation": generation,
        "key": opened.key,
        "segments": list(opened.segments),
    }


def attempt_record(attempt: int, segments: Iterable[int], *, keep: bool) -> dict[str, Any]:
    """Begins an attempt: beside which segments it stages, and whether transactions are kept."""
    return {"record": "attempt", "attempt": attempt, "segments": list(segments), "keep": keep}


def decision_record(attempt: int) -> dict[str, Any]:
    """All is under transactions, and these are to be committed."""
    return {"record": "decision", "attempt": attempt}


def committed_record(generations: Iterable[int]) -> dict[str, Any]:
    """These generations are appended."""
    return {"record": "committed", "generations": list(generations)}


def aborted_record() -> dict[str, Any]:
    """Nothing is appended. It counts only where no commit was decided before, and none has been."""
    return {"record": "aborted"}


RECORDS = ("layout", "transaction", "attempt", "decision", "committed", "aborted")


def after(  # noqa: PLR0911 - one case for each record
    roll: Roll, bound: tuple[int, ...] | None, record: Mapping[str, Any]
) -> tuple[Roll, tuple[int, ...] | None]:
    """What holds after a record: the append, and beside which segments is staged.

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
    """Numbers as they stand in a record; anything else is damage."""
    numbers = [value for value in values if type(value) is int and value >= 0]
    if len(numbers) != len(values):
        raise ValueError(f"{values!r} are no numbers of a record")
    return numbers
