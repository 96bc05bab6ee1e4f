"""Define the fields of a schedule: cron expressions and time zones.

The pattern accepts what every cron accepts. Some mistakes it cannot see, such as a range that ends
before it begins. `core.values.schedule` refuses these when it computes the next time.
"""

from __future__ import annotations

from typing import Annotated, Final

from pydantic import Field

_SHORT: Final = "@(hourly|daily|midnight|weekly|monthly|yearly|annually)"
_MONTHS: Final = "jan|feb|mar|apr|may|jun|jul|aug|sep|oct|nov|dec"
_DAYS: Final = "sun|mon|tue|wed|thu|fri|sat"


def _field(number: str, names: str = "") -> str:
    """Return the pattern of one of the five fields: a list of values, ranges and steps."""
    words = f"|{names}|{names.upper()}" if names else ""
    value = f"({number}{words})"
    one = rf"([*]|{value}(-{value})?)(/[1-9][0-9]?)?"
    return f"{one}(,{one})*"


_FIVE: Final = " ".join(
    (
        _field("[0-5]?[0-9]"),
        _field("[01]?[0-9]|2[0-3]"),
        _field("0?[1-9]|[12][0-9]|3[01]"),
        _field("0?[1-9]|1[0-2]", _MONTHS),
        _field("[0-7]", _DAYS),
    )
)

Cron = Annotated[str, Field(min_length=1, max_length=100, pattern=f"^({_SHORT}|{_FIVE})$")]
"""A cron expression."""

TimeZone = Annotated[
    str,
    Field(min_length=1, max_length=64, pattern=r"^[A-Za-z][A-Za-z0-9_+-]*(/[A-Za-z0-9_+-]+)*$"),
]
"""A zone of the IANA time zone database."""
