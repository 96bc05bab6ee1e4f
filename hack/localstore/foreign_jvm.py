"""The JVM behind the foreign client, which answers each line of command with one line."""

import json
import os
import select
import signal
import subprocess
import threading
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from localstore.accounts import User
from localstore.cache import cache_root, content_key, make_once
from localstore.errors import LocalStoreError
from localstore.jars import classpath, ensure_jars
from localstore.java import java_command, jdk_tool
from localstore.process import spawn
from localstore.scratch import Scratch

SECONDS = 240.0
"""The default deadline of a call, in seconds."""

_SOURCES = Path(__file__).parents[1] / "java"

# Not all lints: some complain about annotations that the client's own jars lack.
_LINT = "-Xlint:cast,deprecation,fallthrough,overrides,rawtypes,static,unchecked"


def given(**arguments: object) -> dict[str, object]:
    """Return the arguments that are not None."""
    return {key: value for key, value in arguments.items() if value is not None}


class ForeignClientError(LocalStoreError):
    """A command that the client refused, with the Java exception's message.

    Attributes:
        kind: simple name of the Java exception.
    """

    def __init__(self, command: str, kind: str, message: str) -> None:
        super().__init__(f"{command}: {kind}: {message}")
        self.kind = kind


@dataclass(frozen=True)
class Launch:
    """The way to start the JVM.

    Attributes:
        command: program and arguments.
        environment: variables to add to ours.
        greeting: bytes that the JVM must read before the first command.
    """

    command: Sequence[str]
    environment: Mapping[str, str] = field(default_factory=dict)
    greeting: bytes = b""


class ForeignJvm:
    """One JVM, started when it is first needed, and again after it was ended.

    Calls may come from several threads and are answered one after the other.

    Args:
        launch: function that returns how to start it, called at each start.
    """

    def __init__(self, launch: Callable[[], Launch]) -> None:
        self._launch = launch
        self._lock = threading.Lock()
        self._child: subprocess.Popen[bytes] | None = None
        self._scratch: Scratch | None = None

    def close(self) -> None:
        """Stop the JVM."""
        with self._lock:
            self._end()
            if self._scratch is not None:
                self._scratch.remove()
                self._scratch = None

    def call(self, command: str, arguments: Mapping[str, object], seconds: float) -> dict[str, Any]:
        """Run a command.

        Args:
            command: the command's name.
            arguments: the command's arguments, without spaces.
            seconds: deadline in seconds; missing it ends the JVM.

        Returns:
            The answer.

        Raises:
            ForeignClientError: the client refused the command.
            LocalStoreError: no answer came.
        """
        line = " ".join([command, *(f"{key}={value}" for key, value in arguments.items())])
        with self._lock:
            answer = json.loads(self._exchange(line, time.monotonic() + seconds))
        if "error" in answer:
            raise ForeignClientError(line, answer["type"], answer["error"])
        result: dict[str, Any] = answer["result"]
        return result

    def _exchange(self, line: str, deadline: float) -> bytes:
        child = self._running()
        if child.stdin is None or child.stdout is None:
            raise LocalStoreError("the foreign client has no pipes")
        try:
            child.stdin.write(line.encode() + b"\n")
            child.stdin.flush()
            return _read_line(child.stdout.fileno(), deadline)
        except BaseException as error:  # a late answer must not reach another call
            self._end()
            if isinstance(error, OSError):
                raise LocalStoreError(f"{line}: {error}; see {self._log}") from error
            raise

    def _running(self) -> subprocess.Popen[bytes]:
        if self._child is None:
            if self._scratch is None:
                self._scratch = Scratch("foreign")
            launch = self._launch()
            self._child = spawn(
                launch.command,
                log=self._log,
                tethered=True,
                piped=True,
                environment=launch.environment,
            )
            if launch.greeting and self._child.stdin is not None:
                self._child.stdin.write(launch.greeting)
        return self._child

    @property
    def _log(self) -> Path:
        if self._scratch is None:
            raise LocalStoreError("the foreign client was not started")
        return self._scratch.path / "client.log"

    def _end(self) -> None:
        child, self._child = self._child, None
        if child is None:
            return
        if child.poll() is None:
            os.killpg(child.pid, signal.SIGKILL)
        for pipe in (child.stdin, child.stdout):
            if pipe is not None:
                pipe.close()
        child.wait()


def local_launch(
    uri: str,
    *,
    user: User | None,
    heap: str,
    lasting: bool = False,
    bundle: Path | None = None,
) -> Launch:
    """Return how to start the client on this machine.

    Args:
        uri: the controller.
        user: the account to log in with.
        heap: maximum heap.
        lasting: whether the JVM's speed matters more than a quick start.
        bundle: certificates in PEM by which it trusts the store; those of the JDK if left out.
    """
    command = client_command(uri, "serve", heap=heap, lasting=lasting)
    login = {"FOREIGN_USER": user.name, "FOREIGN_PASSWORD": user.password} if user else {}
    trust = {"FOREIGN_TRUST": str(bundle)} if bundle else {}
    return Launch(command, login | trust)


def client_command(uri: str, *words: str, heap: str = "1g", lasting: bool = False) -> list[str]:
    """Return the command line of a client on this machine.

    Args:
        uri: the controller.
        words: `serve`, or the only command that it runs, with its arguments.
        heap: maximum heap.
        lasting: whether the JVM's speed matters more than a quick start.
    """
    return java_command(
        main="ForeignClient",
        classpath=classpath(compiled_client()),
        heap=heap,
        lasting=lasting,
        arguments=[uri, *words],
    )


def compiled_client() -> Path:
    """Return the directory with the foreign client's classes, compiled once per source version."""
    jars = ensure_jars()

    def compile_into(target: Path) -> None:
        command = [jdk_tool("javac"), "-proc:none", _LINT, "-Werror", "-cp"]
        command += [f"{jars}/*", "-d", str(target), *map(str, sources)]
        done = subprocess.run(command, capture_output=True, text=True, check=False, timeout=120)
        if done.returncode != 0:
            raise LocalStoreError(f"javac failed:\n{done.stderr[-4000:]}")

    sources = sorted(_SOURCES.glob("*.java"))
    return make_once(cache_root() / f"foreign-{content_key(sources)}", compile_into)


def _read_line(source: int, deadline: float) -> bytes:
    line = b""
    while not line.endswith(b"\n"):
        ready, _, _ = select.select([source], [], [], max(0, deadline - time.monotonic()))
        if not ready:
            raise TimeoutError("no answer in time")
        part = os.read(source, 65536)
        if not part:
            raise ConnectionError("the JVM ended")
        line += part
    return line
