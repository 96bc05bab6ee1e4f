"""Find out when a stream was made."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from sluice.core.values.model import StreamName
    from sluice.stores.base import Source
    from sluice.stores.reading import Stream


def made_at(name: StreamName, stream: Stream, store: Source) -> int | None:
    """Return when a stream was made, in ms of the store's clock.

    That is the creation time of the stream's original segments. If scaling and truncation have
    removed all of them, the time is not known any more.

    Returns:
        The time; None if it is not known.
    """
    asked = [
        (store.segment_name(name, segment.id), store.creation_time)
        for segment in stream.head
        if store.is_original(segment.id)
    ]
    values = store.attributes(asked) if asked else []
    return next((value for value in values if value is not None), None)
