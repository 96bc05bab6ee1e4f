"""Send all rows of a result: as JSON, one row a line, or as a stream of Arrow."""

from __future__ import annotations

import asyncio
import io
from importlib.util import find_spec
from typing import TYPE_CHECKING, Final, NamedTuple

import pyarrow as pa
from aiohttp import web

from sluice.core.query.result_columns import result_columns
from sluice.core.tables.columns import EventFormat, Malformed, columns_of
from sluice.core.tables.decoding import Decoder
from sluice.engine.query.tail import check_result
from sluice.engine.tables.reading import batches, stretches_between
from sluice.engine.tables.source import StoredStream
from sluice.errors import InvalidSpec, StoreNotReady
from sluice.serving.sending import sending, write

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    _Read = Callable[[EventFormat, pa.Schema], Iterator[pa.RecordBatch]]

    from sluice.serving.queries import FoundQuery
    from sluice.serving.reading import RowSource

MOST_SECONDS: Final = 3600.0
"""Seconds that a download may take."""


class Form(NamedTuple):
    """A form of a download.

    Attributes:
        content: the type of its content.
        suffix: of its file's name.
        write: yields its bytes, for the columns in Spark's DDL and a function that reads the rows.
    """

    content: str
    suffix: str
    write: Callable[[str, _Read], Iterator[bytes]]


def _json(_: str, read: _Read) -> Iterator[bytes]:
    """Write rows as they are, one a line.

    Any client may have appended to the stream. JSON has line breaks between its words only.
    """
    for batch in read(EventFormat.TEXT, pa.schema([("event", pa.string())])):
        texts = (text.replace("\n", " ") for text in batch.column(0).to_pylist())
        yield b"".join(f"{text}\n".encode() for text in texts)


def _arrow(ddl: str, read: _Read) -> Iterator[bytes]:
    columns = result_columns(ddl)
    if not columns:
        raise InvalidSpec(
            "the columns of the result are not known yet",
            remedy="Wait until the query runs, or take JSON.",
        )
    if find_spec("msgspec") is None:
        raise InvalidSpec(
            "this installation cannot make Arrow",
            remedy="Take JSON, or install sluice[tables] for the gateway.",
        )
    schema = pa.schema([(one.name, one.kind) for one in columns])
    buffer = io.BytesIO()
    with pa.ipc.new_stream(buffer, schema) as writer:
        for batch in read(EventFormat.JSON, schema):
            writer.write_batch(batch)
            yield _taken(buffer)
    yield _taken(buffer)


def _taken(buffer: io.BytesIO) -> bytes:
    data = buffer.getvalue()
    buffer.seek(0)
    buffer.truncate()
    return data


FORMATS: Final = {
    "json": Form("application/x-ndjson", "jsonl", _json),
    "arrow": Form("application/vnd.apache.arrow.stream", "arrows", _arrow),
}
"""The forms, by their names."""


async def send(
    request: web.Request, seen: FoundQuery, result: RowSource | None, form: Form
) -> web.StreamResponse:
    """Send all rows that a result has now.

    Args:
        request: the request.
        seen: the query.
        result: the place of its rows; None if it has none yet.
        form: the form.

    Raises:
        SluiceError: the rows cannot be read. Later errors break the connection.
    """
    if result is None:
        raise StoreNotReady(
            "the operator has not looked at the query", remedy="Wait until the query runs."
        )
    version = seen.status.version
    ddl = "" if version is None else version.columns
    await asyncio.to_thread(check_result, result.store, result.stream, result.query_id)
    source = StoredStream(result.store, result.stream)

    def read(kind: EventFormat, schema: pa.Schema) -> Iterator[pa.RecordBatch]:
        decoder = Decoder(columns_of(kind, schema), kind, Malformed.FAIL)
        parts = stretches_between(source, source.head(), source.tail())
        return batches(source, parts, decoder)

    blocks = form.write(ddl, read)
    block = await asyncio.to_thread(next, blocks, None)
    response = web.StreamResponse()
    response.content_type = form.content
    name = f"{seen.resource.metadata.name}.{form.suffix}"
    response.headers["Content-Disposition"] = f'attachment; filename="{name}"'
    await response.prepare(request)
    async with sending(request), asyncio.timeout(MOST_SECONDS):
        while block is not None:
            await write(response, [block])
            block = await asyncio.to_thread(next, blocks, None)
    return response
