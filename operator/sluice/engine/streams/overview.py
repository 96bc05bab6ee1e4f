"""Describe the streams of a scope: segments, bytes, events, head and tail."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from sluice.core.copy.planner import SourceRequest
from sluice.core.values.model import StreamName
from sluice.engine.access.parallel import each
from sluice.engine.copy.bounds import bounds_of
from sluice.errors import PermissionDenied, ScopeNotFound, SourceReplaced, StreamNotFound

if TYPE_CHECKING:
    from collections.abc import Sequence

    from sluice.core.copy.planner import SeenSegment
    from sluice.stores.base import Source
    from sluice.stores.reading import Stream


class Overview(NamedTuple):
    """A stream as it is now.

    Attributes:
        name: its name.
        stream: its configuration, head and tail.
        segments: all its segments, with the bytes that can be read; by scale events.
    """

    name: StreamName
    stream: Stream
    segments: Sequence[SeenSegment]

    @property
    def bytes(self) -> int:
        """Bytes that can be read, the headers of events included."""
        return sum(segment.end - segment.start for segment in self.segments)

    @property
    def events(self) -> int | None:
        """The number of events as the store counts them; None if it does not know."""
        counts = [segment.events for segment in self.segments]
        return None if None in counts else sum(count for count in counts if count is not None)

    @property
    def head(self) -> dict[int, int]:
        """The offsets by segment at which the stream begins."""
        first = {segment.id for segment in self.stream.head}
        return {segment.id: segment.start for segment in self.segments if segment.id in first}

    @property
    def tail(self) -> dict[int, int]:
        """The offsets by segment at which the stream ends."""
        last = {segment.id for segment in self.stream.tail}
        return {segment.id: segment.end for segment in self.segments if segment.id in last}


class Forbidden(NamedTuple):
    """A stream that the login may not look at.

    Attributes:
        name: its name.
        error: the store's refusal.
    """

    name: StreamName
    error: PermissionDenied


def overview(store: Source, name: StreamName) -> Overview:
    """Describe a stream.

    Raises:
        StreamNotFound: there is no such stream.
        SourceReplaced: it was deleted, or truncated again and again, meanwhile.
    """
    stream = store.describe(name)
    if stream is None:
        raise StreamNotFound(f"there is no stream {name}")
    return Overview(name, stream, bounds_of(SourceRequest(stream=name), store, stream))


def overviews(store: Source, scope: str) -> list[Overview | Forbidden]:
    """Describe the streams of a scope, by name. Streams that are deleted meanwhile are left out.

    Raises:
        ScopeNotFound: there is no such scope.
        PermissionDenied: the login may not list its streams.
    """

    def look(stream: str) -> Overview | Forbidden | None:
        name = StreamName(scope=scope, stream=stream)
        try:
            return overview(store, name)
        except (StreamNotFound, SourceReplaced):
            return None
        except PermissionDenied as error:  # a store lists more streams than it shows
            return Forbidden(name, error)

    return [found for found in each(look, store.list_streams(scope)) if found is not None]


def scopes(store: Source) -> list[tuple[str, int | None]]:
    """List the scopes with their numbers of streams; None where the login may not list these."""

    def count(scope: str) -> int | None:
        try:
            return len(store.list_streams(scope))
        except ScopeNotFound:  # deleted meanwhile
            return 0
        except PermissionDenied:
            return None

    names = store.list_scopes()
    return list(zip(names, each(count, names), strict=True))
