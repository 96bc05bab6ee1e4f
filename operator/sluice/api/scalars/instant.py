"""Define the points in time that users write."""

from __future__ import annotations

import re
from datetime import UTC, datetime
from typing import Annotated, Any, Final

from pydantic import BeforeValidator, WithJsonSchema

from sluice.api.rules import Rule, rules

_PATTERN: Final = (
    r"^[0-9]{4}-[0-9]{2}-[0-9]{2}T[0-9]{2}:[0-9]{2}:[0-9]{2}([.][0-9]{1,3})?"
    r"(Z|[+-][0-9]{2}:[0-9]{2})$"
)
_LONGEST: Final = 29
_FIRST: Final = datetime(1970, 1, 1, tzinfo=UTC)
_REMEDY = "write a time with its zone, after 1970, as 2026-05-04T12:00:00Z"


def _read(value: Any) -> datetime:
    """Read a time from a YAML value, and convert it to UTC."""
    if isinstance(value, str) and re.fullmatch(_PATTERN, value):
        try:
            value = datetime.fromisoformat(value)
        except ValueError as error:  # such as month 13
            raise ValueError(_REMEDY) from error
    if not isinstance(value, datetime) or value.tzinfo is None:
        raise ValueError(_REMEDY)
    try:
        utc = value.astimezone(UTC)
    except OverflowError as error:  # before the year 1
        raise ValueError(_REMEDY) from error
    if utc <= _FIRST:
        raise ValueError(_REMEDY)
    return utc


Instant = Annotated[
    datetime,
    BeforeValidator(_read),
    WithJsonSchema(
        {
            "type": "string",
            "pattern": _PATTERN,
            "maxLength": _LONGEST,
            **rules(Rule("timestamp(self) > timestamp('1970-01-01T00:00:00Z')", _REMEDY)),
        }
    ),
]
"""A point in time. Users write it as RFC 3339 defines, in any zone; the value is in UTC."""
