"""Write the lines of drivers' logs for people: JSON becomes time, level, event and fields."""

from __future__ import annotations

import json
from typing import Any, Final

from sluice.console.page import printable

_APART: Final = ("timestamp", "level", "event", "exception", "resource", "attempt")
"""Fields of a line that have their own places, or are the same in all lines."""


def readable(line: str) -> str:
    """Return a line of a log for people. A line that is no JSON of Sluice stays as it is."""
    try:
        said = json.loads(line)
    except (ValueError, RecursionError):
        said = None
    if not isinstance(said, dict) or "event" not in said:
        return printable(line)
    time = str(said.get("timestamp", ""))[:19].replace("T", " ")
    level = str(said.get("level", "")).upper()
    fields = [f"{key}={_value(value)}" for key, value in said.items() if key not in _APART]
    text = printable("  ".join([time, f"{level:<7}", str(said["event"]), *fields]))
    if "exception" in said:
        text += "\n" + printable(str(said["exception"]), lines=True)
    return text


def _value(value: Any) -> str:
    """Write a field's value: a word as it is, all else as JSON."""
    if isinstance(value, str) and value and not any(one.isspace() for one in value):
        return value
    return json.dumps(value)
