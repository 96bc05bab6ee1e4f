"""A Spark session in a process of its own, to run snippets of Python in."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import textwrap
from pathlib import Path
from typing import TYPE_CHECKING, Any, Self

if TYPE_CHECKING:
    from collections.abc import Mapping

_PROGRAM = Path(__file__).with_name("spark_program.py")
_ROOT = Path(__file__).parents[3]


class SparkFailed(Exception):
    """A snippet failed in Spark. The text has the error with its causes."""


class Spark:
    """A Spark session, which the end of the block ends.

    Args:
        folder: a folder for the log.
        environment: variables of the environment besides those of this process.
        settings: settings of Spark besides the usual ones.
    """

    def __init__(
        self,
        folder: Path,
        environment: Mapping[str, str] | None = None,
        settings: Mapping[str, str] | None = None,
    ) -> None:
        self.log = folder / "spark.log"
        answers, writes = os.pipe()
        path = os.pathsep.join([str(_ROOT / "operator"), os.environ.get("PYTHONPATH", "")])
        with self.log.open("ab") as log:
            self._process = subprocess.Popen(
                [sys.executable, _PROGRAM, json.dumps(settings or {}), f"/dev/fd/{writes}"],
                stdin=subprocess.PIPE,
                stdout=log,
                stderr=log,
                pass_fds=[writes],
                cwd=folder,
                env={
                    **os.environ,
                    "PYTHONPATH": path,
                    "PYSPARK_PYTHON": sys.executable,  # else Spark looks with that of PATH
                    **(environment or {}),
                },
                start_new_session=True,
            )
        os.close(writes)
        self._answers = os.fdopen(answers, encoding="utf-8")

    def __enter__(self) -> Self:
        """Wait until the session is there."""
        self._answer()
        return self

    def __exit__(self, *_: object) -> None:
        """End the session, and the program."""
        if self._process.stdin is not None:
            self._process.stdin.close()
        self._process.wait()
        self._answers.close()

    def kill(self) -> None:
        """Kill the program and its JVM, as a machine that fails does."""
        os.killpg(self._process.pid, 9)

    def run(self, code: str, **given: Any) -> Any:
        """Run a snippet with these variables, and return its variable `result`.

        Raises:
            SparkFailed: the snippet failed.
        """
        self.begin(code, **given)
        return self._answer()

    def begin(self, code: str, **given: Any) -> None:
        """Run a snippet, and do not wait for its end."""
        assert self._process.stdin is not None
        asked = json.dumps({"code": textwrap.dedent(code), "given": given}) + "\n"
        self._process.stdin.write(asked.encode())
        self._process.stdin.flush()

    def _answer(self) -> Any:
        line = self._answers.readline()
        if not line:
            raise SparkFailed(self.log.read_text(errors="replace")[-4000:])
        answer = json.loads(line)
        if "error" in answer:
            raise SparkFailed(answer["trace"])
        return answer["result"]
