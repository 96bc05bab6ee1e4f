"""Read columns, as Spark or a user writes them: `start TIMESTAMP,n BIGINT NOT NULL`."""

from __future__ import annotations

import re
from typing import Final, NamedTuple

import pyarrow as pa

from sluice.errors import InvalidSpec

_SCALARS: Final = {
    "BOOLEAN": pa.bool_(),
    "TINYINT": pa.int8(),
    "SMALLINT": pa.int16(),
    "INT": pa.int32(),
    "BIGINT": pa.int64(),
    "FLOAT": pa.float32(),
    "DOUBLE": pa.float64(),
    "STRING": pa.string(),
    "BINARY": pa.binary(),
    "DATE": pa.date32(),
    "TIMESTAMP": pa.timestamp("us", "UTC"),
    "TIMESTAMP_NTZ": pa.timestamp("us"),
}
"""The types of Arrow, by those of Spark that have no parameters."""

_ALIASES: Final = {
    "BYTE": "TINYINT",
    "SHORT": "SMALLINT",
    "INTEGER": "INT",
    "LONG": "BIGINT",
    "REAL": "FLOAT",
    "TIMESTAMP_LTZ": "TIMESTAMP",
    "DEC": "DECIMAL",
    "NUMERIC": "DECIMAL",
    "CHARACTER": "CHAR",
}
"""Other words for Spark's types: the rule `type` of its grammar, SqlBaseParser.g4."""

_USUAL_DECIMAL: Final = (10, 0)
"""Precision and scale of a DECIMAL without any, as Spark's `DecimalType.USER_DEFAULT`."""

_TOKEN: Final = re.compile(r"\s*(`(?:[^`]|``)*`|'(?:[^'\\]|\\.)*'|[<>(),:]|[^\s`<>(),:']+)")
_DEEPEST: Final = 32


class ResultColumn(NamedTuple):
    """A column of a result.

    Attributes:
        name: its name.
        type: its type, as Spark writes it.
        kind: its type in Arrow.
    """

    name: str
    type: str
    kind: pa.DataType


def result_columns(ddl: str) -> tuple[ResultColumn, ...]:
    """Read the columns of a result or a source.

    Args:
        ddl: the columns as Spark's `StructType.toDDL` writes them, or as Spark reads them.

    Raises:
        InvalidSpec: the text is something else. Any client may write a ledger.
    """
    reader = _Reader(ddl)
    columns = []
    while not reader.is_done:
        name = reader.name()
        reader.skip(":")
        begin = reader.at
        kind = reader.kind(0)
        columns.append(ResultColumn(name, reader.text(begin), kind))
        reader.rest()
    return tuple(columns)


class _Reader:
    """A reader of the words of a text."""

    def __init__(self, ddl: str) -> None:
        self._words: list[str] = []
        at = 0
        while at < len(ddl.rstrip()):
            found = _TOKEN.match(ddl, at)
            if found is None:
                raise _wrong()
            self._words.append(found[1])
            at = found.end()
        self.at = 0

    @property
    def is_done(self) -> bool:
        """Whether all words were read."""
        return self.at == len(self._words)

    def text(self, begin: int) -> str:
        """Return the words that were read since an index, without blanks."""
        return "".join(self._words[begin : self.at])

    def name(self) -> str:
        """Read a name, which may be quoted."""
        word = self._next()
        return word[1:-1].replace("``", "`") if word.startswith("`") else word

    def kind(self, depth: int) -> pa.DataType:
        """Read a type."""
        if depth > _DEEPEST:
            raise _wrong()
        word = self._next().upper()
        word = _ALIASES.get(word, word)
        if (scalar := _SCALARS.get(word)) is not None:
            return scalar
        if word == "DECIMAL":
            return self._decimal()
        if word in {"CHAR", "VARCHAR"}:
            self._expect("(")
            self._next()
            self._expect(")")
            return pa.string()
        self._expect("<")
        made: pa.DataType
        if word == "ARRAY":
            made = pa.list_(self.kind(depth + 1))
        elif word == "MAP":
            key = self.kind(depth + 1)
            self._expect(",")
            made = pa.map_(key, self.kind(depth + 1))
        elif word == "STRUCT":
            made = pa.struct(self._fields(depth + 1))
        else:
            raise _wrong()
        self._expect(">")
        return made

    def skip(self, word: str) -> None:
        """Read a word if it is the next one."""
        if not self.is_done and self._peek() == word:
            self.at += 1

    def rest(self) -> None:
        """Read what may follow a type, up to the next column."""
        while not self.is_done and self._next() != ",":
            pass

    def _decimal(self) -> pa.DataType:
        if self.is_done or self._peek() != "(":
            return pa.decimal128(*_USUAL_DECIMAL)
        self._expect("(")
        precision, scale = self._next(), "0"
        if self._peek() == ",":
            self._next()
            scale = self._next()
        self._expect(")")
        try:
            return pa.decimal128(int(precision), int(scale))
        except (ValueError, OverflowError):
            raise _wrong() from None

    def _fields(self, depth: int) -> list[tuple[str, pa.DataType]]:
        fields = []
        while self._peek() != ">":
            name = self.name()
            self.skip(":")
            fields.append((name, self.kind(depth)))
            while self._peek() not in {",", ">"}:  # NOT NULL, COMMENT '...'
                self._next()
            if self._peek() == ",":
                self._next()
        return fields

    def _peek(self) -> str:
        if self.is_done:
            raise _wrong()
        return self._words[self.at]

    def _next(self) -> str:
        word = self._peek()
        self.at += 1
        return word

    def _expect(self, word: str) -> None:
        if self._next() != word:
            raise _wrong()


def _wrong() -> InvalidSpec:
    return InvalidSpec(
        "the columns of the result are more than its status holds, or of types that Arrow lacks",
        field="format",
        remedy="Take format=json, or cast columns of other types to STRING in the query.",
    )
