import sys

import pytest

from localcluster import LocalClusterError
from localcluster.commands import run, succeeds, watch


def python(code: str) -> list[str]:
    """Write the command that runs a piece of Python."""
    return [sys.executable, "-c", code]


def test_a_failure_shows_the_programs_last_words() -> None:
    """The message has the exit code and the end of what was written."""
    with pytest.raises(LocalClusterError, match=r"failed \(3\):\nso it is$"):
        run(python("import sys; sys.stderr.write('so it is'); sys.exit(3)"))


def test_a_program_that_is_missing_is_named() -> None:
    """Not found is not the same as failed."""
    with pytest.raises(LocalClusterError, match=r"^no-such-program not found$"):
        run(["no-such-program"])


def test_a_slow_program_is_given_up() -> None:
    """A deadline holds."""
    with pytest.raises(LocalClusterError, match="did not end in 0 s"):
        run(python("import time; time.sleep(60)"), seconds=0.2)


def test_input_and_environment_arrive() -> None:
    """What is passed on is what the program sees."""
    code = "import os, sys; print(sys.stdin.read() + os.environ['EXTRA'])"
    assert run(python(code), stdin="a", environment={"EXTRA": "b"}) == "ab\n"


def test_success_is_told_from_failure() -> None:
    """A check neither raises nor waits."""
    assert succeeds(python("pass"))
    assert not succeeds(python("raise SystemExit(1)"))
    assert not succeeds(["no-such-program"])


def test_a_long_command_that_fails_shows_its_last_words() -> None:
    """The same holds for commands that are watched."""
    with pytest.raises(LocalClusterError, match=r"failed \(1\):\nbroken"):
        watch(python("raise SystemExit('broken')"), sign=str, say=print)
