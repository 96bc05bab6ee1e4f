"""A copy that follows its source, as a user runs it: a process with a file."""

from __future__ import annotations

import json
import os
import pty
import re
import signal
import threading
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from support.command import warm
from support.command.sluice_command import Copy, Filed, Finished
from support.until import PATIENCE, until

if TYPE_CHECKING:
    import subprocess
    from collections.abc import Iterator
    from contextlib import AbstractContextManager
    from pathlib import Path

LIVE = "is followed: all planned bytes are verified and readable"
"""The output of a process once it follows its source."""


@dataclass
class FollowingCopy(Copy):
    """A StreamCopy in a file that follows its source.

    Args:
        ends: the fields that say how it ends.
    """

    ends: dict[str, Any] = field(default_factory=dict)

    @property
    def file(self) -> Path:
        """The file, written anew."""
        path = super().file
        fields = {"mode": "Continuous", **self.ends}
        more = "".join(f"  {name}: {json.dumps(value)}\n" for name, value in fields.items())
        path.write_text(path.read_text() + more)
        return path

    def following(self, *options: str) -> AbstractContextManager[Process]:
        """Return a block with a process that follows the source."""
        return following(self, *options)


@contextmanager
def following(file: Filed, *options: str) -> Iterator[Process]:
    """Yield a process that already follows its source. The end of the block kills it."""
    process = file.start("run", *options)
    one = Process(process)
    try:
        one.wait_for(LIVE)
        yield one
    finally:
        process.kill()
        one.ended()


class Process:
    """A process that runs the command. Its output can be read while it runs."""

    def __init__(self, process: subprocess.Popen[str]) -> None:
        self._process = process
        self._said: list[str] = []
        self._finished: Finished | None = None
        self._reader = threading.Thread(target=self._read, daemon=True)
        self._reader.start()

    def _read(self) -> None:
        assert self._process.stderr is not None
        with self._process.stderr as err:
            self._said.extend(err)

    @property
    def pid(self) -> int:
        """The process id."""
        return self._process.pid

    @property
    def runs(self) -> bool:
        """Tell whether the process runs."""
        return self._process.poll() is None

    @property
    def said(self) -> str:
        """The output so far."""
        return "".join(self._said)

    def wait_for(self, words: str) -> None:
        """Wait until the output contains these words."""
        until(words, lambda: words in self.said or self._process.poll() is not None)
        assert words in self.said, self.said

    def close(self) -> None:
        """Leave nothing running."""
        self._process.kill()
        self.ended()

    def interrupt(self) -> Finished:
        """Interrupt the process, as a user does at a terminal."""
        self._process.send_signal(signal.SIGINT)
        return self.ended()

    def ended(self) -> Finished:
        """Wait for the end of the process."""
        if self._finished is None:
            code = self._process.wait(PATIENCE)
            self._reader.join()
            assert self._process.stdout is not None
            with self._process.stdout as out:
                self._finished = Finished(code, out.read(), self.said)
        return self._finished


class Terminal:
    """A process at a terminal of its own.

    Args:
        file: the command's file.
    """

    def __init__(self, file: Filed) -> None:
        own, its = pty.openpty()
        self._process = warm.Popen(
            [warm.SLUICE, "run", "-f", file.file],
            stderr=its,
            stdin=its,
            stdout=its,
            env={**os.environ, **file.environment},
            start_new_session=True,
        )
        os.close(its)
        self._own = own
        self._said = bytearray()
        self._reader = threading.Thread(target=self._read, daemon=True)
        self._reader.start()

    def _read(self) -> None:
        with suppress(OSError):  # the read fails once the process is gone
            while data := os.read(self._own, 1 << 16):
                self._said += data

    @property
    def said(self) -> str:
        """The text drawn so far, without colours and cursor movements."""
        return re.sub(r"\x1b\[[0-9;?]*[A-Za-z]", "", self._said.decode(errors="replace"))

    def wait_for(self, words: str) -> None:
        """Wait until the process has drawn these words."""
        until(words, lambda: words in self.said or self._process.poll() is not None)
        assert words in self.said, self.said

    def interrupt(self) -> None:
        """Interrupt the process, and wait for its end."""
        self._process.send_signal(signal.SIGINT)
        self._process.wait(PATIENCE)
        self._reader.join()
        os.close(self._own)
