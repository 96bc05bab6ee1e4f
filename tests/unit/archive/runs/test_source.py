"""A run that is read as a store."""

import pytest

from sluice.archive.runs.archive import Archive
from sluice.archive.runs.source import BLOCK, ArchivedStore
from sluice.core.archive.names import Format
from sluice.core.values.model import ArchivedRun
from support.archiving.archives import STREAM, Source, take
from support.model.memory_objects import MemoryObjects


@pytest.mark.parametrize("form", list(Format))
def test_blocks_are_as_short_as_those_of_a_live_store(form: Format) -> None:
    """This includes blocks of long events: a store takes only blocks of that size."""
    archive, source = Archive(MemoryObjects()), Source()
    source.write([100, 2 * BLOCK + 7, 5])
    (entry,) = take(archive, form, source).runs
    store = ArchivedStore(archive, ArchivedRun(path="a", run=1, sha256=entry.sha256))
    (data,) = (one.data for one in source.segments)
    at = 3
    for block in store.read(store.segment_name(STREAM, 0), at, len(data) - 2):
        assert (block.offset, len(block.data) <= BLOCK) == (at, True)
        assert bytes(block.data) == data[at : at + len(block.data)]
        at += len(block.data)
    assert at == len(data) - 2
