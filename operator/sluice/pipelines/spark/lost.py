"""Say that Spark is gone, and what Java and Python said before."""

from __future__ import annotations

from typing import Final

_TRACEBACK: Final = "Traceback (most recent call last):"
_CAUSE: Final = "Caused by: "
_LONGEST: Final = 500


class SparkLost(Exception):
    """The Spark application is gone, so later tasks cannot succeed either."""


def first_line(error: Exception) -> str:
    """Return the useful line of a stack trace: Python's exception, or the first cause in Java."""
    try:
        lines = str(error).splitlines()
    except Exception:  # noqa: BLE001 - Py4J asks the JVM for the text, which may be gone
        lines = []
    for number, line in enumerate(lines):
        if line.endswith(_TRACEBACK):
            raised = (later for later in lines[number + 1 :] if later and not later[0].isspace())
            return next(raised, line)[:_LONGEST]
    causes = [line for line in lines if line.startswith(_CAUSE)]
    thrown = [line.removeprefix(": ") for line in lines if line.startswith(": ")]
    told = [*(cause.removeprefix(_CAUSE) for cause in reversed(causes)), *thrown, *lines]
    return next((line.strip() for line in told if line.strip()), type(error).__name__)[:_LONGEST]
