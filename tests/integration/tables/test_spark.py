"""`spark.read` and `spark.readStream` with the format `sluice`, on a real store."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

from support.command.spark import Spark, SparkFailed
from support.store.clicks import DDL, KEYS, Clicks
from support.until import PATIENT

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from localstore import Standalone

READ = """
df = spark.read.format("sluice").options(**options).schema(ddl).load()
result = [row.asDict() for row in df.collect()]
"""

WRITE = """
df = spark.readStream.format("sluice").options(**options).schema(ddl).load()
query = (df.writeStream.format("parquet").option("path", out).option("checkpointLocation", at)
         .trigger(availableNow=True).start())
query.awaitTermination()
result = [one["numInputRows"] for one in query.recentProgress]
"""

ROWS = """
result = [row.asDict() for row in spark.read.schema(ddl).parquet(out).collect()]
"""


@pytest.fixture(scope="module")
def spark(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Spark]:
    """Yield a session that the tests of the module share."""
    environment = {"SLUICE_STORE_TIMEOUT": str(PATIENT.call)}
    with Spark(tmp_path_factory.mktemp("spark"), environment) as made:
        yield made


@pytest.fixture
def options(standalone: Standalone, clicks: Clicks) -> dict[str, str]:
    """Return the options for the stream of clicks."""
    return {"store": standalone.controller_uri, "stream": str(clicks.name), "format": "Json"}


class Query:
    """A query that adds the stream's rows to files, run after run from its checkpoint.

    Args:
        spark: the session.
        folder: the folder of its files and its checkpoint.
        options: the source's options.
    """

    def __init__(self, spark: Spark, folder: Path, options: dict[str, str]) -> None:
        self.spark = spark
        self._given = {
            "out": str(folder / "out"),
            "at": str(folder / "at"),
            "ddl": DDL,
            "options": options,
        }

    def run(self, **more: str) -> list[int]:
        """Read what the stream has; return the number of rows of each batch."""
        given = self._given | {"options": {**self._given["options"], **more}}  # type: ignore[dict-item]
        counts: list[int] = self.spark.run(WRITE, **given)
        return counts

    def rows(self) -> list[dict[str, Any]]:
        """Return all rows so far."""
        found: list[dict[str, Any]] = self.spark.run(ROWS, **self._given)
        return found


def test_a_batch_reads_what_the_stream_has(
    spark: Spark, clicks: Clicks, options: dict[str, str]
) -> None:
    """All rows of a scaled stream, each once; a position of one read begins another."""
    clicks.write(20)
    clicks.split()
    clicks.write(20)
    rows = spark.run(READ, options=options, ddl=DDL)
    clicks.assert_exact(rows, ordered=False)
    assert {row["_pointer"].partition(":")[0].rpartition("/")[0] for row in rows} == {
        str(clicks.name)
    }
    none = spark.run(READ, options={**options, "startingPosition": "Tail"}, ddl=DDL)
    assert none == []
    count = spark.run(
        'result = spark.read.format("sluice").options(**options).load().count()',
        options={key: options[key] for key in ("store", "stream")},
    )
    assert count == len(rows)


def test_a_query_goes_on_from_its_checkpoint(
    spark: Spark, clicks: Clicks, options: dict[str, str], tmp_path: Path
) -> None:
    """Over a split and a merge of the stream, with another limit each time: no row twice or lost.

    A limit holds for each batch.
    """
    query = Query(spark, tmp_path, options)
    clicks.write(20)
    assert sum(query.run()) == 20 * KEYS
    clicks.split()
    clicks.write(20)
    counts = query.run(maxEventsPerTrigger="100")
    assert max(counts) <= 100
    assert sum(counts) == 20 * KEYS
    clicks.merge()
    clicks.write(20)
    assert len(query.run(maxBytesPerTrigger="5000")) > 3
    clicks.write(1)
    query.run()
    assert sum(query.run()) == 0
    clicks.assert_exact(query.rows(), ordered=False)
