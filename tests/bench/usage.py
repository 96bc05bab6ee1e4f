"""What processes use, read from /proc."""

from __future__ import annotations

import os
import threading
import time
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING, Self

from sluice.pipelines.spark.sparkconf import DAEMON

if TYPE_CHECKING:
    from collections.abc import Iterator

_TICKS = os.sysconf("SC_CLK_TCK")
_GONE = (FileNotFoundError, ProcessLookupError)
_GLANCE_SECONDS = 0.05


def own_cpu_seconds() -> float:
    """CPU time of this process, without its children."""
    return time.process_time()


def cpu_seconds(pid: int) -> float:
    """CPU time of a process alone, while it runs."""
    user, system, *_ = _times(pid)
    return (user + system) / _TICKS


def machine_cpu_seconds() -> float:
    """CPU time of everything on this machine since it started, idle and waiting times excepted."""
    user, nice, system, _idle, _wait, *interrupts = map(
        int, Path("/proc/stat").read_text().partition("\n")[0].split()[1:9]
    )
    return (user + nice + system + sum(interrupts)) / _TICKS


def cores() -> int:
    """Processors that this process may use."""
    return len(os.sched_getaffinity(0))


class TreeClock:
    """CPU time of a process and its descendants from now on.

    Spark's daemon disowns its Python workers, so what a worker used that ended meanwhile is known
    to nobody and is missing here.

    Args:
        root: process id of the topmost one.
    """

    def __init__(self, root: int) -> None:
        self._root = root
        self._begin = self._read()

    @property
    def seconds(self) -> float:
        """CPU seconds of those that live, and of those that their parents reaped."""
        used = (ticks - self._begin.get(pid, 0) for pid, ticks in self._read().items())
        return sum(used) / _TICKS

    def _read(self) -> dict[int, int]:
        ticks = {}
        for pid in _tree(self._root):
            with suppress(*_GONE):
                ticks[pid] = sum(_times(pid))
        return ticks


class TreeWatch:
    """CPU time of a process and its descendants while it runs, looked at again and again.

    Of those that end nothing is known but the last look: what they used since then is missing.

    Args:
        root: process id of the topmost one.
    """

    def __init__(self, root: int) -> None:
        self._root = root
        self._ticks: dict[int, int] = {}
        self._over = threading.Event()
        self._looking = threading.Thread(target=self._look, daemon=True)

    def __enter__(self) -> Self:
        """Begin."""
        self._looking.start()
        return self

    def __exit__(self, *_: object) -> None:
        """End."""
        self._over.set()
        self._looking.join()

    @property
    def seconds(self) -> float:
        """CPU seconds of all that were seen."""
        return sum(self._ticks.values()) / _TICKS

    def _look(self) -> None:
        while not self._over.wait(_GLANCE_SECONDS):
            with suppress(*_GONE):
                for pid in _tree(self._root):
                    with suppress(*_GONE):
                        self._ticks[pid] = sum(_times(pid)[:2])  # its own, not its children's


def peak_worker_rss(root: int) -> int | None:
    """Peak memory in bytes of the largest living Python worker below a Spark driver's JVM.

    The peak is the kernel's own high-water mark, which no sampling can miss.
    """
    peaks = []
    for pid in _tree(root):
        with suppress(*_GONE):
            if DAEMON in _command(pid) and DAEMON in _command(_parent(pid)):
                peaks.append(_peak_rss(pid))
    return max(peaks, default=None)


def _times(pid: int) -> list[int]:
    """User and system time in ticks, and the same of the children that were reaped."""
    return [int(ticks) for ticks in _stat(pid)[11:15]]


def _parent(pid: int) -> int:
    return int(_stat(pid)[1])


def _stat(pid: int) -> list[str]:
    """The fields of /proc/PID/stat from the state on.

    What stands before, the program's name in parentheses, may hold spaces of its own.
    """
    return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()


def _tree(root: int) -> Iterator[int]:
    """A process and its descendants."""
    yield root
    for task in Path(f"/proc/{root}/task").glob("*/children"):
        with suppress(*_GONE):
            for child in task.read_text().split():
                yield from _tree(int(child))


def _command(pid: int) -> str:
    return Path(f"/proc/{pid}/cmdline").read_text().replace("\0", " ")


def _peak_rss(pid: int) -> int:
    for line in Path(f"/proc/{pid}/status").read_text().splitlines():
        if line.startswith("VmHWM:"):
            return int(line.split()[1]) * 1024
    return 0  # it is ending, and has no memory any more
