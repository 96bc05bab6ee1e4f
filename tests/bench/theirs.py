"""The other side: the store's own Java client, which copies event by event."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal

from bench.lab import SCOPE
from bench.model import BenchError, Run

if TYPE_CHECKING:
    from bench.lab import Lab
    from bench.model import Source


@dataclass(frozen=True, slots=True)
class Java:
    """A copy by the Java client with two threads, in a JVM that is warm.

    Its time is the JVM's own, without making the target and finding the source's segments: what
    Sluice's time includes.

    Attributes:
        name: what it is called within its phase.
        source: what it copies.
        mode: whether it writes batches of events or one transaction a segment.
    """

    name: str
    source: Source
    mode: Literal["batches", "txn"]

    def prepare(self, lab: Lab) -> None:
        """Have the source written."""
        lab.source(self.source)

    def run(self, lab: Lab, target: str) -> Run:
        """Copy all events."""
        done = lab.java.copy(
            SCOPE, lab.source(self.source), target, mode=self.mode, segments=self.source.segments
        )
        if done.events != self.source.events:
            raise BenchError(f"the Java client copied {done.events:,} events of {self.source}")
        return Run(seconds=done.seconds, bytes=self.source.bytes, cpu=done.cpu_seconds)
