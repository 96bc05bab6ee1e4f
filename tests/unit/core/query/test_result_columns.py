"""Columns are read from the DDL text that Spark or a user writes."""

from __future__ import annotations

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from sluice.core.query.result_columns import result_columns
from sluice.errors import InvalidSpec

TIME = pa.timestamp("us", "UTC")

READ = {
    "start TIMESTAMP,k STRING,n BIGINT NOT NULL,mean DOUBLE": [
        ("start", "TIMESTAMP", TIME),
        ("k", "STRING", pa.string()),
        ("n", "BIGINT", pa.int64()),
        ("mean", "DOUBLE", pa.float64()),
    ],
    "`a b``c` DECIMAL(12,2),d DATE": [
        ("a b`c", "DECIMAL(12,2)", pa.decimal128(12, 2)),
        ("d", "DATE", pa.date32()),
    ],
    "xs ARRAY<INT> NOT NULL COMMENT 'a, b',b BOOLEAN": [
        ("xs", "ARRAY<INT>", pa.list_(pa.int32())),
        ("b", "BOOLEAN", pa.bool_()),
    ],
    "w STRUCT<start: TIMESTAMP, tags: MAP<STRING, ARRAY<BINARY>> NOT NULL>": [
        (
            "w",
            "STRUCT<start:TIMESTAMP,tags:MAP<STRING,ARRAY<BINARY>>NOTNULL>",
            pa.struct([("start", TIME), ("tags", pa.map_(pa.string(), pa.list_(pa.binary())))]),
        ),
    ],
    "c CHAR(3),v VARCHAR(9),s SMALLINT,t TINYINT,f FLOAT,z TIMESTAMP_NTZ": [
        ("c", "CHAR(3)", pa.string()),
        ("v", "VARCHAR(9)", pa.string()),
        ("s", "SMALLINT", pa.int16()),
        ("t", "TINYINT", pa.int8()),
        ("f", "FLOAT", pa.float32()),
        ("z", "TIMESTAMP_NTZ", pa.timestamp("us")),
    ],
    "a LONG, b integer, c Short, d byte, e REAL, f TIMESTAMP_LTZ, g CHARACTER(2)": [
        ("a", "LONG", pa.int64()),
        ("b", "integer", pa.int32()),
        ("c", "Short", pa.int16()),
        ("d", "byte", pa.int8()),
        ("e", "REAL", pa.float32()),
        ("f", "TIMESTAMP_LTZ", TIME),
        ("g", "CHARACTER(2)", pa.string()),
    ],
    "a DECIMAL, b DEC(5), c: NUMERIC(7, 3) NOT NULL": [
        ("a", "DECIMAL", pa.decimal128(10, 0)),
        ("b", "DEC(5)", pa.decimal128(5, 0)),
        ("c", "NUMERIC(7,3)", pa.decimal128(7, 3)),
    ],
    "w STRUCT<a INT, b: ARRAY<STRUCT<c STRING NOT NULL>>>": [
        (
            "w",
            "STRUCT<aINT,b:ARRAY<STRUCT<cSTRINGNOTNULL>>>",
            pa.struct(
                [("a", pa.int32()), ("b", pa.list_(pa.struct([("c", pa.string())])))],
            ),
        ),
    ],
    "e STRUCT<>": [("e", "STRUCT<>", pa.struct([]))],
    "": [],
}


@pytest.mark.parametrize("ddl", READ)
def test_columns_are_read(ddl: str) -> None:
    """Names may be quoted, and types may be nested."""
    assert [tuple(one) for one in result_columns(ddl)] == READ[ddl]


@pytest.mark.parametrize(
    "ddl",
    [
        "n",
        "n WHAT",
        "n ARRAY<INT",
        "n DECIMAL(999,0)",
        "n DECIMAL(a,b)",
        "n DECIMAL(",
        "n DECIMAL()",
        "n DECIMAL(5,",
        "n DECIMAL(99999999999,0)",
        "`n INT",
        "n MAP<INT>",
    ],
)
def test_other_texts_are_refused(ddl: str) -> None:
    """An invalid text raises InvalidSpec: any client may have written the ledger."""
    with pytest.raises(InvalidSpec):
        result_columns(ddl)


@given(st.text("nINT <>(),:`'ARYSTUC\\", max_size=40) | st.just("x " + "ARRAY<" * 5000))
def test_no_text_does_harm(ddl: str) -> None:
    """Any text has columns or raises InvalidSpec."""
    try:
        columns = result_columns(ddl)
    except InvalidSpec:
        return
    assert all(one.name is not None for one in columns)
