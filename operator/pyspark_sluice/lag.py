"""How far a query is behind its streams, from its progress."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any, Final, NamedTuple

if TYPE_CHECKING:
    from collections.abc import Mapping

BYTES_BEHIND: Final = "bytesBehind"
"""The field of a source's `latestOffset` in the progress."""


class Lag(NamedTuple):
    """The distance of a query from the tail of a stream.

    Attributes:
        stream: the stream.
        bytes: bytes that the stream has after the last planned batch.
    """

    stream: str
    bytes: int


def lag_of(progress: Mapping[str, Any] | str) -> list[Lag]:
    """Return the lag of a query from each stream that it reads by this source.

    Args:
        progress: a progress of the query, as JSON or as an object, such as `query.lastProgress`.
    """
    told = json.loads(progress) if isinstance(progress, str) else progress
    offsets = [_object(one.get("latestOffset")) for one in told.get("sources", ())]
    return [Lag(one["stream"], one[BYTES_BEHIND]) for one in offsets if BYTES_BEHIND in one]


def _object(offset: Any) -> dict[str, Any]:
    """Return an offset of a progress as an object; an empty one for offsets of other sources."""
    if isinstance(offset, str):
        try:
            offset = json.loads(offset)
        except ValueError:
            return {}
    return offset if isinstance(offset, dict) else {}
