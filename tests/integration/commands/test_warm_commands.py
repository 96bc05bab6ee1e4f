"""Commands that `support/command/warm` forks behave like newly started ones."""

from __future__ import annotations

import os
import signal
import socket
import subprocess
import threading
from pathlib import Path

import pytest

from localstore.ports import free_ports
from support.command import warm
from support.until import PATIENCE, until


def both(words: list[str], folder: Path, **environment: str) -> tuple[str, str, int]:
    """Run a command in both ways. Check that output and code are equal, and return the result."""
    results = []
    for popen in (subprocess.Popen, warm.Popen):
        process = popen(
            [warm.SLUICE, *words],
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
            cwd=folder,
            env=os.environ | environment,
        )
        assert isinstance(process, warm.Popen) == (popen is warm.Popen)
        results.append((*process.communicate(timeout=PATIENCE), process.returncode))
    assert results[0] == results[1]
    return results[0]


@pytest.mark.exhaustive
@pytest.mark.parametrize(
    ("words", "code"),
    [
        (["--help"], 0),
        (["run", "--no-such-option"], 2),
        (["plan", "-f", "here.yaml"], 2),
        (["streams", "ls", "--store", "nonsense"], 2),
    ],
    ids=["help", "wrong option", "a file of the folder", "wrong address"],
)
def test_it_says_the_same_and_ends_with_the_same_code(
    tmp_path: Path, words: list[str], code: int
) -> None:
    """Both ways give the same output and code, also with a file of the working directory."""
    (tmp_path / "here.yaml").write_text("kind: Nothing\n")
    out, err, ended = both(words, tmp_path)
    assert ended == code
    assert out or err


def test_it_has_its_own_environment(tmp_path: Path) -> None:
    """A forked command has the variables of its call, and none of earlier calls."""
    words = ["streams", "ls", "--store", f"tcp://127.0.0.1:{free_ports(1)[0]}"]
    wrong = both(words, tmp_path, SLUICE_STORE_TIMEOUT="never")
    right = both(words, tmp_path, SLUICE_STORE_TIMEOUT="1")
    assert (wrong[2], right[2]) == (2, 3)


@pytest.mark.exhaustive
def test_its_text_is_as_wide_as_its_terminal(tmp_path: Path) -> None:
    """A table has the width of the call's environment."""
    words = ["archive", "ls", f"file://{tmp_path}"]
    widths = {
        max(map(len, both(words, tmp_path, COLUMNS=width)[0].splitlines()))
        for width in ("30", "200")
    }
    assert len(widths) == 2


@pytest.mark.parametrize("number", [signal.SIGKILL, signal.SIGTERM])
def test_a_signal_ends_it_alone(number: signal.Signals) -> None:
    """A signal ends one command with a signal's status. The next one is forked as before."""
    with socket.create_server(("127.0.0.1", 0)) as silent:  # accepts connections and never answers
        address = f"tcp://127.0.0.1:{silent.getsockname()[1]}"
        process = warm.Popen(
            [warm.SLUICE, "streams", "ls", "--store", address],
            stderr=subprocess.PIPE,
            text=True,
            start_new_session=True,
        )
        until("it has its own session", lambda: os.getsid(process.pid) == process.pid)
        assert process.poll() is None
        codes: list[int] = []
        waiter = threading.Thread(target=lambda: codes.append(process.wait()))
        waiter.start()
        process.send_signal(number)
        waiter.join(PATIENCE)
    assert codes == [process.returncode]
    assert process.returncode in {-number, 128 + number}
    process.communicate()
    assert warm.run([warm.SLUICE, "--version"]).returncode == 0


@pytest.mark.exhaustive
def test_a_command_that_nobody_waits_for_spoils_no_other() -> None:
    """A command without a waiting parent does not disturb the next one."""
    process = warm.Popen([warm.SLUICE, "--version"], stdout=subprocess.PIPE)
    assert process._status is not None
    process._status.close()
    assert process.stdout is not None
    assert process.stdout.read()  # the command runs to its end
    process.stdout.close()
    until("it is gone", lambda: not Path(f"/proc/{process.pid}").exists())
    process.returncode = 0
    assert warm.run([warm.SLUICE, "--version"]).returncode == 0
