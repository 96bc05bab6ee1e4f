import sys

import pytest

from localcluster import LocalClusterError
from localcluster.commands import run, succeeds, watch


def python(code: str) -> list[str]:
    """Return the command that runs a piece of Python."""
    return [sys.executable, "-c", code]


def test_a_failure_shows_the_programs_last_words() -> None:
    """The error has the exit code and the end of the program's output."""
    with pytest.raises(LocalClusterError, match=r"failed \(3\):\nso it is$"):
        run(python("import sys; sys.stderr.write('so it is'); sys.exit(3)"))


def test_a_program_that_is_missing_is_named() -> None:
    """The error says that the program was not found, not that it failed."""
    with pytest.raises(LocalClusterError, match=r"^no-such-program not found$"):
        run(["no-such-program"])


def test_a_slow_program_is_given_up() -> None:
    """A program that exceeds its deadline raises an error with the seconds."""
    with pytest.raises(LocalClusterError, match="did not end in 0 s"):
        run(python("import time; time.sleep(60)"), seconds=0.2)


def test_input_and_environment_arrive() -> None:
    """The program gets the standard input and the extra variables of its environment."""
    code = "import os, sys; print(sys.stdin.read() + os.environ['EXTRA'])"
    assert run(python(code), stdin="a", environment={"EXTRA": "b"}) == "ab\n"


def test_success_is_told_from_failure() -> None:
    """`succeeds` returns False for a failed or missing program, without an error."""
    assert succeeds(python("pass"))
    assert not succeeds(python("raise SystemExit(1)"))
    assert not succeeds(["no-such-program"])


def test_a_long_command_that_fails_shows_its_last_words() -> None:
    """`watch` raises the same error as `run`."""
    with pytest.raises(LocalClusterError, match=r"failed \(1\):\nbroken"):
        watch(python("raise SystemExit('broken')"), sign=str, say=print)
