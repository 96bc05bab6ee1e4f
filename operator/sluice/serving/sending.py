"""Send answers that are long, or that go on, to viewers who may be slow or gone."""

from __future__ import annotations

import asyncio
from contextlib import asynccontextmanager
from typing import TYPE_CHECKING, Final

import structlog

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Iterable

    from aiohttp import web

_log = structlog.get_logger()

SLOW: Final = 30.0
"""Seconds that a viewer may take to receive a piece."""

_PIECE: Final = 64 << 10
"""Bytes that are sent at once, so that little waits in memory for each viewer."""


@asynccontextmanager
async def sending(request: web.Request) -> AsyncIterator[None]:
    """Send an answer, which was begun, in the block. An error there breaks the connection.

    Otherwise the viewer would take what came for the whole; and a connection that is closed in
    good order waits until its viewer has received all, which one that does not read never has.
    """
    try:
        yield
    except ConnectionError:
        return  # the viewer has left
    except Exception as error:  # noqa: BLE001 - whatever it is, the viewer must notice it
        _log.info("an answer breaks off", path=request.path, error=str(error) or repr(error))
        if request.transport is not None:
            request.transport.abort()


async def write(response: web.StreamResponse, pieces: Iterable[bytes]) -> None:
    """Send a part of an answer, small pieces together and large ones bit by bit.

    Raises:
        TimeoutError: the viewer does not receive it.
    """
    small = bytearray()
    for piece in pieces:
        for at in range(0, len(piece), _PIECE):
            small += piece[at : at + _PIECE]
            if len(small) >= _PIECE:
                await _write(response, bytes(small))
                small.clear()
    if small:
        await _write(response, bytes(small))


async def _write(response: web.StreamResponse, data: bytes) -> None:
    async with asyncio.timeout(SLOW):
        await response.write(data)
