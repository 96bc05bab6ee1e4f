"""Fixtures for tests that run commands in this process, or trace it."""

import logging
import sys
from collections.abc import Callable, Iterator

import pytest

from sluice import cli
from support.kube.collector import Collector, collector


@pytest.fixture
def run_here(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> Callable[..., tuple[int, str, str]]:
    """Return a function that runs a command line and returns exit code, output and error."""

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


@pytest.fixture
def traces(monkeypatch: pytest.MonkeyPatch) -> Iterator[Collector]:
    """Yield a collector of traces that the environment names."""
    library = logging.getLogger("opentelemetry")
    kept = library.handlers, library.propagate
    with collector() as running:
        monkeypatch.setenv("OTEL_EXPORTER_OTLP_ENDPOINT", running.url)
        yield running
    library.handlers, library.propagate = kept
