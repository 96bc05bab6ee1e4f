"""SIGTERM at inconvenient moments."""

from __future__ import annotations

import io
import os
import signal

import pytest
import structlog

from sluice.pipelines.driver.stopping import SigtermHandler, Terminated


class _Interrupting(io.StringIO):
    """A log into whose lines a signal comes."""

    def write(self, text: str) -> int:
        """Write, and get the signal before the line is over."""
        if not self.tell():
            os.kill(os.getpid(), signal.SIGTERM)
        return super().write(text)


@pytest.mark.timeout(10)
def test_sigterm_in_the_midst_of_a_log_line_is_heard() -> None:
    """A handler that logged would wait for ever for the lock that its own thread holds."""
    config = structlog.get_config()
    structlog.configure(logger_factory=structlog.PrintLoggerFactory(_Interrupting()))
    try:
        with SigtermHandler() as stop:
            structlog.get_logger().info("a step begins")
            with pytest.raises(Terminated):
                stop.check()
    finally:
        structlog.configure(**config)
