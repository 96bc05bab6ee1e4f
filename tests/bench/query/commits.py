"""How much of a batch goes to Spark's own log of batches, and to the mark that one is done."""

from __future__ import annotations

import json
import subprocess
import sys
from contextlib import closing
from datetime import UTC, datetime, timedelta
from statistics import median
from typing import TYPE_CHECKING, Final

from bench.model import BenchError, Goal, Measurement
from bench.query.windows import KEY_COUNT, SCOPE, manifest
from sluice.config import Settings
from sluice.core.values.model import Scaling, StoreAddress, StreamConfig, StreamName
from sluice.engine.streams.writing import EventWriter, Routed
from sluice.stores.connect import connect

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from bench.scopes import Place

    Say = Callable[[str], None]

COMMIT_KEY: Final = "commit_share"
KEYS: Final = (COMMIT_KEY,)

_STREAM: Final = StreamName(scope=SCOPE, stream="commits")
_EVENTS: Final = 60_000
_RATE: Final = 1000
"""Events per second of event time: about those of a batch."""
_WARM: Final = 10
"""Batches that do not count."""
_SECONDS: Final = 300
_COMMITS: Final = ("walCommit", "commitOffsets")
_WHOLE: Final = "triggerExecution"


def measure_commits(place: Place, say: Say) -> list[Measurement]:
    """Run a query of windows over a backlog, in small batches. Spark tells their times."""
    uri = place.store.controller_uri
    with closing(connect(StoreAddress(uri=uri), Settings())) as store:
        store.create_scope(SCOPE)
        store.create_stream(_STREAM, StreamConfig(scaling=Scaling(min_segments=2)))
        EventWriter(store, _STREAM).write(_events())
    file, told = place.folder / "commits.yaml", place.folder / "commits.json"
    file.write_text(manifest(uri, _STREAM.stream, mode="Once", limits={"batchBytes": "64Ki"}))
    program = (sys.executable, "-m", "bench.query.batches")
    ended = subprocess.run(
        [*program, uri, str(file), str(place.folder), str(told)],
        capture_output=True,
        text=True,
        timeout=_SECONDS,
        check=False,
    )
    if ended.returncode:
        raise BenchError(f"the query ended: {(ended.stdout + ended.stderr)[-2000:]}")
    batches = [one for one in json.loads(told.read_text()) if one.keys() >= {*_COMMITS, _WHOLE}][
        _WARM:
    ]
    if not batches:
        raise BenchError(f"the query had at most {_WARM} batches")
    commits = tuple(sum(one[name] for name in _COMMITS) / 1000 for one in batches)
    whole = tuple(one[_WHOLE] / 1000 for one in batches)
    say(f"{len(batches)} batches of {1000 * median(whole):.0f} ms")
    counts = {
        f"{name}, ms": float(median(one.get(name, 0) for one in batches))
        for name in sorted({name for one in batches for name in one})
    }
    goal = Goal("<=", 0.1)
    return [Measurement(COMMIT_KEY, commits, goal, unit="", counts=counts, base=whole)]


def _events() -> Iterator[Routed]:
    begin = datetime(2026, 1, 1, tzinfo=UTC)
    for n in range(_EVENTS):
        time = (begin + timedelta(seconds=n / _RATE)).isoformat().replace("+00:00", "Z")
        event = {"k": f"key-{n % KEY_COUNT}", "ts": time}
        yield Routed(n % 2 / 2, json.dumps(event).encode())
