"""Objects for sweeps, and a clock that tests put forward until the sweeps delete them."""

from sluice.archive.runs.archive import Archive
from sluice.core.archive.names import Format
from support.archiving.archived_events import framed, many_events, write
from support.archiving.archives import Source, take
from support.model.memory_objects import MemoryObjects


class Clock:
    """A clock that stands still."""

    def __init__(self) -> None:
        self.now = 1_790_000_000.0

    def __call__(self) -> float:
        """Return the clock's time, in seconds since 1970."""
        return self.now


def three_runs(archive: Archive, form: Format) -> None:
    """Record three runs, the last one with bytes that the others lack."""
    source = Source()
    for _ in range(3):
        source.write([10, 300] * 5)
        take(archive, form, source)


def crashed(objects: MemoryObjects, form: Format) -> set[str]:
    """Make the remains of a driver that was killed before it recorded a run. Return their names."""
    before = set(objects.held)
    write(form, objects, framed(many_events(99, [77] * 9)), 1 << 40)
    objects.put(f"runs/{9:016x}-{'ab' * 32}.json.zst", b"never recorded")
    objects.put(f".partial/{'01' * 16}", b"half an obj")
    return set(objects.held) - before
