"""Know the windows of a query in a resolved plan: Spark has made them arithmetic of times.

The arithmetic is built anew from its time, length and offset, and compared. So another version of
Spark with another arithmetic is refused, and not taken for this one.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

import pyarrow as pa
import pyarrow.compute as pc

from sluice.core.query.arrow.terms import Term

if TYPE_CHECKING:
    from sluice.core.query.arrow.expressions import Value


class Tumbling(NamedTuple):
    """Windows that begin where the last one ends.

    Attributes:
        time: the id of the column of times.
        length, offset: in microseconds.
    """

    time: int
    length: int
    offset: int

    def begins(self, times: Value) -> Value:
        """Return the beginnings of the windows in which times are, in microseconds since 1970."""
        micros = pc.cast(times, pa.int64())
        behind = pc.subtract(micros, self.offset)
        rest = pc.subtract(behind, pc.multiply(pc.divide(behind, self.length), self.length))
        rest = pc.if_else(pc.less(rest, 0), pc.add(rest, self.length), rest)
        return pc.subtract(micros, rest)


def tumbling(term: Term) -> Tumbling | None:
    """Return the windows that an expression makes; None if it makes none, or such as overlap."""
    times = [one for one in term.walk() if one.name == "AttributeReference"]
    rests = [one for one in term.walk() if one.name == "Remainder"]
    if term.name != "CreateNamedStruct" or not times or not rests:
        return None
    (behind, length) = rests[0].parts
    offset = behind.parts[-1] if behind.parts else behind
    if "Literal" not in {length.name} & {offset.name}:
        return None
    found = _SparkWindow(times[0], length, offset)
    if found.term() != term:
        return None
    return Tumbling(times[0].number, int(length.text or 0), int(offset.text or 0))


class _SparkWindow(NamedTuple):
    """Windows as Spark's `TimeWindow` is resolved (`ResolveTimeWindows`)."""

    time: Term
    length: Term
    offset: Term

    def term(self) -> Term:
        kind = self.time.kind
        begin = self._begin()
        end = _whole("Add", begin, self.length)
        edges = [
            Term("KnownNullable", kind, parts=(_converted(one, kind),)) for one in (begin, end)
        ]
        names = [Term("Literal", "string", text=text) for text in ("start", "end")]
        return Term(
            "CreateNamedStruct",
            f"struct<start:{kind},end:{kind}>",
            parts=(names[0], edges[0], names[1], edges[1]),
        )

    def _begin(self) -> Term:
        micros = _converted(self.time, "bigint")
        rest = _whole("Remainder", _whole("Subtract", micros, self.offset), self.length)
        zero = Term("Cast", "bigint", text="ANSI", parts=(Term("Literal", "int", text="0"),))
        is_negative = Term("LessThan", "boolean", parts=(rest, zero))
        behind = Term(
            "CaseWhen", "bigint", parts=(is_negative, _whole("Add", rest, self.length), rest)
        )
        nothing = Term("Literal", "bigint", text="0")
        return _whole("Subtract", _whole("Subtract", micros, behind), nothing)


def _whole(name: str, left: Term, right: Term) -> Term:
    return Term(name, "bigint", text="ANSI", parts=(left, right))


def _converted(term: Term, kind: str) -> Term:
    return Term("PreciseTimestampConversion", kind, parts=(term,))
