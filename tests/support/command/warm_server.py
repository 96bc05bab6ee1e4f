"""Fork the `sluice` command from a process that has imported it.

python warm_server.py FD

FD is a socket to the tests, whose requests carry the files of a command and a socket that gets the
command's pid and, at its end, its status. The process has no threads, so a fork of it is as sound
as a new process.
"""

from __future__ import annotations

import gc
import io
import json
import os
import signal
import socket
import sys
from contextlib import suppress
from importlib import import_module
from pathlib import Path
from selectors import EVENT_READ, DefaultSelector
from typing import Any, Final

REQUEST_BYTES: Final = 1 << 20
"""A size above a socket's longest message. A longer request fails at its sender."""
FILES: Final = 4
"""Number of files in a request: standard input, output and error, and the socket for the status."""

LATE: Final = {"operator": ("sluice.handlers.main",)}
"""Modules that a command imports when it runs, besides those of all commands."""
LATE_OF_ALL: Final = ("sluice.console", "sluice.stores.pravega.store")

LIBRARY: Final = "kubernetes.aio.config"
"""A package that looks for a kubeconfig in the environment when it is imported."""


def main() -> int | str | None:
    """Serve until the tests close their socket. In a fork, run the command."""
    tests = socket.socket(fileno=int(sys.argv[1]))
    del sys.path[0]  # this folder, which is not in a command's path
    if _serve(tests):
        result: int | str | None = import_module("sluice.cli").main()
        return result
    return 0


def _import_for(words: list[str]) -> None:
    """Import the modules that a command line needs, unless they are imported already."""
    commands = import_module("sluice.cli").COMMANDS
    name = next((word for word in words if word in commands), None)
    if name is None:
        return
    modules = [f"sluice.commands.{commands[name]}", *LATE_OF_ALL, *LATE.get(name, ())]
    gc.disable()
    for module in modules:
        import_module(module)
    gc.freeze()
    gc.enable()


def _serve(tests: socket.socket) -> bool:
    """Serve until the tests close their socket. Return True in a fork, False in this process."""
    woken, wake = socket.socketpair()
    for one in (woken, wake):
        one.setblocking(False)  # noqa: FBT003 - its only parameter
    signal.set_wakeup_fd(wake.fileno())
    signal.signal(signal.SIGCHLD, lambda *_: None)
    running: dict[int, socket.socket] = {}
    with DefaultSelector() as events:
        events.register(tests, EVENT_READ)
        events.register(woken, EVENT_READ)
        while True:
            for key, _ in events.select():
                if key.fileobj is woken:
                    woken.recv(REQUEST_BYTES)
                    _tell_ended(running)
                    continue
                message, files, _, _ = socket.recv_fds(tests, REQUEST_BYTES, FILES)
                if not message:
                    return False
                status = socket.socket(fileno=files[-1])
                request = json.loads(message)
                _import_for(request["argv"])
                if (pid := os.fork()) == 0:
                    _become(request, files[:-1])
                    for one in (tests, woken, wake, status, *running.values()):
                        one.close()
                    return True
                for file in files[:-1]:
                    os.close(file)
                status.sendall(str(pid).encode())
                running[pid] = status


def _tell_ended(running: dict[int, socket.socket]) -> None:
    """Send the status of each ended command to its test, if the test still waits."""
    for pid in list(running):
        ended, status = os.waitpid(pid, os.WNOHANG)
        if ended:
            with running.pop(pid) as waiting, suppress(BrokenPipeError):
                waiting.sendall(str(status).encode())


def _become(request: dict[str, Any], files: list[int]) -> None:
    """Take on the files, directory, environment and arguments of a new process."""
    signal.set_wakeup_fd(-1)
    signal.signal(signal.SIGCHLD, signal.SIG_DFL)
    if request["session"]:
        os.setsid()
    for own, given in enumerate(files):
        os.dup2(given, own)
        os.close(given)
    os.chdir(request["cwd"])
    os.environ.clear()
    os.environ.update(request["env"])
    sys.argv = request["argv"]
    sys.stdin = _text(0, "r", "strict")
    sys.stdout = _text(1, "w", "strict")
    sys.stderr = _text(2, "w", "backslashreplace")
    _look_again()


def _look_again() -> None:
    """Update modules that read the environment when they were imported."""
    if LIBRARY in sys.modules:
        for module in (LIBRARY, f"{LIBRARY}.kube_config"):
            default = os.environ.get("KUBECONFIG", str(Path.home() / ".kube/config"))
            sys.modules[module].KUBE_CONFIG_DEFAULT_LOCATION = default  # type: ignore[attr-defined]
    page = import_module("sluice.console.page")
    for console in (page.err, page.out, page.note):
        console.__init__(stderr=console.stderr)  # in place, since other modules hold the object


def _text(file: int, mode: str, errors: str) -> io.TextIOWrapper:
    """Open a standard file as Python does at its start."""
    raw = open(file, f"{mode}b", closefd=False)  # noqa: SIM115 - open as long as the process
    by_line = mode == "w" and (file == 2 or raw.isatty())
    return io.TextIOWrapper(raw, encoding="utf-8", errors=errors, line_buffering=by_line)


if __name__ == "__main__":
    sys.exit(main())
