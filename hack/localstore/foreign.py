"""Pravega's own Java client as a witness: a JVM that answers one line for one line."""

import json
import os
import select
import signal
import subprocess
import threading
import time
from collections.abc import Callable, Iterable, Mapping
from pathlib import Path
from typing import Any, Literal, Self

from localstore import reports
from localstore.accounts import User
from localstore.cache import cache_root, content_key, make_once
from localstore.errors import LocalStoreError
from localstore.jars import classpath, ensure_jars
from localstore.java import java_command, jdk_tool
from localstore.process import spawn
from localstore.scratch import Scratch

_SOURCES = Path(__file__).parents[1] / "java"
_SECONDS = 120.0

# Not all of them: some complain about annotations missing from the client's own jars.
_LINT = "-Xlint:cast,deprecation,fallthrough,overrides,rawtypes,static,unchecked"


class ForeignClientError(LocalStoreError):
    """The client refused a command; its message is the Java exception's.

    Attributes:
        kind: Simple name of the Java exception.
    """

    def __init__(self, command: str, kind: str, message: str) -> None:
        super().__init__(f"{command}: {kind}: {message}")
        self.kind = kind


class ForeignClient:
    """One JVM with the official client, for one store.

    Calls may come from several threads and are answered one after the other. A call that misses
    its deadline costs the JVM, and with it the background writers; the next call starts another.

    Args:
        uri: The controller ("tcp://127.0.0.1:9090").
        user: Whom to log in as.
        heap: Most heap of the JVM.
    """

    def __init__(self, uri: str, *, user: User | None = None, heap: str = "1g") -> None:
        self.uri = uri
        self._user = user
        self._heap = heap
        self._lock = threading.Lock()
        self._child: subprocess.Popen[bytes] | None = None
        self._scratch: Scratch | None = None

    def __enter__(self) -> Self:
        """Starts the JVM."""
        try:
            self.start()
        except BaseException:
            self.close()
            raise
        return self

    def __exit__(self, *_exc: object) -> None:
        """Stops it."""
        self.close()

    def start(self) -> None:
        """Starts the JVM and returns when it answers; other calls would do so when needed."""
        self._call("ping", {})

    def close(self) -> None:
        """Ends the JVM."""
        with self._lock:
            self._end()
            if self._scratch is not None:
                self._scratch.remove()
                self._scratch = None

    def create_scope(self, scope: str) -> bool:
        """Makes a scope, and tells whether it was not there."""
        return self._changed("createScope", {"scope": scope})

    def create(self, scope: str, stream: str, *, segments: int = 1) -> bool:
        """Makes a stream of so many segments, and its scope, and tells whether it is new."""
        return self._changed("create", _of(scope, stream) | {"segments": segments})

    def seal(self, scope: str, stream: str) -> bool:
        """Seals a stream."""
        return self._changed("seal", _of(scope, stream))

    def delete(self, scope: str, stream: str) -> bool:
        """Seals a stream and deletes it."""
        return self._changed("delete", _of(scope, stream))

    def delete_scope(self, scope: str) -> bool:
        """Deletes a scope and all that is in it."""
        return self._changed("deleteScope", {"scope": scope})

    def truncate(
        self,
        scope: str,
        stream: str,
        *,
        cut: str | None = None,
        offsets: Mapping[int, int] | None = None,
    ) -> bool:
        """Truncates a stream.

        Args:
            scope: Its scope.
            stream: Its name.
            cut: Where, as the text of a stream cut; at the tail when left out.
            offsets: Where, as an offset for each segment id.

        Returns:
            Whether it was done.
        """
        pairs = ",".join(f"{segment}:{offset}" for segment, offset in (offsets or {}).items())
        return self._changed(
            "truncate", _of(scope, stream) | _given(cut=cut, offsets=pairs or None)
        )

    def scale(
        self,
        scope: str,
        stream: str,
        *,
        segments: Iterable[int] = (),
        ranges: Iterable[tuple[float, float]] = (),
    ) -> bool:
        """Replaces segments.

        Args:
            scope: The stream's scope.
            stream: Its name.
            segments: Ids of those that end; the one with the lowest keys when left out.
            ranges: Key ranges of the new ones; the two halves of the old range when left out.

        Returns:
            Whether it was done.
        """
        new = ",".join(f"{low:.17f}-{high:.17f}" for low, high in ranges)
        return self._changed(
            "scale",
            _of(scope, stream) | _given(segments=_list(segments), ranges=new or None),
        )

    def info(self, scope: str, stream: str) -> reports.Info:
        """Describes a stream and its segments."""
        answer = self._call("info", _of(scope, stream))
        segments = tuple(reports.Segment(**segment) for segment in answer.pop("segments"))
        return reports.Info(**answer, segments=segments)

    def write(
        self,
        scope: str,
        stream: str,
        *,
        events: int,
        size: int = 100,
        keys: int = 1,
        first: int = 0,
        seed: int = 0,
        segments: Iterable[int] = (),
        seconds: float = _SECONDS,
    ) -> reports.Written:
        """Writes events at full speed.

        Args:
            scope: The stream's scope.
            stream: Its name.
            events: How many.
            size: Bytes of each payload, 8 MiB at most.
            keys: Over how many routing keys they go in turn.
            first: Number of the first event. With an earlier run's number of events it continues
                that run's keys, be it in another stream.
            seed: Another seed gives other keys and other padding.
            segments: Ids of the segments the keys may fall into; all when left out.
            seconds: Deadline.

        Returns:
            What was written.
        """
        arguments = _of(scope, stream) | {
            "events": events,
            "size": size,
            "keys": keys,
            "first": first,
            "seed": seed,
        }
        arguments |= _given(segments=_list(segments))
        return reports.Written(**self._call("write", arguments, seconds))

    def start_writer(
        self,
        scope: str,
        stream: str,
        *,
        rate: int,
        size: int = 100,
        keys: int = 1,
        first: int = 0,
        seed: int = 0,
    ) -> Callable[[], reports.Paced]:
        """Starts to write in the background at a steady rate.

        Args:
            scope: The stream's scope.
            stream: Its name.
            rate: Events per second.
            size: As for `write`.
            keys: As for `write`.
            first: As for `write`.
            seed: As for `write`.

        Returns:
            What stops the writer and tells how it fared.
        """
        arguments = _of(scope, stream) | {
            "rate": rate,
            "size": size,
            "keys": keys,
            "first": first,
            "seed": seed,
        }
        number = self._call("startWriter", arguments)["writer"]
        return lambda: reports.Paced(**self._call("stopWriter", {"writer": number}))

    def read(
        self, scope: str, stream: str, *, patience: int = 60, seconds: float = _SECONDS
    ) -> reports.Read:
        """Reads a stream from its head to its present tail with a reader group.

        Args:
            scope: The stream's scope.
            stream: Its name.
            patience: After so many seconds without an event it gives up.
            seconds: Deadline.

        Returns:
            What was found.
        """
        arguments = _of(scope, stream) | {"patience": patience}
        return reports.Read(**self._call("read", arguments, seconds))

    def visible(self, scope: str, stream: str, *, seconds: float = _SECONDS) -> reports.Visible:
        """Counts what a reader that comes now finds."""
        return reports.Visible(**self._call("visible", _of(scope, stream), seconds))

    def copy(
        self,
        scope: str,
        source: str,
        target: str,
        *,
        mode: Literal["batches", "txn", "events"] = "batches",
        threads: int = 2,
        segments: int = 4,
        seconds: float = 600.0,
    ) -> reports.Copied:
        """Copies a stream with the official client, the baseline of the benchmarks.

        Args:
            scope: Scope of both streams.
            source: Stream to read.
            target: Stream to make and write.
            mode: How to write.
            threads: How many segments at once.
            segments: Segments of the target.
            seconds: Deadline.

        Returns:
            What was copied and what it cost.
        """
        arguments = {
            "scope": scope,
            "source": source,
            "target": target,
            "mode": mode,
            "threads": threads,
            "segments": segments,
        }
        return reports.Copied(**self._call("copy", arguments, seconds))

    def _changed(self, command: str, arguments: Mapping[str, object]) -> bool:
        return bool(self._call(command, arguments)["changed"])

    def _call(
        self, command: str, arguments: Mapping[str, object], seconds: float = _SECONDS
    ) -> dict[str, Any]:
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
        except BaseException as error:  # an answer may still come: it must not meet another call
            self._end()
            if isinstance(error, OSError):
                raise LocalStoreError(f"{line}: {error}; see {self._log}") from error
            raise

    def _running(self) -> subprocess.Popen[bytes]:
        if self._child is None:
            if self._scratch is None:
                self._scratch = Scratch("foreign")
            command = java_command(
                main="ForeignClient",
                classpath=classpath(compiled_client()),
                heap=self._heap,
                arguments=[self.uri, "serve"],
            )
            user = self._user
            login = {"FOREIGN_USER": user.name, "FOREIGN_PASSWORD": user.password} if user else {}
            self._child = spawn(
                command, log=self._log, tethered=True, piped=True, environment=login
            )
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


def compiled_client() -> Path:
    """Gives the directory with the foreign client's classes, compiled once for each source."""
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


def _of(scope: str, stream: str) -> dict[str, object]:
    return {"scope": scope, "stream": stream}


def _given(**arguments: object) -> dict[str, object]:
    return {key: value for key, value in arguments.items() if value is not None}


def _list(numbers: Iterable[int]) -> str | None:
    return ",".join(map(str, numbers)) or None
