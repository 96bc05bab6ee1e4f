"""JSON that the command prints, whose keys have one spelling for all kinds."""

from __future__ import annotations

import json
import re
from typing import TYPE_CHECKING, Any, Final

if TYPE_CHECKING:
    from collections.abc import Iterator

_CAMEL: Final = re.compile(r"[a-z][A-Za-z0-9]*")


def parsed(text: str) -> Any:
    """Read JSON, and check that each key is in camelCase. Keys that are numbers name a segment."""
    value = json.loads(text)
    wrong = [key for key in _keys(value) if not (_CAMEL.fullmatch(key) or key.isdigit())]
    assert not wrong, f"not in camelCase: {wrong}"
    return value


def _keys(value: Any) -> Iterator[str]:
    """Yield the keys of a value and of all values in it."""
    if isinstance(value, dict):
        yield from value
        value = list(value.values())
    if isinstance(value, list):
        for part in value:
            yield from _keys(part)
