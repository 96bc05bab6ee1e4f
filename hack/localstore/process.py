"""A server process: started in a group of its own, awaited, and stopped for certain."""

import atexit
import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Self

from localstore.errors import LocalStoreError

_TETHER = Path(__file__).with_name("tether.py")
_POLL_SECONDS = 0.05
_TAIL_LINES = 30

# The kernel's parent-death signal means the parent's thread. A tethered process must therefore be
# born of a thread that lives as long as the interpreter, not of a test's short-lived one that
# happens to restart a server.
_spawner = ThreadPoolExecutor(max_workers=1, thread_name_prefix="localstore-spawner")

# What is meant to outlive us still has to be reaped if it ends before us, and Popen objects to
# being dropped while its child runs. So the handles stay here; others know the process by its pid.
_left_running: dict[int, subprocess.Popen[bytes]] = {}


@atexit.register
def _disown() -> None:
    """Let them go when we end: those that still run are somebody else's, the others are reaped."""
    for child in _left_running.values():
        if child.poll() is None:
            child.returncode = 0  # what a handle that is dropped looks at


class Process:
    """One process with its group, known by its pid and the time it started.

    A pid alone may have passed on to somebody else's process since it was written down.

    Args:
        name: What to call it in messages.
        pid: Its process id, also the id of its group.
        started: Its start in clock ticks since boot.
        log: Where its output goes.
        child: Its handle when this interpreter started it.
    """

    def __init__(
        self,
        *,
        name: str,
        pid: int,
        started: int,
        log: Path,
        child: subprocess.Popen[bytes] | None = None,
    ) -> None:
        self.name = name
        self.pid = pid
        self.started = started
        self.log = log
        self._child = child

    @classmethod
    def spawn(
        cls,
        name: str,
        command: Sequence[str],
        *,
        log: Path,
        tethered: bool,
        environment: Mapping[str, str] | None = None,
    ) -> Self:
        """Starts a process.

        Args:
            name: What to call it in messages.
            command: Program and arguments.
            log: File that its output is appended to.
            tethered: Whether it must not outlive this interpreter, however that ends.
            environment: Variables to add to ours.

        Returns:
            The process.
        """
        child = spawn(command, log=log, tethered=tethered, environment=environment)
        if not tethered:
            _left_running[child.pid] = child
        return cls(name=name, pid=child.pid, started=_start(child.pid) or 0, log=log, child=child)

    @property
    def alive(self) -> bool:
        """Whether it runs."""
        if self._child is None:
            return self.started == _start(self.pid)
        if self._child.poll() is None:
            return True
        _left_running.pop(self.pid, None)
        return False

    def wait_ready(self, check: Callable[[], bool], *, seconds: float) -> None:
        """Waits until a check passes.

        Args:
            check: Tells whether the server serves.
            seconds: How long to wait.

        Raises:
            LocalStoreError: It died or was too slow; the message ends with its log's tail.
        """
        deadline = time.monotonic() + seconds
        while not check():
            if not self.alive:
                raise LocalStoreError(f"{self.name} died while starting\n{self.log_tail()}")
            if time.monotonic() > deadline:
                raise LocalStoreError(
                    f"{self.name} does not serve after {seconds:.0f} s\n{self.log_tail()}"
                )
            time.sleep(_POLL_SECONDS)

    def stop(self, *, grace: float = 10.0) -> None:
        """Asks it to end, and kills it when it takes longer than the grace."""
        self._signal(signal.SIGTERM)
        if not self._ended_within(grace):
            self.kill()

    def kill(self) -> None:
        """Kills it as a crash would, and returns when it is gone."""
        self._signal(signal.SIGKILL)
        if not self._ended_within(10.0):
            raise LocalStoreError(f"{self.name} (pid {self.pid}) does not die")

    def log_tail(self) -> str:
        """Gives the end of its log, with the log's path."""
        lines = self.log.read_text(errors="replace").splitlines()[-_TAIL_LINES:]
        return "\n".join([f"the end of {self.log}:", *lines])

    def _signal(self, number: signal.Signals) -> None:
        if self.alive:
            os.killpg(self.pid, number)

    def _ended_within(self, seconds: float) -> bool:
        deadline = time.monotonic() + seconds
        while self.alive:
            if time.monotonic() > deadline:
                return False
            time.sleep(_POLL_SECONDS)
        return True


def spawn(
    command: Sequence[str],
    *,
    log: Path,
    tethered: bool,
    piped: bool = False,
    environment: Mapping[str, str] | None = None,
) -> subprocess.Popen[bytes]:
    """Starts a program in a process group of its own, so that Ctrl-C here is ours to handle.

    Args:
        command: Program and arguments.
        log: File that its output is appended to.
        tethered: Whether it must not outlive this interpreter, however that ends.
        piped: Whether its standard input and output are for the caller.
        environment: Variables to add to ours.

    Returns:
        Its handle.
    """
    if tethered:
        command = [sys.executable, "-I", "-S", str(_TETHER), str(os.getpid()), *command]
    with log.open("ab") as output:
        return _spawner.submit(
            subprocess.Popen[bytes],
            command,
            stdin=subprocess.PIPE if piped else subprocess.DEVNULL,
            stdout=subprocess.PIPE if piped else output,
            stderr=output,
            start_new_session=True,
            env={**os.environ, **(environment or {})},
        ).result()


def _start(pid: int) -> int | None:
    """Gives when a process started, or nothing if it is gone or only waits to be reaped."""
    try:
        stat = Path(f"/proc/{pid}/stat").read_text()
    except (FileNotFoundError, ProcessLookupError):
        return None
    # The second field is the program's name in parentheses and may hold spaces of its own.
    state, *rest = stat.rpartition(")")[2].split()
    return None if state == "Z" else int(rest[18])
