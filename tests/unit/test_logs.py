"""The form of the log."""

from __future__ import annotations

import json
import logging
from typing import TYPE_CHECKING, Any

import structlog

from sluice import logs

if TYPE_CHECKING:
    import pytest


def _lines(capsys: pytest.CaptureFixture[str]) -> list[dict[str, Any]]:
    """Return the values of the log's lines, which are JSON."""
    return [json.loads(line) for line in capsys.readouterr().err.splitlines()]


def test_what_libraries_log_has_the_same_form(capsys: pytest.CaptureFixture[str]) -> None:
    """Warnings and errors of libraries are JSON, with their traceback and the logger's name."""
    logs.configure("info", as_json=True)
    structlog.get_logger().info("ours", count=1)
    logging.getLogger("library").warning("theirs %d", 2)
    try:
        raise ValueError("odd")
    except ValueError:
        logging.exception("failed")  # noqa: LOG015 - as a library does it
    ours, theirs, failed = _lines(capsys)
    assert (ours["event"], ours["count"], ours["level"]) == ("ours", 1, "info")
    assert (theirs["event"], theirs["logger"]) == ("theirs 2", "library")
    assert (failed["event"], failed["level"]) == ("failed", "error")
    assert "ValueError: odd" in failed["exception"]


def test_what_libraries_chat_about_is_left_out(capsys: pytest.CaptureFixture[str]) -> None:
    """Information of libraries is not printed at level info."""
    logs.configure("info", as_json=True)
    logging.getLogger("library").info("chat")
    assert _lines(capsys) == []


def test_a_resource_that_is_worked_on_is_named(capsys: pytest.CaptureFixture[str]) -> None:
    """This holds for messages of libraries, too."""
    logs.configure("info", as_json=True)
    with structlog.contextvars.bound_contextvars(resource="StreamCopy/a/b"):
        logging.getLogger("library").warning("slow")
    (line,) = _lines(capsys)
    assert line["resource"] == "StreamCopy/a/b"
