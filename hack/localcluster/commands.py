"""Programs that run to their end."""

import os
import shlex
import subprocess
import time
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from pathlib import Path

from localcluster.errors import LocalClusterError

Say = Callable[[str], None]

_SHOWN_LINES = 30
_SHOWN_COMMAND = 300
_SECONDS_BETWEEN_SIGNS = 30.0


def run(
    command: Sequence[str | Path],
    *,
    seconds: float = 60.0,
    stdin: str | None = None,
    environment: Mapping[str, str] | None = None,
    folder: Path | None = None,
) -> str:
    """Run a program.

    Args:
        command: program and arguments.
        seconds: deadline in seconds.
        stdin: text for its standard input; empty if left out.
        environment: variables to add to ours.
        folder: working directory.

    Returns:
        The standard output.

    Raises:
        LocalClusterError: the program failed, was too slow, or is not installed.
    """
    try:
        done = subprocess.run(
            command,
            input=stdin,
            stdin=subprocess.DEVNULL if stdin is None else None,
            capture_output=True,
            text=True,
            errors="replace",
            check=False,
            timeout=seconds,
            env={**os.environ, **(environment or {})},
            cwd=folder,
        )
    except subprocess.TimeoutExpired as error:
        raise LocalClusterError(f"{_shown(command)} did not end in {seconds:.0f} s") from error
    except FileNotFoundError as error:
        raise LocalClusterError(f"{command[0]} not found") from error
    if done.returncode != 0:
        raise LocalClusterError(_failure(command, done.returncode, done.stderr or done.stdout))
    return done.stdout


def succeeds(command: Sequence[str | Path], *, seconds: float = 10.0) -> bool:
    """Tell whether a program is installed and succeeds in time."""
    try:
        run(command, seconds=seconds)
    except LocalClusterError:
        return False
    return True


def watch(
    command: Sequence[str | Path],
    *,
    sign: Callable[[int], str],
    say: Say,
    environment: Mapping[str, str] | None = None,
    folder: Path | None = None,
) -> None:
    """Run a program that takes minutes, with a progress message now and then.

    Args:
        command: program and arguments.
        sign: function that makes a message from the number of lines printed so far.
        say: callback for progress messages.
        environment: variables to add to ours.
        folder: working directory.

    Raises:
        LocalClusterError: the program failed.
    """
    lines: list[str] = []
    next_sign = time.monotonic() + _SECONDS_BETWEEN_SIGNS
    with subprocess.Popen(
        command,
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        errors="replace",
        env={**os.environ, **(environment or {})},
        cwd=folder,
    ) as child:
        try:
            for line in child.stdout or ():
                lines.append(line)
                if time.monotonic() > next_sign:
                    next_sign = time.monotonic() + _SECONDS_BETWEEN_SIGNS
                    say(sign(len(lines)))
        except BaseException:
            with suppress(ProcessLookupError):
                child.terminate()
            raise
    if child.returncode != 0:
        raise LocalClusterError(_failure(command, child.returncode, "".join(lines)))


def _failure(command: Sequence[str | Path], code: int, output: str) -> str:
    tail = "\n".join(output.splitlines()[-_SHOWN_LINES:])
    return f"{_shown(command)} failed ({code}):\n{tail}"


def _shown(command: Sequence[str | Path]) -> str:
    text = shlex.join(map(str, command))
    return text if len(text) <= _SHOWN_COMMAND else f"{text[:_SHOWN_COMMAND]}..."
