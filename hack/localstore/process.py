"""A server process in a group of its own, with a reliable stop."""

import atexit
import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import AbstractContextManager
from pathlib import Path
from typing import Self

from localstore.cache import cache_root, locked
from localstore.errors import LocalStoreError

_TETHER = Path(__file__).with_name("tether.py")
_POLL_SECONDS = 0.05
_TAIL_LINES = 30

# The kernel's parent-death signal refers to the parent's thread. So a thread that lives as long as
# the interpreter must start a tethered process, not a short-lived thread of a test.
_spawner = ThreadPoolExecutor(max_workers=1, thread_name_prefix="localstore-spawner")

# A process that may outlive us still has to be reaped if it ends before us. And Popen warns if its
# handle is dropped while the child runs. So the handles stay here; other code uses the pid.
_left_running: dict[int, subprocess.Popen[bytes]] = {}


@atexit.register
def _disown() -> None:
    """Release the processes at our end: reap the ended ones, and let the others run on."""
    for child in _left_running.values():
        if child.poll() is None:
            child.returncode = 0  # a dropped handle warns unless it has a return code


def one_start() -> AbstractContextManager[None]:
    """Hold the right to start a store. One process of this machine has it at a time.

    A store that starts alone takes 5 s of processor time. When four stores started at the same time
    on two processors, each took 22 to 44 s.
    """
    return locked(cache_root() / "start.lock")


class Process:
    """One process with its group, identified by its pid and its start time.

    The pid alone does not suffice: the kernel may give it to an unrelated process later.

    Args:
        name: name for messages.
        pid: process id, also the id of the group.
        started: start in clock ticks since boot.
        log: file with the process's output.
        child: handle, if this interpreter started the process.
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
        """Start a process.

        Args:
            name: name for messages.
            command: program and arguments.
            log: file to which the output is appended.
            tethered: whether the process must end with this interpreter, however that ends.
            environment: variables to add to ours.

        Returns:
            The process.
        """
        child = spawn(command, log=log, tethered=tethered, environment=environment)
        if not tethered:
            _left_running[child.pid] = child
        return cls(name=name, pid=child.pid, started=start_of(child.pid) or 0, log=log, child=child)

    @property
    def alive(self) -> bool:
        """Tell whether the process runs."""
        if self._child is None:
            return self.started == start_of(self.pid)
        if self._child.poll() is None:
            return True
        _left_running.pop(self.pid, None)
        return False

    def wait_ready(self, check: Callable[[], bool], *, seconds: float) -> None:
        """Wait until a check passes.

        Args:
            check: function that tells whether the server serves.
            seconds: seconds to wait.

        Raises:
            LocalStoreError: the process ended or was too slow; the message ends with its log's
                tail.
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
        """Stop the process with SIGTERM, and kill it if it still runs after `grace` seconds."""
        self._signal(signal.SIGTERM)
        if not self._ended_within(grace):
            self.kill()

    def kill(self) -> None:
        """Kill the process, as in a crash, and wait until it is gone."""
        self._signal(signal.SIGKILL)
        if not self._ended_within(10.0):
            raise LocalStoreError(f"{self.name} (pid {self.pid}) does not die")

    def log_tail(self) -> str:
        """Return the end of the log, with the log's path."""
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
    """Start a program in a process group of its own, so that only we get Ctrl-C.

    Args:
        command: program and arguments.
        log: file to which the output is appended.
        tethered: whether the process must end with this interpreter, however that ends.
        piped: whether the caller gets the process's standard input and output.
        environment: variables to add to ours.

    Returns:
        The process's handle.
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


def start_of(pid: int) -> int | None:
    """Return the start of a process in ticks since boot, or None if it is gone or a zombie."""
    try:
        stat = Path(f"/proc/{pid}/stat").read_text()
    except (FileNotFoundError, ProcessLookupError):
        return None
    # The second field is the program's name in parentheses, which may contain spaces.
    state, *rest = stat.rpartition(")")[2].split()
    return None if state == "Z" else int(rest[18])
