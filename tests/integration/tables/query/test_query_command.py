"""`sluice query` as users run it: processes that read a file, and that end or are killed."""

from __future__ import annotations

import json
import os
import random
import subprocess
from contextlib import suppress
from typing import TYPE_CHECKING, Any

import pytest

from sluice.core.values.model import StreamName
from sluice.engine.streams.writing import EventWriter, Routed
from support.command import warm
from support.command.sluice_command import Finished, finish
from support.store.counts import assert_counted, manifest, results
from support.until import PATIENT, TIGHT, until

if TYPE_CHECKING:
    from pathlib import Path

    from localstore import Standalone
    from sluice.stores.base import Store
    from support.store.clicks import Clicks


class Command:
    """The command `sluice query` on a file.

    Args:
        folder: the folder of the file and of checkpoints.
        uri: the store's address.
        clicks: the stream.
    """

    def __init__(self, folder: Path, uri: str, clicks: Clicks) -> None:
        self._folder = folder
        self._uri = uri
        self._clicks = clicks

    def start(self, verb: str, *options: str, **changes: Any) -> subprocess.Popen[str]:
        """Start the command."""
        file = self._folder / "query.yaml"
        file.write_text(manifest(self._uri, self._clicks.name, **changes))
        return warm.Popen(
            [warm.SLUICE, "query", verb, "-f", file, *options],
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
            env={
                **os.environ,
                "SLUICE_STORE_TIMEOUT": str(PATIENT.call),
                "XDG_STATE_HOME": str(self._folder / "state"),
            },
            start_new_session=True,
        )

    def run(self, verb: str = "run", *options: str, **changes: Any) -> Finished:
        """Run the command to its end."""
        return finish(self.start(verb, *options, **changes))


@pytest.fixture
def command(standalone: Standalone, clicks: Clicks, tmp_path: Path) -> Command:
    """Return the command for a new stream."""
    return Command(tmp_path, standalone.controller_uri, clicks)


@pytest.mark.exhaustive
def test_a_query_prints_its_rows_and_is_interrupted(
    command: Command, clicks: Clicks, store: Store
) -> None:
    """The command prints each row of the sink. Ctrl-C ends it, and it says how to go on.

    `state` tells the query's position. `verify` finds an added row.
    """
    clicks.write(130)
    with command.start("run", mode="Continuous") as process:
        until("two windows are closed", lambda: len(results(store, clicks.name)) >= 32)
        process.send_signal(2)
        out, err = process.communicate()
    assert process.returncode == 130, err
    assert "Interrupted. counts goes on from its checkpoint: run it again." in " ".join(err.split())
    assert sorted(out.splitlines()) == sorted(
        json.dumps(row, separators=(",", ":")) for row in results(store, clicks.name)
    )
    assert_counted(results(store, clicks.name), clicks)
    clicks.write(1)
    told = command.run("state", "-o", "json")
    (state,) = told.json
    assert (state["version"], state["attempt"], state["rows"]) == (1, 1, 32)
    assert state["watermark"] == "2026-01-01T00:02:00.000Z"
    assert state["lagBytes"] > 0
    (place,) = state["positions"]
    assert place["stream"] == str(clicks.name)
    assert [at["segmentID"] for at in place["offsets"]] == [0, 1]
    lines = command.run("state").out.splitlines()
    assert "rows      32" in lines
    offsets = ",".join(f"{at['segmentID']}={at['offset']}" for at in place["offsets"])
    assert f"position  {clicks.name} {offsets}" in lines
    assert "lateEvents 0" in lines
    ended = command.run("verify")
    assert ended.code == 0, ended.err
    assert ended.out.startswith(f"counts: 32 rows of {clicks.name.scope}/counts, up to batch ")
    EventWriter(store, StreamName(scope=clicks.name.scope, stream="counts")).write(
        [Routed(0.0, json.dumps(results(store, clicks.name)[0]).encode())]
    )
    ended = command.run("verify", "-o", "json")
    assert ended.code == 6, ended.err
    (told,) = ended.json
    assert (told["equal"], told["rows"], told["missing"], told["extra"]) == (False, 33, 0, 1)


def test_a_query_that_never_ran_has_written_nothing(
    command: Command, clicks: Clicks, store: Store
) -> None:
    """`state` of a query that never ran makes no ledger in the store."""
    assert command.run("state").out.splitlines() == ["name      counts", "rows      0"]
    assert store.list_streams(clicks.name.scope) == ["clicks"]


@pytest.mark.exhaustive
def test_a_plan_is_shown_and_nothing_is_made(
    command: Command, clicks: Clicks, store: Store
) -> None:
    """`plan` shows a hash and columns, and makes nothing. A wrong query ends with code 2."""
    ended = command.run("plan", "-o", "json")
    assert ended.code == 0, ended.err
    (told,) = ended.json
    assert len(told["hash"]) == 64
    assert told["plan"]["compiled"]["columns"] == "start TIMESTAMP,k STRING,n BIGINT,total BIGINT"
    assert store.list_streams(clicks.name.scope) == ["clicks"]
    wrong = command.run("plan", query__sql="SELECT reflect('a', 'b') FROM clicks")
    assert wrong.code == 2
    assert "may not call reflect (line 1, column 8)" in " ".join(wrong.err.split())


@pytest.mark.parametrize(
    ("change", "said"),
    [
        ({"sinks__0__stream__storeRef__name": "nowhere"}, "spec.sinks[0].stream.storeRef.name"),
        ({"sources__0__archive": {"storeRef": {"name": "main"}, "path": "a"}}, "spec.sources[0]"),
        ({"mode": "Always"}, "spec.mode"),
    ],
)
def test_a_wrong_file_is_refused_before_spark_starts(
    command: Command, change: dict[str, Any], said: str
) -> None:
    """The message names the field, and the exit code is 2."""
    ended = command.run("run", **change)
    assert ended.code == 2
    assert said in "".join(ended.err.split())


@pytest.mark.exhaustive
@pytest.mark.parametrize(
    ("engine", "plans", "states"),
    [("Spark", "offsets/[0-9]*", "commits/[0-9]*"), ("Arrow", "*-*", "windows-*")],
)
def test_a_query_that_is_killed_again_and_again_counts_each_event_once(
    command: Command,
    clicks: Clicks,
    store: Store,
    tmp_path: Path,
    engine: str,
    plans: str,
    states: str,
) -> None:
    """Ten processes are killed while events come: as a batch is planned, written or committed."""

    def written() -> int:
        return len(results(store, clicks.name))

    def newest(files: str) -> int:
        """Return when a file of the checkpoint was written last; 0 for none."""
        found = [0]
        for file in tmp_path.glob(f"state/sluice/queries/*/version-1/{files}"):
            with suppress(FileNotFoundError):
                found.append(file.stat().st_mtime_ns)
        return max(found)

    moments = [lambda: newest(plans), written, lambda: newest(states)]
    chance = random.Random(25)  # noqa: S311 - a moment, no secret
    for _ in range(10):
        changes = {"engine": engine, "mode": "Continuous", "limits__batchBytes": "64Ki"}
        process = command.start("run", **changes)
        before = written()
        clicks.write(61)
        until("a window is closed", lambda seen=before: written() > seen)
        count = chance.choice(moments)
        seen = count()
        clicks.write(61)
        until(
            "the next batch has come so far",
            lambda count=count, seen=seen: count() > seen,
            poll=TIGHT,
        )
        assert process.poll() is None, process.communicate()[1]
        os.killpg(process.pid, 9)
        process.communicate()
    clicks.write(61)
    ended = command.run("run", engine=engine)
    assert ended.code == 0, ended.err
    assert_counted(results(store, clicks.name), clicks)
