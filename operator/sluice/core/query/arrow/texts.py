"""Write rows of Arrow as Spark writes them: as JSON, in UTC, and with keys as texts."""

from __future__ import annotations

import json
import re
from itertools import repeat
from typing import TYPE_CHECKING, Any, Final

import pyarrow as pa
import pyarrow.compute as pc

from sluice.core.query.arrow.kinds import TIMES, WHOLE, arrow_type, digits
from sluice.core.query.rows import ResultRow

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Sequence

    from sluice.core.query.arrow.expressions import Value
    from sluice.core.query.arrow.program import ProgramColumn, StepRows

_CONTROLS: Final = re.compile(r"[\x00-\x07\x0b\x0e-\x1f]")
_SCIENTIFIC_FROM: Final = 1e7
_PLAIN_FROM: Final = 1e-3


def result_rows(
    columns: Sequence[ProgramColumn], keys: Sequence[str], rows: StepRows
) -> list[ResultRow]:
    """Return rows as events.

    Args:
        columns: the columns of the result.
        keys: the names of those that make the key. One column is written as a text, several as
            JSON.
        rows: the rows.
    """
    if not rows.size:
        return []
    texts = {one.name: _texts(one, rows) for one in columns}
    events = _objects(texts, [one.name for one in columns])
    if not keys:
        found: Iterable[str] = repeat("", rows.size)
    elif len(keys) == 1:
        (column,) = (one for one in columns if one.name == keys[0])
        found = _plain(column, _array(rows.columns[column.number], rows.size))
    else:
        found = _objects(texts, keys)
    return list(map(ResultRow, found, events))


def _objects(texts: dict[str, list[str]], names: Sequence[str]) -> Iterable[str]:
    """Yield rows as objects of JSON, with these columns."""
    form = "{" + ",".join(quoted(name).replace("%", "%%") + ":%s" for name in names) + "}"
    return (form % values for values in zip(*(texts[name] for name in names), strict=True))


def _texts(column: ProgramColumn, rows: StepRows) -> list[str]:
    """Return the values of a column as JSON."""
    values = _array(rows.columns[column.number], rows.size)
    if column.length is None:
        return _json(column.kind, values)
    kind = arrow_type(column.kind)
    begins = _json(column.kind, pc.cast(values, kind))
    ends = _json(column.kind, pc.cast(pc.add(values, column.length), kind))
    pairs = zip(begins, ends, strict=True)
    return [f'{{"start":{begin},"end":{end}}}' for begin, end in pairs]


def _array(value: Value, count: int) -> Value:
    return pa.repeat(value, count) if isinstance(value, pa.Scalar) else value


def _json(kind: str, values: Value) -> list[str]:
    if kind == "boolean" or kind in WHOLE:
        return ["null" if one is None else one for one in _written(values)]
    if kind == "string":
        return _each(values.to_pylist(), quoted)
    if kind == "double":
        return _each(values.to_pylist(), double)
    if kind in TIMES:
        return _each(_written(values), lambda one: f'"{one.replace(" ", "T")}"')
    if digits(kind) is not None:
        return _each(values.to_pylist(), str)  # Java and Python write decimals in one way
    return _each(_written(values), lambda one: f'"{one}"')  # a date


def _written(values: Value) -> list[str | None]:
    """Return values as Arrow writes them, and years of five digits with a sign, as Java does."""
    texts: list[str | None] = pc.cast(values, pa.string()).to_pylist()
    if not pa.types.is_temporal(values.type):
        return texts
    return [f"+{one}" if one and one[0] != "-" != one[4] else one for one in texts]


def _each(values: Iterable[Any], write: Callable[[Any], str]) -> list[str]:
    return ["null" if one is None else write(one) for one in values]


def _plain(column: ProgramColumn, values: Value) -> list[str]:
    """Return the values of a column as texts: those of null are empty."""
    if column.kind == "string":
        return [one or "" for one in values.to_pylist()]
    texts = [one or "" for one in _written(values)]
    if column.kind not in TIMES:
        return texts
    return [one.removesuffix("Z").rstrip("0").rstrip(".") for one in texts]


def quoted(text: str) -> str:
    """Return a text as Jackson writes it, with capital letters in numbers of characters."""
    if _CONTROLS.search(text) is None:
        return json.dumps(text, ensure_ascii=False)
    parts = _CONTROLS.split(text)
    found = _CONTROLS.findall(text)
    whole = json.dumps(parts[0], ensure_ascii=False)[1:-1]
    for control, part in zip(found, parts[1:], strict=True):
        whole += f"\\u{ord(control):04X}{json.dumps(part, ensure_ascii=False)[1:-1]}"
    return f'"{whole}"'


def double(value: float) -> str:
    """Return a number as Java's `Double.toString` writes it, with the fewest digits that tell it.

    Before version 19, Java wrote more digits of some.
    """
    if value != value:  # noqa: PLR0124 - NaN
        return '"NaN"'
    if value in {float("inf"), float("-inf")}:
        return '"Infinity"' if value > 0 else '"-Infinity"'
    if value == 0 or _PLAIN_FROM <= abs(value) < _SCIENTIFIC_FROM:
        return repr(value)
    sign, numerals, exponent = _parts(f"{value!r}")
    if len(numerals) == 1:  # Java takes the nearest number of two digits
        sign, numerals, exponent = _parts(f"{value:.1e}")
    return f"{sign}{numerals[0]}.{numerals[1:] or '0'}E{exponent}"


def _parts(text: str) -> tuple[str, str, int]:
    """Return sign, digits, and the exponent of the first digit of a number."""
    mantissa, _, power = text.lstrip("-").partition("e")
    whole, _, rest = mantissa.partition(".")
    rest = "" if rest == "0" else rest
    numerals = (whole + rest).lstrip("0")
    if power:
        exponent = int(power)
    elif whole.strip("0"):
        exponent = len(whole) - 1
    else:
        exponent = -(len(rest) - len(rest.lstrip("0")) + 1)
    return "-" if text.startswith("-") else "", numerals.rstrip("0") or "0", exponent
