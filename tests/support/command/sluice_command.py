"""The `sluice` command as users run it: a process with a file."""

from __future__ import annotations

import json
import os
import subprocess
from abc import ABC, abstractmethod
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

from sluice.pipelines.spark.sparkconf import DAEMON
from support.command import warm
from support.command.spelling import parsed

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

SECONDS = 240.0

MANIFEST = """\
apiVersion: sluice.dev/v1alpha1
kind: StreamStore
metadata: {{name: local}}
spec: {{pravega: {{controllerURI: "{uri}"}}, access: {{operations: {operations}}}}}
---
apiVersion: sluice.dev/v1alpha1
kind: StreamCopy
metadata: {{name: {name}}}
spec:
  {origin}
  target: {target}
  mode: {mode}
  onTruncation: {on_truncation}
  sourceOnComplete: {on_complete}
  limits: {limits}
"""


@dataclass(frozen=True)
class Finished:
    """A command that has ended."""

    code: int
    out: str
    err: str

    @property
    def json(self) -> Any:
        """The output of `--output json`."""
        return parsed(self.out)


class Filed(ABC):
    """The command's input in a file.

    Attributes:
        log_level: the command's log level.
        environment: variables for the command.
    """

    log_level = "debug"
    environment: dict[str, str]

    @property
    @abstractmethod
    def file(self) -> Path:
        """The file, written anew."""

    def start(self, verb: str = "run", *options: str) -> subprocess.Popen[str]:
        """Start the command in a session of its own, so that signals reach only one process."""
        return warm.Popen(
            [warm.SLUICE, "--log-level", self.log_level, verb, "-f", self.file, *options],
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
            env={**os.environ, **self.environment},
            start_new_session=True,
        )

    @contextmanager
    def running(self, verb: str = "run", *options: str) -> Iterator[subprocess.Popen[str]]:
        """Yield the running command, and kill it at the end of the block if it still runs.

        An error in the block gets the command's output so far as a note.
        """
        process = self.start(verb, *options)
        try:
            yield process
        except BaseException as error:
            process.kill()
            error.add_note(f"the command ended with {process.wait()}: {process.communicate()[1]}")
            raise
        finally:
            process.kill()
            process.communicate()

    def run(self, verb: str = "run", *options: str, seconds: float = SECONDS) -> Finished:
        """Run the command to its end."""
        return finish(self.start(verb, *options), seconds)


@dataclass
class Copy(Filed):
    """A StreamCopy in a file.

    Args:
        folder: directory for the file and logs.
        uri: the store's address.
        source: scope and stream.
        target: scope and stream.
        limits: the copy's limits.
        ranges: ranges of the source, as YAML has them.
        mode: the copy's `mode`.
        exists: the copy's `onExists`.
        name: the resource's name; the target's by default.
        more: sources after the first, with their ranges.
        seal: whether the target is sealed when it is whole.
        environment: variables for the command.
        on_truncation: the copy's `onTruncation`.
        on_complete: the copy's `sourceOnComplete`.
        scope_policy: the policy for a target scope that does not exist.
        operations: operations that the store's access allows.
    """

    folder: Path
    uri: str
    source: tuple[str, str]
    target: tuple[str, str]
    limits: dict[str, object] = field(default_factory=dict)
    ranges: list[dict[str, object]] = field(default_factory=list)
    more: list[tuple[tuple[str, str], list[dict[str, object]]]] = field(default_factory=list)
    seal: bool = False
    environment: dict[str, str] = field(default_factory=dict)
    on_truncation: str = "Fail"
    on_complete: str = "Retain"
    operations: Sequence[str] = ("Read", "Create", "Append", "Delete")
    mode: str = "Snapshot"
    exists: str = "Fail"
    scope_policy: str = "MustExist"
    name: str = ""

    @property
    def origin(self) -> str:
        """The copy's sources, as YAML has them."""
        sources = [
            {"storeRef": {"name": "local"}, "scope": scope, "stream": stream, "ranges": ranges}
            for (scope, stream), ranges in [(self.source, self.ranges), *self.more]
        ]
        return json.dumps({"sources": sources} if self.more else {"source": sources[0]})[1:-1]

    @property
    def file(self) -> Path:
        """The file, written anew."""
        path = self.folder / "copy.yaml"
        path.write_text(
            MANIFEST.format(
                uri=self.uri,
                name=self.name or self.target[1],
                origin=self.origin,
                target=json.dumps(
                    {
                        "storeRef": {"name": "local"},
                        "scope": self.target[0],
                        "stream": self.target[1],
                        "sealWhenDone": self.seal,
                        "onExists": self.exists,
                        "scopePolicy": self.scope_policy,
                    }
                ),
                mode=self.mode,
                on_truncation=self.on_truncation,
                on_complete=self.on_complete,
                operations=json.dumps(list(self.operations)),
                limits=json.dumps(self.limits),
            )
        )
        return path


def finish(process: subprocess.Popen[str], seconds: float = SECONDS) -> Finished:
    """Wait for a command's end."""
    try:
        out, err = process.communicate(timeout=seconds)
    except subprocess.TimeoutExpired:
        process.kill()
        raise
    return Finished(process.returncode, out, err)


def workers_of(pid: int) -> list[int]:
    """Return the process ids of a driver's Python workers: the forks of Spark's daemon."""
    daemons = [child for child in descendants(pid) if DAEMON in _command(child)]
    return [worker for daemon in daemons for worker in _children(daemon)]


def descendants(pid: int) -> list[int]:
    """Return the process ids of a process's children, of their children, and so on."""
    found = _children(pid)
    return found + [deeper for child in found for deeper in descendants(child)]


def is_alive(pid: int) -> bool:
    """Tell whether a process runs. An ended process that was not waited for does not."""
    try:
        stat = Path(f"/proc/{pid}/stat").read_text()
    except (FileNotFoundError, ProcessLookupError):
        return False
    return stat.rpartition(")")[2].split()[0] not in "ZX"


def _children(pid: int) -> list[int]:
    children: list[int] = []
    for task in Path(f"/proc/{pid}/task").glob("*/children"):
        with suppress(FileNotFoundError, ProcessLookupError):  # a thread may have ended since
            children += map(int, task.read_text().split())
    return children


def _command(pid: int) -> str:
    return Path(f"/proc/{pid}/cmdline").read_text().replace("\0", " ")
