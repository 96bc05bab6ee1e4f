"""The floor of copies through Sluice's store client: two processes that only read and append."""

from __future__ import annotations

import multiprocessing
import time
from concurrent.futures import ProcessPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass
from functools import cache, partial
from typing import TYPE_CHECKING
from uuid import uuid4

from bench.lab import SCOPE
from bench.model import BenchError, Run
from bench.ours import WARM_UP
from sluice.config import Settings
from sluice.core.values.model import Scaling, StoreAddress, StreamConfig, StreamName
from sluice.engine.tasks.limits import Limits
from sluice.stores.connect import connect

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from bench.lab import Lab
    from bench.model import Source
    from sluice.stores.base import Store

PROCESSES = 2


@contextmanager
def floor_processes() -> Iterator[ProcessPoolExecutor]:
    """Provide the two processes. They are spawned, because a fork would break gRPC's threads."""
    context = multiprocessing.get_context("spawn")
    with ProcessPoolExecutor(PROCESSES, mp_context=context) as pool:
        yield pool


@dataclass(frozen=True, slots=True)
class Floor:
    """A copy without Spark, protocol or digest, straight into the segments of an existing stream.

    Attributes:
        name: the side's name within its phase.
        source: the source of the copy.
        pool: the processes that copy.
    """

    name: str
    source: Source
    pool: ProcessPoolExecutor

    def prepare(self, lab: Lab) -> None:
        """Start the processes and let them open their connections."""
        lab.source(self.source)
        with lab.target(WARM_UP) as target:
            self._copy(lab, WARM_UP, target)

    def run(self, lab: Lab, target: str) -> Run:
        """Copy all segments."""
        return self._copy(lab, self.source, target)

    def _copy(self, lab: Lab, source: Source, target: str) -> Run:
        from_stream = StreamName(scope=SCOPE, stream=lab.source(source))
        to_stream = StreamName(scope=SCOPE, stream=target)
        pairs = _pairs(lab.uri, from_stream, to_stream, source.segments)
        shares = [pairs[number::PROCESSES] for number in range(PROCESSES)]
        begin = time.monotonic()
        done = list(self.pool.map(partial(_read_and_append, lab.uri), shares))
        seconds = time.monotonic() - begin
        moved = sum(count for count, _ in done)
        if moved != source.bytes:
            raise BenchError(f"the floor copied {moved:,} bytes of {source}")
        return Run(seconds=seconds, bytes=moved, cpu=sum(cpu for _, cpu in done))


def _pairs(
    uri: str, source: StreamName, target: StreamName, segments: int
) -> list[tuple[str, str]]:
    """Make the target. Return the full names of each source segment and its target segment."""
    store = connect(StoreAddress(uri=uri), Settings())
    try:
        store.create_stream(target, StreamConfig(scaling=Scaling(min_segments=segments)))
        streams = [store.describe(source), store.describe(target)]
        names = [
            [store.segment_name(name, segment.id) for segment in stream.tail]
            for name, stream in zip((source, target), streams, strict=True)
            if stream is not None
        ]
    finally:
        store.close()
    return list(zip(*names, strict=True))


@cache
def _store(uri: str) -> Store:
    """Return the process's store, which keeps its connections for the next copy."""
    return connect(StoreAddress(uri=uri), Settings())


def _read_and_append(uri: str, pairs: Sequence[tuple[str, str]]) -> tuple[int, float]:
    """Copy segments one after the other. Return the copied bytes and the CPU seconds."""
    cpu = time.process_time()
    store = _store(uri)
    moved = 0
    for (source, target), info in zip(pairs, store.infos([name for name, _ in pairs]), strict=True):
        if info is None:
            raise BenchError(f"{source} is not there")
        window = Limits().in_flight_bytes // PROCESSES
        with store.appender(target, writer=uuid4(), window=window) as appender:
            for block in store.read(source, info.start, info.length):
                end = block.offset + len(block.data)
                appender.append(block.data, event_number=end)
            appender.flush()
        moved += info.length - info.start
    return moved, time.process_time() - cpu
