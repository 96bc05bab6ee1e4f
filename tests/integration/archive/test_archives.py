"""Archives of each format in each store."""

import pytest

from sluice.archive.formats.reading import read_segment
from sluice.archive.objects.objects import Objects
from sluice.archive.runs.archive import Archive
from sluice.archive.runs.sweep import sweep
from sluice.archive.runs.verify import verify_archive
from sluice.core.archive.names import Format
from sluice.core.values.archive_layout import DATA
from support.archiving.archives import Source, take
from support.search import few

# The first test that needs the gateway compiles it.
pytestmark = pytest.mark.timeout(1200)


@pytest.mark.parametrize("form", few(Format, [Format.PARQUET]))
def test_runs_are_recorded_verified_read_and_let_go(form: Format, objects: Objects) -> None:
    """Three runs of a split stream with an event longer than a chunk can be verified and read."""
    archive = Archive(objects)
    source = Source()
    few = [300] * (50 if form is Format.EVENT_OBJECTS else 2000)
    for sizes in ([1, 9_000_000, 0, *few, 9_000_000], few, few):
        source.write(sizes)
        take(archive, form, source)
        source.split()
    found = verify_archive(archive)
    assert found.problems == []
    assert found.runs == (1, 2, 3)
    head = archive.head()
    assert head is not None
    manifest = archive.manifest(head.runs[-1])
    for segment, origin in zip(manifest.segments, source.segments, strict=False):
        blocks = read_segment(objects, form, segment, segment.start, segment.end)
        assert b"".join(map(bytes, blocks)) == origin.data
    archive.drop_runs([1], head)
    assert verify_archive(archive).runs == (2, 3)
    assert sweep(archive).objects == 0  # nothing is old enough
    victim = max(one.name for one in objects.list(DATA))
    objects.delete([victim])
    assert [one.what for one in verify_archive(archive).problems] == [f"{victim} is missing"]
