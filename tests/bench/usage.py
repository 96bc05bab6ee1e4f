"""The CPU time and memory of processes, read from /proc."""

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
    """Return the CPU time of this process in seconds, without its children."""
    return time.process_time()


def cpu_seconds(pid: int) -> float:
    """Return the CPU time of a running process in seconds, without its children."""
    user, system, *_ = _times(pid)
    return (user + system) / _TICKS


def rss(pid: int) -> int:
    """Return the memory of a running process in bytes, without its children."""
    return _memory(pid, "VmRSS:")


def machine_cpu_seconds() -> float:
    """Return the machine's CPU seconds since its start, without idle and waiting time."""
    user, nice, system, _idle, _wait, *interrupts = map(
        int, Path("/proc/stat").read_text().partition("\n")[0].split()[1:9]
    )
    return (user + nice + system + sum(interrupts)) / _TICKS


def cores() -> int:
    """Return the number of processors that this process may use."""
    return len(os.sched_getaffinity(0))


class TreeClock:
    """The CPU time of a process and its descendants from now on.

    Spark's daemon disowns its Python workers. The CPU time of workers that ended meanwhile is
    therefore lost and not counted.

    Args:
        root: id of the topmost process.
    """

    def __init__(self, root: int) -> None:
        self._root = root
        self._begin = self._read()

    @property
    def seconds(self) -> float:
        """The CPU seconds of living processes, and of those that their parents reaped."""
        used = (ticks - self._begin.get(pid, 0) for pid, ticks in self._read().items())
        return sum(used) / _TICKS

    def _read(self) -> dict[int, int]:
        ticks = {}
        for pid in _tree(self._root):
            with suppress(*_GONE):
                ticks[pid] = sum(_times(pid))
        return ticks


class TreeWatch:
    """The CPU time of a process and its descendants while it runs, sampled repeatedly.

    The CPU time that a process uses between the last sample and its end is not counted.

    Args:
        root: id of the topmost process.
    """

    def __init__(self, root: int) -> None:
        self._root = root
        self._ticks: dict[int, int] = {}
        self._over = threading.Event()
        self._looking = threading.Thread(target=self._look, daemon=True)

    def __enter__(self) -> Self:
        """Start sampling."""
        self._looking.start()
        return self

    def __exit__(self, *_: object) -> None:
        """Stop sampling."""
        self._over.set()
        self._looking.join()

    @property
    def seconds(self) -> float:
        """The CPU seconds of all sampled processes."""
        return sum(self._ticks.values()) / _TICKS

    def _look(self) -> None:
        while not self._over.wait(_GLANCE_SECONDS):
            with suppress(*_GONE):
                for pid in _tree(self._root):
                    with suppress(*_GONE):
                        self._ticks[pid] = sum(_times(pid)[:2])  # without those of children


def peak_worker_rss(root: int) -> int | None:
    """Return the peak memory in bytes of the largest living Python worker below a driver's JVM.

    The peak is the kernel's own high-water mark, which sampling cannot miss.
    """
    peaks = []
    for pid in _tree(root):
        with suppress(*_GONE):
            if DAEMON in _command(pid) and DAEMON in _command(_parent(pid)):
                peaks.append(peak_rss(pid))
    return max(peaks, default=None)


def _times(pid: int) -> list[int]:
    """Return user and system time in ticks, and the same of reaped children."""
    return [int(ticks) for ticks in _stat(pid)[11:15]]


def _parent(pid: int) -> int:
    return int(_stat(pid)[1])


def _stat(pid: int) -> list[str]:
    """Return the fields of /proc/PID/stat from the state on.

    The program's name, in parentheses before them, may contain spaces.
    """
    return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()


def _tree(root: int) -> Iterator[int]:
    """Yield the ids of a process and its descendants."""
    yield root
    for task in Path(f"/proc/{root}/task").glob("*/children"):
        with suppress(*_GONE):
            for child in task.read_text().split():
                yield from _tree(int(child))


def _command(pid: int) -> str:
    return Path(f"/proc/{pid}/cmdline").read_text().replace("\0", " ")


def peak_rss(pid: int) -> int:
    """Return the peak memory of a running process in bytes, without its children."""
    return _memory(pid, "VmHWM:")


def _memory(pid: int, field: str) -> int:
    for line in Path(f"/proc/{pid}/status").read_text().splitlines():
        if line.startswith(field):
            return int(line.split()[1]) * 1024
    return 0  # a process that is ending has no memory any more
