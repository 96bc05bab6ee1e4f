"""Define texts about failures, in statuses and elsewhere."""

from __future__ import annotations

from typing import Annotated, Any, Final

from pydantic import Field

_CUT: Final = "..."

Reason = Annotated[
    str, Field(min_length=1, max_length=128, pattern=r"^[A-Za-z]([A-Za-z0-9_,:]*[A-Za-z0-9_])?$")
]
"""One CamelCase word of the catalogue."""


def cut(most: int, value: Any) -> Any:
    """Cut a text to at most `most` characters; a text that was cut ends in dots."""
    if isinstance(value, str) and len(value) > most:
        return value[: most - len(_CUT)] + _CUT
    return value
