"""Copies by processes that do nothing else, timed from their start to their end."""

from __future__ import annotations

import json
import subprocess
import time
from dataclasses import dataclass
from typing import TYPE_CHECKING

from bench.lab import SCOPE
from bench.model import BenchError, Run
from bench.usage import TreeWatch
from localstore.foreign_jvm import client_command
from support.command.sluice_command import Copy, finish

if TYPE_CHECKING:
    from bench.lab import Lab
    from bench.model import Source
    from support.command.sluice_command import Finished

_SECONDS = 900.0


@dataclass(frozen=True, slots=True)
class ColdSluice:
    """A copy by `sluice run`.

    Attributes:
        name: the side's name within its phase.
        source: the source of the copy.
    """

    name: str
    source: Source

    def prepare(self, lab: Lab) -> None:
        """Write the source."""
        lab.source(self.source)

    def run(self, lab: Lab, target: str) -> Run:
        """Copy the source."""
        copy = Copy(lab.folder, lab.uri, (SCOPE, lab.source(self.source)), (SCOPE, target))
        copy.log_level = "warning"  # the command's default
        begun = time.monotonic()
        run, ended = _timed(copy.start("run", "--output", "json"), begun, self.source)
        if ended.code != 0 or ended.json[0]["bytes"] != self.source.bytes:
            raise BenchError(f"a copy of {self.source} failed: {ended.err[-2000:]}")
        return run


@dataclass(frozen=True, slots=True)
class ColdJava:
    """A copy by the Java client in a JVM of its own, in batches and with two threads.

    Attributes:
        name: the side's name within its phase.
        source: the source of the copy.
    """

    name: str
    source: Source

    def prepare(self, lab: Lab) -> None:
        """Write the source."""
        lab.source(self.source)

    def run(self, lab: Lab, target: str) -> Run:
        """Copy all events."""
        words = {
            "scope": SCOPE,
            "source": lab.source(self.source),
            "target": target,
            "mode": "batches",
            "threads": 2,
            "segments": self.source.segments,
        }
        arguments = (f"{key}={value}" for key, value in words.items())
        command = client_command(lab.uri, "copy", *arguments, lasting=True)
        begun = time.monotonic()
        process = subprocess.Popen(
            command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
        )
        run, ended = _timed(process, begun, self.source)
        answer = json.loads(ended.out) if ended.code == 0 else {}
        if answer.get("result", {}).get("events") != self.source.events:
            raise BenchError(f"the Java client failed to copy {self.source}: {ended.err[-2000:]}")
        return run


def _timed(process: subprocess.Popen[str], begun: float, source: Source) -> tuple[Run, Finished]:
    """Wait for a process's end. Return its run and its output."""
    with TreeWatch(process.pid) as used:
        ended = finish(process, _SECONDS)
        seconds = time.monotonic() - begun
    return Run(seconds=seconds, bytes=source.bytes, cpu=used.seconds), ended
