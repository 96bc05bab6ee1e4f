"""A store to measure on: a standalone server with sources in it, and its Java client beside it.

Beside them are a folder, and a gateway of S3 for whom wants one.
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
"""Bytes written to one server. Its log is on its heap until it has moved it to its storage."""

_KEYS = 1000
_WRITE_SECONDS = 900.0

_SETTLE_SECONDS = 20.0
_GLANCE_SECONDS = 0.5
_QUIET = 0.2
"""CPU seconds per second; an idle server uses 0.05."""


class Lab:
    """One server at a time; a new one takes its place when enough was written to it.

    Args:
        say: told what happens.

    Attributes:
        kept: what sides have put beside the sources to use it again, until a new server comes.
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
        """Nothing is started before there is something to write."""
        return self

    def __exit__(self, *_: object) -> None:
        """Stop what runs."""
        self._stack.close()

    @property
    def uri(self) -> str:
        """The store's address."""
        return self._running.controller_uri

    @property
    def java(self) -> ForeignClient:
        """The official client."""
        if self._java is None:
            raise BenchError("no store was started")
        return self._java

    @property
    def folder(self) -> Path:
        """A folder, which goes with the server."""
        if self._folder is None:
            raise BenchError("no store was started")
        return self._folder

    @property
    def gateway(self) -> Gateway:
        """A gateway of S3, started when it is asked for; it goes with the server."""
        if self._gateway is None:
            self._gateway = self._stack.enter_context(Gateway(self.folder / "buckets"))
            self._gateway.make_bucket(BUCKET)
        return self._gateway

    @property
    def cpu_seconds(self) -> float:
        """CPU time of the processes of the store and of the gateway."""
        processes = [one.process for one in (self._running, self._gateway) if one is not None]
        if None in processes:
            raise BenchError("the store or the gateway does not run")
        return sum(cpu_seconds(process.pid) for process in processes if process is not None)

    def make_room(self, needed: int) -> bool:
        """See to it that so many bytes may be written; True when that took a new server."""
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
        """The name of a stream with these events, written by the official client."""
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
        """The name of a stream, an archive or a folder for this source; it is deleted later."""
        self._written += source.bytes
        name = f"target-{next(self._names)}"
        yield name
        if name in (self.java.streams(SCOPE) or ()):
            self.java.delete(SCOPE, name)
        for place in (self.folder, self.folder / "buckets" / BUCKET):
            shutil.rmtree(place / name, ignore_errors=True)

    def settle(self) -> None:
        """Wait until the store has done what it puts off, so that no run pays for another's."""
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
