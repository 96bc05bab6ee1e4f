"""A store to measure on: a standalone server with sources, and its Java client.

A folder and an S3 gateway are available beside it.
"""

from __future__ import annotations

import itertools
import shutil
import time
from contextlib import ExitStack, contextmanager
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING, Self

from bench.model import MEGABYTE, BenchError
from bench.usage import cpu_seconds
from localstore import ForeignClient, Standalone
from s3gateway import Gateway

if TYPE_CHECKING:
    from collections.abc import Callable, Hashable, Iterator

    from bench.model import Source

SCOPE = "bench"
BUCKET = "bench"

_HEAP = "8g"
_CAPACITY = 6_000_000_000
"""Bytes written to one server. It keeps its log on the heap until the log is in its storage."""

_KEYS = 1000
_WRITE_SECONDS = 900.0

_SETTLE_SECONDS = 20.0
_GLANCE_SECONDS = 0.5
_QUIET = 0.2
"""CPU seconds per second below which a server is quiet; an idle one uses 0.05."""


class Lab:
    """One server at a time. A new one replaces it after enough bytes were written to it.

    Args:
        say: callback for progress messages.

    Attributes:
        kept: paths of data that sides keep for later runs, until a new server starts.
    """

    def __init__(self, say: Callable[[str], None]) -> None:
        self._say = say
        self._stack = ExitStack()
        self._server: Standalone | None = None
        self._java: ForeignClient | None = None
        self._gateway: Gateway | None = None
        self._folder: Path | None = None
        self._sources: dict[Source, str] = {}
        self._names = itertools.count(1)
        self._written = 0
        self.kept: dict[Hashable, str] = {}

    def __enter__(self) -> Self:
        """Return the lab. Nothing starts before the first write."""
        return self

    def __exit__(self, *_: object) -> None:
        """Stop the server and its companions."""
        self._stack.close()

    @property
    def uri(self) -> str:
        """The store's address."""
        return self._running.controller_uri

    @property
    def java(self) -> ForeignClient:
        """The store's official client."""
        if self._java is None:
            raise BenchError("no store was started")
        return self._java

    @property
    def folder(self) -> Path:
        """A folder, which is deleted with the server."""
        if self._folder is None:
            raise BenchError("no store was started")
        return self._folder

    @property
    def gateway(self) -> Gateway:
        """An S3 gateway, started at the first access and stopped with the server."""
        if self._gateway is None:
            self._gateway = self._stack.enter_context(Gateway(self.folder / "buckets"))
            self._gateway.make_bucket(BUCKET)
        return self._gateway

    @property
    def cpu_seconds(self) -> float:
        """The CPU time of the store's and the gateway's processes, in seconds."""
        processes = [one.process for one in (self._running, self._gateway) if one is not None]
        if None in processes:
            raise BenchError("the store or the gateway does not run")
        return sum(cpu_seconds(process.pid) for process in processes if process is not None)

    def make_room(self, needed: int) -> bool:
        """Ensure room for this number of bytes. Return True if that took a new server."""
        if self._server is not None and self._written + needed <= _CAPACITY:
            return False
        self._stack.close()
        self._sources.clear()
        self.kept.clear()
        self._written, self._gateway = 0, None
        self._folder = Path(self._stack.enter_context(TemporaryDirectory(prefix="sluice-bench-")))
        begin = time.monotonic()
        server = Standalone(heap=_HEAP, lasting=True)
        self._server = self._stack.enter_context(server)
        self._java = self._stack.enter_context(ForeignClient(server.controller_uri, lasting=True))
        self._java.create_scope(SCOPE)
        self._say(f"a new store serves after {time.monotonic() - begin:.1f} s")
        return True

    def source(self, source: Source) -> str:
        """Return the name of a stream with these events, written by the official client."""
        if source not in self._sources:
            name = self._sources[source] = f"source-{next(self._names)}"
            self.java.create(SCOPE, name, segments=source.segments)
            done = self.java.write(
                SCOPE,
                name,
                events=source.events,
                size=source.size,
                keys=_KEYS,
                kind=source.kind,
                seconds=_WRITE_SECONDS,
            )
            if done.bytes != source.payload:
                raise BenchError(f"{done.bytes:,} bytes were written for {source}")
            self._written += source.bytes
            speed = source.bytes / MEGABYTE / done.seconds
            self._say(f"wrote {source} in {done.seconds:.1f} s ({speed:.0f} MB/s)")
        return self._sources[source]

    @contextmanager
    def target(self, source: Source) -> Iterator[str]:
        """Yield a name for a stream, an archive or a folder, which is deleted after the block."""
        self._written += source.bytes
        name = f"target-{next(self._names)}"
        yield name
        if name in (self.java.streams(SCOPE) or ()):
            self.java.delete(SCOPE, name)
        for place in (self.folder, self.folder / "buckets" / BUCKET):
            shutil.rmtree(place / name, ignore_errors=True)

    def settle(self) -> None:
        """Wait for the store's deferred work, so that it does not slow the next run."""
        deadline = time.monotonic() + _SETTLE_SECONDS
        while time.monotonic() < deadline:
            before = self.cpu_seconds
            time.sleep(_GLANCE_SECONDS)
            if self.cpu_seconds - before < _QUIET * _GLANCE_SECONDS:
                return

    @property
    def _running(self) -> Standalone:
        if self._server is None:
            raise BenchError("no store was started")
        return self._server
