"""Fixtures for tests that run commands in this process."""

import sys
from collections.abc import Callable

import pytest

from sluice import cli


@pytest.fixture
def run_here(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> Callable[..., tuple[int, str, str]]:
    """Return the function that runs a command line: exit code, standard output and error out."""

    def call(*line: str) -> tuple[int, str, str]:
        monkeypatch.setattr(sys, "argv", [*line])
        code = 0
        try:
            cli.main()
        except SystemExit as end:
            code = int(end.code or 0)
        shown = capsys.readouterr()
        return code, shown.out, shown.err

    return call
