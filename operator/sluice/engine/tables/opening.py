"""Open a stream to read as a table, and find positions in it."""

from __future__ import annotations

import json
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

from sluice.core.copy.planner import ArchiveChoice
from sluice.core.tables.options import HEAD, TAIL
from sluice.core.tables.positions import StreamPosition
from sluice.engine.access.connect import archives
from sluice.engine.access.source_runs import open_whole
from sluice.engine.tables.source import ContinuedStream, StoredStream
from sluice.errors import InvalidSpec
from sluice.stores.connect import connect

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from sluice.config import Settings
    from sluice.core.tables.options import EventsPlace
    from sluice.engine.tables.source import TableSource

    Where = str | StreamPosition | Mapping[Any, Any]
    """A position: `Head`, `Tail`, a StreamCut's text, a position as an object or its JSON, or
    offsets by segment."""


@contextmanager
def opened(place: EventsPlace, settings: Settings) -> Iterator[TableSource]:
    """Open a stream in the block.

    Raises:
        InvalidSpec: an address has another form, or the archive is one of another stream.
        ArchiveNotFound, ArchiveDamaged, ArchiveUnsupported: the run cannot be read.
        SourceTruncated: the run lacks bytes that were lost before they could be archived.
        AuthenticationFailed: the files of a Secret are not there.
    """
    run = None if place.archive is None else _run(place, settings)
    if place.store is None or place.stream is None:
        if run is None:
            raise InvalidSpec("neither a store nor an archive is named", field="store")
        yield run
        return
    store = connect(place.store, settings)
    try:
        live = StoredStream(store, place.stream)
        yield live if run is None else ContinuedStream(run, live)
    finally:
        store.close()


def _run(place: EventsPlace, settings: Settings) -> StoredStream:
    """Open the run of an archive, which has to be whole."""
    if place.archive is None:
        raise InvalidSpec("no archive is named", field="archive")
    wanted = ArchiveChoice(path="", run=place.run)
    run = open_whole(wanted, archives(place.archive, settings), "source")
    return StoredStream(run, run.manifest.source.stream)


def located(source: TableSource, where: Where) -> StreamPosition:
    """Return a position in a stream.

    Raises:
        InvalidSpec: it is no position in the stream.
        SourceNotFound: there is no such stream.
    """
    if isinstance(where, StreamPosition):
        place = where
    elif not isinstance(where, str):
        place = _of_object(source, where)
    elif where in {HEAD, TAIL}:
        return source.head() if where == HEAD else source.tail()
    elif where.lstrip().startswith("{"):
        place = _of_object(source, _parsed(where))
    else:
        return source.at_cut(where)
    if place.stream != source.stream:
        raise InvalidSpec(
            f"this is a position in {place.stream}, not in {source.stream}", field="position"
        )
    return place


def _parsed(text: str) -> Any:
    try:
        return json.loads(text)
    except ValueError:
        raise InvalidSpec("the position is no JSON", field="position") from None


def _of_object(source: TableSource, value: Mapping[Any, Any]) -> StreamPosition:
    """Return the position that an object stands for: one of ours, or offsets by segment."""
    if "segments" in value:
        return StreamPosition.from_json(value)
    try:
        offsets = {int(one): int(at) for one, at in value.items()}
    except (TypeError, ValueError):
        raise InvalidSpec("offsets are whole numbers, by segment", field="position") from None
    return source.at(offsets)
