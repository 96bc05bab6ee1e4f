"""Processes of the `sluice` command that need not import it.

To import the command takes a second of a processor, and tests start it hundreds of times. So they
fork it from a process that has imported it already (`warm_server`). All else is as in a new
process: program, arguments, files, environment, directory, session, signals and exit code.
"""

from __future__ import annotations

import json
import os
import socket
import subprocess
import sys
from contextlib import contextmanager
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from support.command import warm_server

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

SLUICE: Final = Path(sys.executable).with_name("sluice")
"""The installed command."""

_NUMBER_BYTES: Final = 64


class Server:
    """The process that forks commands. It ends with the tests."""

    def __init__(self) -> None:
        self._own, its = _messages()
        with its:
            self._process = subprocess.Popen(
                [sys.executable, warm_server.__file__, str(its.fileno())],
                pass_fds=[its.fileno()],
            )

    def close(self) -> None:
        """End the process. Commands that still run continue."""
        self._own.close()
        self._process.wait()

    def fork(self, request: dict[str, object], files: list[int]) -> socket.socket:
        """Start a command, and return the socket that gets its pid and its status."""
        status, its = _messages()
        with its:
            files = [*files, its.fileno()]
            socket.send_fds(self._own, [json.dumps(request).encode()], files)
        return status


def _messages() -> tuple[socket.socket, socket.socket]:
    """Return two connected sockets that keep messages apart: a pid and a status, for example."""
    return socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)


_servers: list[Callable[[], Server]] = []


@contextmanager
def commands() -> Iterator[None]:
    """Fork the commands of a block. The first one starts the process that does."""
    server = cache(Server)
    _servers.append(server)
    try:
        yield
    finally:
        _servers.pop()
        if server.cache_info().currsize:
            server().close()


_GIVEN: Final = (
    *("args", "executable", "preexec_fn", "close_fds", "pass_fds", "cwd", "env", "startupinfo"),
    *("creationflags", "shell", "p2cread", "p2cwrite", "c2pread", "c2pwrite", "errread"),
    *("errwrite", "restore_signals", "gid", "gids", "uid", "umask", "start_new_session"),
    "process_group",
)
"""The parameters of Popen's private method that starts a process, in Python 3.11 to 3.13."""


class Popen(subprocess.Popen[Any]):
    """`subprocess.Popen` of the `sluice` command, without its imports.

    Other programs, and commands outside of `commands`, are started as usual.
    """

    _status: socket.socket | None = None

    def _execute_child(self, *values: Any) -> None:
        given = dict(zip(_GIVEN, values, strict=True))
        words = [os.fspath(word) for word in given["args"]]
        if not _servers or words[0] != str(SLUICE):
            super()._execute_child(*values)  # type: ignore[misc]  # not in the stubs
            return
        assert not given["shell"]
        assert not given["pass_fds"]
        request = {
            "argv": words,
            "env": dict(os.environ if given["env"] is None else given["env"]),
            "cwd": os.fspath(given["cwd"] or Path.cwd()),
            "session": given["start_new_session"],
        }
        pipes = [given[name] for name in ("p2cread", "c2pwrite", "errwrite")]
        files = [own if pipe == -1 else pipe for own, pipe in enumerate(pipes)]
        self._status = _servers[-1]().fork(request, files)
        self.pid = self._next_number()
        self._child_created = True
        self._close_pipe_fds(*(given[name] for name in _GIVEN[10:16]))  # type: ignore[attr-defined]

    def _try_wait(self, flags: int) -> tuple[int, int]:
        if self._status is None:
            return super()._try_wait(flags)  # type: ignore[misc, no-any-return]
        self._status.setblocking(not flags & os.WNOHANG)
        try:
            number = self._next_number()
        except BlockingIOError:
            return 0, 0
        self._status.close()
        return self.pid, number

    def _next_number(self) -> int:
        """Return the pid, which comes first, or the status."""
        assert self._status is not None
        answer = self._status.recv(_NUMBER_BYTES)
        if not answer:
            self._status.close()
            raise ChildProcessError(f"the process that forks commands ended: {self.args!r}")
        return int(answer)

    def _internal_poll(self, _deadstate: int | None = None, **_: Any) -> int | None:
        if self._status is None:
            return super()._internal_poll(_deadstate)  # type: ignore[misc, no-any-return]
        if self.returncode is None and self._waitpid_lock.acquire(blocking=False):  # type: ignore[attr-defined]
            try:
                pid, status = self._try_wait(os.WNOHANG)
                if pid and self.returncode is None:
                    self._handle_exitstatus(status)  # type: ignore[attr-defined]
            finally:
                self._waitpid_lock.release()  # type: ignore[attr-defined]
        return self.returncode


def run(
    words: list[Any], *, given: str = "", seconds: float = 60.0, **options: Any
) -> subprocess.CompletedProcess[str]:
    """Run a command to its end, as `subprocess.run` does with captured output."""
    process = Popen(
        words,
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        **options,
    )
    try:
        out, err = process.communicate(given, timeout=seconds)
    except BaseException:
        process.kill()
        process.communicate()
        raise
    return subprocess.CompletedProcess(words, process.returncode, out, err)
