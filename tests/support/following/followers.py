"""Followers of one source, each a process of its own."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Self

from support.following.follower import start
from support.until import PATIENCE

if TYPE_CHECKING:
    import subprocess
    from typing import IO

Pair = tuple[tuple[str, str], tuple[str, str]]
"""Scope and name of a source, and of its target."""


class Followers:
    """Followers of one source, one at a time. No follower outlives the block.

    Args:
        uri: the controller.
        streams: the source and the target.
        output: the file that the followers write to.
    """

    def __init__(self, uri: str, streams: Pair, output: IO[str]) -> None:
        self._uri = uri
        self._streams = streams
        self._output = output
        self._processes: list[subprocess.Popen[str]] = []

    def __enter__(self) -> Self:
        """Return the followers. None has started yet."""
        return self

    def __exit__(self, *_: object) -> None:
        """Kill the last follower, if it still runs."""
        self.kill()

    def start(self, *options: str) -> None:
        """Start a follower, with options of `support.following.follower`."""
        self._processes.append(start(self._uri, *self._streams, self._output, *options))

    def kill(self) -> None:
        """Kill the last follower, if it still runs."""
        for process in self._processes[-1:]:
            process.kill()
            process.wait()

    def result(self) -> int:
        """Wait for the end of the last follower, and return its exit code."""
        return self._processes[-1].wait(timeout=PATIENCE)

    def said(self) -> str:
        """Return the whole output of the followers."""
        self._output.seek(0)
        return self._output.read()

    @property
    def runs(self) -> bool:
        """Tell whether the last follower runs."""
        return self._processes[-1].poll() is None

    @property
    def memory(self) -> int:
        """The present memory of the last follower in bytes. It must run."""
        return self._memory("VmRSS")

    @property
    def peak(self) -> int:
        """The peak memory of the last follower in bytes. It must run."""
        return self._memory("VmHWM")

    def _memory(self, key: str) -> int:
        status = Path(f"/proc/{self._processes[-1].pid}/status").read_text()
        (line,) = (line for line in status.splitlines() if line.startswith(f"{key}:"))
        return int(line.split()[1]) * 1024
