"""The cost of five hundred viewers of one query for a gateway, and the delay of a row."""

from __future__ import annotations

import asyncio
import json
import os
import subprocess
import sys
import time
from contextlib import contextmanager
from statistics import median
from typing import TYPE_CHECKING, Final

import aiohttp

from bench import usage
from bench.model import BenchError, Goal, Measurement
from sluice.config import Settings
from sluice.core.values.model import StoreAddress, StreamName
from sluice.stores.connect import connect
from support.store.rows import ResultRows

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from bench.scopes import Place

    Say = Callable[[str], None]

CORES_KEY: Final = "viewers_500_cores"
HOP_KEY: Final = "result_hop_ms"
KEYS: Final = (CORES_KEY, HOP_KEY)

TOKEN: Final = "bench"  # noqa: S105 - of this measurement
STREAM: Final = StreamName(scope="bench-viewers", stream="counts")
_VIEWERS: Final = 500
_ROWS: Final = 12
"""Rows that come each second."""
_SECONDS: Final = 20
_RUNS: Final = 3


def measure_viewers(place: Place, say: Say) -> list[Measurement]:
    """Connect the viewers, write rows, and read the gateway's CPU time."""
    uri = place.store.controller_uri
    store = connect(StoreAddress(uri=uri), Settings())
    cores: list[float] = []
    hops: list[float] = []
    try:
        store.create_scope(STREAM.scope)
        with ResultRows(store, uri, STREAM) as rows, _gateway(uri) as (pid, address):
            for number in range(_RUNS):
                used, came = asyncio.run(_run(rows, pid, address))
                cores.append(used)
                hops.append(1000 * median(came))
                say(
                    f"{number + 1} of {_RUNS}: {_VIEWERS} viewers, {used:.3f} cores, "
                    f"{hops[-1]:.1f} ms from append to viewer"
                )
            memory = usage.rss(pid) / 1e6
    finally:
        store.close()
    return [
        Measurement(
            CORES_KEY, tuple(cores), Goal("<=", 0.1), unit="", counts={"memory, MB": memory}
        ),
        Measurement(HOP_KEY, tuple(hops), unit="ms"),
    ]


class _Audience:
    """Viewers of the query. The first one reads the rows.

    Attributes:
        hops: the seconds from append to arrival of each row.
    """

    def __init__(self, session: aiohttp.ClientSession, address: str) -> None:
        self.hops: list[float] = []
        self._session = session
        self._address = f"{address}api/queries/bench/counts/events"
        self._seated = asyncio.Semaphore(0)

    async def view(self, *, timed: bool) -> None:
        """Receive all events, until the task is cancelled."""
        async with self._session.get(self._address) as answer:
            answer.raise_for_status()
            fresh = False
            async for line in answer.content:
                if not line.startswith(b"data: "):
                    fresh = line == b"event: rows\n"
                elif fresh and b'"reset": true' in line[:40]:
                    self._seated.release()
                elif fresh and timed:
                    now = time.time()
                    rows = json.loads(line.removeprefix(b"data: "))["rows"]
                    self.hops += [now - float(row["sent"]) for row in rows]

    async def seated(self) -> None:
        """Wait until all viewers have got the first rows."""
        async with asyncio.timeout(60):
            for _ in range(_VIEWERS):
                await self._seated.acquire()


async def _run(rows: ResultRows, pid: int, address: str) -> tuple[float, list[float]]:
    """Return the cores that the gateway uses, and the seconds from append to arrival of rows."""
    async with aiohttp.ClientSession(
        headers={"Authorization": f"Bearer {TOKEN}"},
        connector=aiohttp.TCPConnector(limit=0),
        timeout=aiohttp.ClientTimeout(total=None),
    ) as session:
        audience = _Audience(session, address)
        viewers = [asyncio.create_task(audience.view(timed=not at)) for at in range(_VIEWERS)]
        await audience.seated()
        began, used = time.monotonic(), usage.cpu_seconds(pid)
        await asyncio.to_thread(_write, rows)
        share = (usage.cpu_seconds(pid) - used) / (time.monotonic() - began)
        for viewer in viewers:
            viewer.cancel()
        await asyncio.gather(*viewers, return_exceptions=True)
    if not audience.hops:
        raise BenchError("no row came")
    return share, audience.hops


def _write(rows: ResultRows) -> None:
    """Write rows each second, by the clock. This is the load."""
    due = time.monotonic()
    for _ in range(_SECONDS):
        rows.add({"k": f"key-{at}", "n": at, "sent": str(time.time())} for at in range(_ROWS))
        due += 1.0
        time.sleep(max(0.0, due - time.monotonic()))


@contextmanager
def _gateway(uri: str) -> Iterator[tuple[int, str]]:
    """Run a gateway in its own process. Yield its pid and address."""
    environment = os.environ | {"PYTHONPATH": ":".join(sys.path)}
    command = [sys.executable, "-m", "bench.query.gateway", uri]
    with subprocess.Popen(command, env=environment, stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        address = process.stdout.readline().strip()
        try:
            yield process.pid, address
        finally:
            process.terminate()
