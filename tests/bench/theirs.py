"""The other side: the store's own Java client, which copies event by event."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal

from bench.lab import SCOPE
from bench.model import BenchError, Run

if TYPE_CHECKING:
    from bench.lab import Lab
    from bench.model import Source

_SECONDS = 900.0


@dataclass(frozen=True, slots=True)
class Java:
    """A copy by the Java client with two threads, in a warm JVM.

    The JVM measures the time, without creating the target and finding the source's segments.
    Sluice's time includes both.

    Attributes:
        name: the side's name within its phase.
        source: the source of the copy.
        mode: batches of events, or one transaction per segment.
    """

    name: str
    source: Source
    mode: Literal["batches", "txn"]

    def prepare(self, lab: Lab) -> None:
        """Write the source."""
        lab.source(self.source)

    def run(self, lab: Lab, target: str) -> Run:
        """Copy all events."""
        done = lab.java.copy(
            SCOPE, lab.source(self.source), target, mode=self.mode, segments=self.source.segments
        )
        if done.events != self.source.events:
            raise BenchError(f"the Java client copied {done.events:,} events of {self.source}")
        return Run(seconds=done.seconds, bytes=self.source.bytes, cpu=done.cpu_seconds)


@dataclass(frozen=True, slots=True)
class Export:
    """Files that the Java client writes with two threads, in a warm JVM.

    Unlike an archive, the client does not compress, sync or read back the files.

    Attributes:
        name: the side's name within its phase.
        source: the source of the events.
        mode: one file per segment, or one per event.
    """

    name: str
    source: Source
    mode: Literal["segments", "events"]

    def prepare(self, lab: Lab) -> None:
        """Write the source."""
        lab.source(self.source)

    def run(self, lab: Lab, target: str) -> Run:
        """Write all events."""
        done = lab.java.export(
            SCOPE, lab.source(self.source), lab.folder / target, mode=self.mode, seconds=_SECONDS
        )
        if done.events != self.source.events:
            raise BenchError(f"the Java client wrote {done.events:,} events of {self.source}")
        return Run(seconds=done.seconds, bytes=self.source.bytes, cpu=done.cpu_seconds)
