"""`spark.read` and `spark.readStream` with the format `sluice`, on a real store."""

from __future__ import annotations

import json
from collections import defaultdict
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pytest

import sluice
from sluice.config import Settings
from sluice.core.values.model import StoreAddress, StreamName
from sluice.stores.connect import connect
from sluice.stores.credentials import Credentials
from support.archiving.archiving import archive_in
from support.command.spark import Spark, SparkFailed
from support.store.clicks import DDL, KEYS, SCHEMA, Clicks, digest
from support.until import PATIENT, until

if TYPE_CHECKING:
    from collections.abc import Iterator

    from localstore import Standalone
    from sluice.stores.base import Store

pytestmark = pytest.mark.exhaustive

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

TABLE = """
import pyarrow
rows = spark.read.schema(ddl).parquet(out).toArrow()
with pyarrow.ipc.new_file(file, rows.schema) as opened:
    opened.write_table(rows)
"""


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return the folder of Spark's events and of `secrets`."""
    made = tmp_path_factory.mktemp("spark")
    for name in ("events", "secrets"):
        (made / name).mkdir()
    return made


@pytest.fixture(scope="module")
def spark(folder: Path) -> Iterator[Spark]:
    """Yield a session that the module's tests share."""
    environment = {
        "SLUICE_STORE_TIMEOUT": str(PATIENT.call),
        "SLUICE_CREDENTIALS_DIR": str(folder / "secrets"),
    }
    logging = {"spark.eventLog.enabled": "true", "spark.eventLog.dir": str(folder / "events")}
    with Spark(folder, environment, logging) as made:
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
        """Read the stream's present events. Return the number of rows of each batch."""
        given = self._given | {"options": {**self._given["options"], **more}}  # type: ignore[dict-item]
        counts: list[int] = self.spark.run(WRITE, **given)
        return counts

    def table(self) -> pa.Table:
        """Return all rows so far, as an Arrow table."""
        file = Path(self._given["out"]).with_suffix(".arrow")
        self.spark.run(TABLE, file=str(file), **self._given)
        with pa.ipc.open_file(file) as opened:
            return opened.read_all().cast(SCHEMA)

    def rows(self) -> list[dict[str, Any]]:
        """Return all rows so far."""
        found: list[dict[str, Any]] = self.spark.run(ROWS, **self._given)
        return found


def test_a_batch_reads_what_the_stream_has(
    spark: Spark, clicks: Clicks, options: dict[str, str]
) -> None:
    """A batch reads each event of a scaled stream once. From the tail it reads none."""
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
    """Over a split, a merge and changed limits, no row is lost or repeated.

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


PROGRESS = """
df = spark.readStream.format("sluice").options(**options).schema(ddl).load()
query = (df.writeStream.format("noop").option("checkpointLocation", at)
         .trigger(availableNow=True).start())
query.awaitTermination()
import pyspark_sluice
last = query.lastProgress
result = [lag._asdict() for lag in pyspark_sluice.lag_of(last)], last.sources[0].endOffset
"""


def test_the_progress_has_the_lag(
    spark: Spark, clicks: Clicks, options: dict[str, str], tmp_path: Path
) -> None:
    """The progress has the bytes up to the stream's tail, and positions as JSON.

    The last batch of a run has read everything, so its lag is 0.
    """
    clicks.write(5)
    lags, end = spark.run(PROGRESS, options=options, ddl=DDL, at=str(tmp_path / "at"))
    assert lags == [{"stream": str(clicks.name), "bytes": 0}]
    assert json.loads(end)["stream"] == str(clicks.name)
    with sluice.open(options["store"], options["stream"]) as stream:
        assert stream.to_arrow(start=end).num_rows == 0
        assert json.loads(end) == stream.tail().to_json()


def test_truncated_events_end_a_query(
    spark: Spark, clicks: Clicks, options: dict[str, str], tmp_path: Path
) -> None:
    """The error names segment and offset. No later row is written."""
    query = Query(spark, tmp_path, options)
    clicks.write(5)
    query.run()
    read = clicks.cut()[0]
    clicks.write(6)
    clicks.truncate()
    with pytest.raises(SparkFailed, match=rf"segment 0 of .* has no events from offset {read} on"):
        query.run()
    clicks.written = defaultdict(int, dict.fromkeys(clicks.written, 5))
    clicks.assert_exact(query.rows(), ordered=False)


def test_malformed_events_are_rescued_by_a_column(
    spark: Spark, clicks: Clicks, options: dict[str, str]
) -> None:
    """Without the column, the query fails with the event's pointer."""
    clicks.write(2)
    clicks.write_raw(b'{"k": 1}')
    with pytest.raises(SparkFailed, match=r"the event .*/clicks/0.#epoch.0:\d+-16 does not fit"):
        spark.run(READ, options=options, ddl=DDL)
    ddl = f"{DDL}, _malformed BINARY"
    rows = spark.run(READ, options={**options, "malformed": "Rescue"}, ddl=ddl)
    assert len(rows) == 2 * KEYS + 1
    (rescued,) = [row for row in rows if row["_malformed"] is not None]
    assert (rescued["k"], rescued["n"], rescued["_segment"]) == (None, None, 0)
    dropped = spark.run(READ, options={**options, "malformed": "Drop"}, ddl=DDL)
    clicks.assert_exact(dropped, ordered=False)


@pytest.mark.parametrize(
    ("more", "said"),
    [
        ({"password": "Marked-1"}, "there is no option password"),
        ({"store": "tcp://user:Marked-1@127.0.0.1:1"}, "the address has a user or a password"),
        ({"format": "Xml"}, "Input should be 'Json', 'Csv', 'Text' or 'Bytes'"),
        ({"malformed": "Rescue"}, "_malformed and malformed: Rescue belong together"),
        ({"startingPosition": "{}"}, "no segment"),
        ({"maxEventsPerTrigger": "0"}, "greater than 0"),
    ],
)
def test_wrong_options_are_refused_and_their_values_not_told(
    spark: Spark, options: dict[str, str], more: dict[str, str], said: str
) -> None:
    """A wrong option is named. A password in the wrong place is in no message."""
    with pytest.raises(SparkFailed) as caught:
        spark.run(READ, options={**options, **more}, ddl=DDL)
    assert said in str(caught.value)
    assert "Marked-1" not in str(caught.value)


def test_an_archive_and_then_the_stream_is_the_stream(
    spark: Spark,
    clicks: Clicks,
    store: Store,
    options: dict[str, str],
    tmp_path: Path,
) -> None:
    """A query over both has the stream's rows, by SHA-256, and its checkpoint covers both.

    It begins on the stream alone. The stream's oldest events are truncated before it reads them.
    """
    clicks.write(10)
    query = Query(spark, tmp_path, options)
    assert sum(query.run(maxEventsPerTrigger="50")) == 10 * KEYS
    clicks.split()
    clicks.write(10)
    cut = clicks.cut()
    clicks.write(10)
    archive_in(tmp_path / "archive", clicks, store)
    clicks.merge()
    clicks.write(10)
    with sluice.open(options["store"], options["stream"]) as stream:
        whole = stream.to_arrow(schema=SCHEMA, format="Json")
    clicks.truncate(cut)
    with pytest.raises(SparkFailed, match="has no events from offset"):
        query.run()
    both = {"archive": (tmp_path / "archive").as_uri()}
    query.run(maxEventsPerTrigger="100", **both)
    clicks.assert_exact(query.rows(), ordered=False)
    assert digest(query.table()) == digest(whole)
    fresh = Query(spark, tmp_path / "fresh", {**options, **both})
    fresh.run(maxBytesPerTrigger="20000")
    assert digest(fresh.table()) == digest(whole)
    clicks.write(10)
    query.run(**both)
    clicks.assert_exact(query.rows(), ordered=False)


EXPLAIN = """
import contextlib, io
told = io.StringIO()
df = spark.read.format("sluice").options(**options).schema(ddl).load()
with contextlib.redirect_stdout(told):
    df.explain("extended")
    df.explain("formatted")
result = told.getvalue() + df._jdf.queryExecution().toString(), df.count()
"""


def test_a_login_is_in_no_plan_log_or_checkpoint(
    spark: Spark, folder: Path, standalone_auth: Standalone, tmp_path: Path
) -> None:
    """The options name the login, and each process reads its files. Without it the read fails."""
    login = {user.name: user.password for user in standalone_auth.users}["admin"]
    secret = folder / "secrets" / "guarded"
    secret.mkdir()
    (secret / "username").write_text("admin")
    (secret / "password").write_text(login)
    uri = standalone_auth.controller_uri
    store = connect(StoreAddress(uri=uri), Settings(), credentials=Credentials("admin", login))
    store.create_scope("tables")
    clicks = Clicks(store, StreamName(scope="tables", stream="clicks"))
    clicks.write(5)
    store.close()
    options = {"store": uri, "stream": "tables/clicks", "format": "Json"}
    with pytest.raises(SparkFailed, match="AuthenticationFailed"):
        spark.run(READ, options=options, ddl=DDL)
    options["secret"] = "guarded"  # noqa: S105 - its name
    plans, count = spark.run(EXPLAIN, options=options, ddl=DDL)
    assert count == 5 * KEYS
    assert "sluice" in plans
    query = Query(spark, tmp_path, options)
    query.run()
    clicks.assert_exact(query.rows(), ordered=False)
    written = [file for place in (folder, tmp_path) for file in place.rglob("*") if file.is_file()]
    assert len(written) > 10
    told = [plans, *(f.read_text(errors="replace") for f in written if f.parent != secret)]
    assert not any(login in one for one in told)


def test_a_killed_query_loses_no_row_and_repeats_none(
    clicks: Clicks, options: dict[str, str], tmp_path: Path
) -> None:
    """The program and its JVM are killed between batches, twice, over scale events."""
    limited = {**options, "maxEventsPerTrigger": "60"}
    given = {"options": limited, "ddl": DDL}
    given |= {"out": str(tmp_path / "out"), "at": str(tmp_path / "at")}
    for scale in (clicks.split, clicks.merge):
        clicks.write(40)
        scale()
        _run_and_kill(given, tmp_path)
    clicks.write(40)
    with Spark(tmp_path) as living:
        query = Query(living, tmp_path, options)
        query.run()
        clicks.assert_exact(query.rows(), ordered=False)


def _run_and_kill(given: dict[str, Any], folder: Path) -> None:
    """Run the query in a process, and kill it after three more batches."""
    commits = folder / "at" / "commits"
    wanted = len(list(commits.glob("[0-9]*"))) + 3
    with Spark(folder) as dying:
        dying.begin(WRITE, **given)
        until("batches are committed", lambda: len(list(commits.glob("[0-9]*"))) >= wanted)
        dying.kill()
