"""Bytes of a segment in a real store, written block by block and read back."""

from uuid import uuid4

from sluice.stores.pravega.segments.segments import PravegaSegments
from sluice.stores.pravega.store import PravegaStore

MIB = 1 << 20


def write(store: PravegaStore, name: str, *blocks: bytes) -> None:
    """Append blocks, numbered from 1 on by a writer of their own."""
    with store.appender(name, writer=uuid4(), window=4 * MIB) as appender:
        for number, block in enumerate(blocks, start=1):
            appender.append(block, event_number=number)
        appender.flush()


def content(store: PravegaSegments, name: str, start: int, end: int) -> bytes:
    """Return the bytes [start, end), and check that they come in order."""
    data = bytearray()
    for block in store.read(name, start, end):
        assert block.offset == start + len(data)
        data += block.data
    return bytes(data)
