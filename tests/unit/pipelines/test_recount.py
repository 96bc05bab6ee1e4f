"""The row-by-row comparison of the results of two engines."""

from __future__ import annotations

from typing import TYPE_CHECKING

import duckdb
import pytest

from sluice.errors import InvalidQuery
from sluice.pipelines.query.duck_sql import quoted
from sluice.pipelines.query.recount import EXPECTED, differences, source_schema
from support.engine.queries import source

if TYPE_CHECKING:
    from collections.abc import Sequence


def compared(
    computed: Sequence[str], there: Sequence[str], kinds: Sequence[tuple[str, str]]
) -> tuple[int, int]:
    """Return the numbers of missing and of excess rows between two lists."""
    with duckdb.connect() as database:
        for table, rows, at in ((EXPECTED, computed, 0), ("there", there, 1)):
            columns = ", ".join(f"x{place} {kind[at]}" for place, kind in enumerate(kinds))
            database.execute(f"CREATE TABLE {quoted(table)} ({columns})")
            for row in rows:
                database.execute(f"INSERT INTO {quoted(table)} VALUES ({row})")  # noqa: S608 - ours
        columns = [(f"x{place}", *kind) for place, kind in enumerate(kinds)]
        missing, extra, examples = differences(database, "there", columns)
        assert all(one[:8] in {'- {"x0":', '+ {"x0":'} for one in examples)
        assert len(examples) == min(missing, 5) + min(extra, 5)
        return missing, extra


K_V = [("VARCHAR", "VARCHAR"), ("DOUBLE", "DOUBLE")]


@pytest.mark.parametrize(
    ("computed", "there", "kinds", "found"),
    [
        (["'a', 1"], ["'a', 1"], K_V, (0, 0)),
        (["'a', 1", "'a', 1"], ["'a', 1"], K_V, (1, 0)),
        (["'a', 1"], ["'a', 1", "'a', 1", "'b', 1"], K_V, (0, 2)),
        (["'a', 0.1 + 0.2e0"], ["'a', 0.3e0"], K_V, (0, 0)),
        (["'a', 12345678902"], ["'a', 12345678901"], K_V, (1, 1)),
        (["'a', 0.0", "NULL, NULL"], ["'a', -0.0e0", "NULL, NULL"], K_V, (0, 0)),
        (["'a', NULL"], ["'a', 0"], K_V, (1, 1)),
        (["3.4"], ["3"], [("DOUBLE", "BIGINT")], (1, 1)),
        (["3.4"], ["3"], [("DECIMAL(3,1)", "BIGINT")], (1, 1)),
        (["3"], ["3"], [("HUGEINT", "BIGINT")], (0, 0)),
        (["2.57"], ["2.57"], [("DOUBLE", "DECIMAL(9,2)")], (0, 0)),
        (["'a'"] * 7, [], [("VARCHAR", "VARCHAR")], (7, 0)),
    ],
)
def test_rows_are_compared_with_how_often_they_are_there(
    computed: list[str], there: list[str], kinds: list[tuple[str, str]], found: tuple[int, int]
) -> None:
    """Only the last digits of floating-point numbers may differ."""
    assert compared(computed, there, kinds) == found


def test_a_source_has_its_columns_or_those_of_its_format() -> None:
    """A schema may have any of Spark's words for a type that Arrow has."""
    schema = source_schema(source(columns="k STRING, n LONG"))
    assert schema is not None
    assert schema.names == ["k", "n"]
    assert source_schema(source(columns=None)) is None


def test_a_type_that_arrow_lacks_is_refused_with_its_source() -> None:
    """The field names the source, and not the result."""
    with pytest.raises(InvalidQuery, match="only Spark knows") as caught:
        source_schema(source(columns="k STRING, i INTERVAL DAY"))
    assert caught.value.field == "spec.sources[clicks].schema"
    assert caught.value.remedy
