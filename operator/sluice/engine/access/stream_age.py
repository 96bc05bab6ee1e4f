"""Telling when a stream was made."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from sluice.core.values.model import StreamName
    from sluice.stores.base import Source
    from sluice.stores.reading import Stream


def made_at(name: StreamName, stream: Stream, store: Source) -> int | None:
    """Tell when a stream was made, in the store's milliseconds.

    Only the segments it was made with tell. Once it was scaled and they were truncated away,
    nothing tells any more.

    Returns:
        The time, None where nothing tells.
    """
    asked = [
        (store.segment_name(name, segment.id), store.creation_time)
        for segment in stream.head
        if store.is_original(segment.id)
    ]
    values = store.attributes(asked) if asked else []
    return next((value for value in values if value is not None), None)
