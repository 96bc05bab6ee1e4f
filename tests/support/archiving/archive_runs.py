"""Runs that archive streams of the model store, and the contents of their archives."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING

from sluice.archive.formats import parquet, piece, segments
from sluice.archive.formats.reading import read_segment
from sluice.archive.runs.archive import Archive
from sluice.archive.runs.archive_root import ArchiveRoot
from sluice.archive.runs.verify import verify_archive
from sluice.core.archive.manifest import Maker
from sluice.core.archive.request import ArchiveRequest
from sluice.core.events import grouping
from sluice.engine.archive import parts
from sluice.engine.archive.planning import resolve_archive
from sluice.engine.archive.report import ArchiveReport
from sluice.engine.tasks.executor import InlineExecutor
from sluice.engine.tasks.limits import Limits
from support.engine.plans import SOURCE
from support.engine.runners import archive_runner
from support.engine.sources import CHUNK, Heard, ManualClock

if TYPE_CHECKING:
    from collections.abc import Callable

    import pytest

    from sluice.archive.objects.objects import Objects
    from sluice.core.archive.manifest import Manifest
    from sluice.engine.tasks.clock import Clock
    from sluice.engine.tasks.executor import Executor
    from sluice.engine.tasks.work import Listener
    from sluice.stores.base import Store

PATH = "shop/orders"
MAKER = Maker(id="a1" * 16, name="StreamArchive team/orders")
REQUEST = ArchiveRequest(
    archive_id="ar" * 16, source=SOURCE, store="tcp://model:1", path=PATH, maker=MAKER
)
LIMITS = Limits(slice_bytes=64)


def make_objects_small(monkeypatch: pytest.MonkeyPatch) -> None:
    """Reduce objects to a few chunks, and chunks to 16 bytes."""
    for module in (segments, grouping):
        monkeypatch.setattr(module, "CHUNK", CHUNK)
    for module in (piece, segments, parquet, parts):
        monkeypatch.setattr(module, "OBJECT", 4 * CHUNK)


def root_of(objects: Objects) -> ArchiveRoot:
    """Return a root with one archive, which has these objects."""
    return ArchiveRoot("memory://", lambda _: objects)


def archive_once(
    store: Store,
    objects: Objects,
    request: ArchiveRequest = REQUEST,
    *,
    listener: Listener | None = None,
    limits: Callable[[], Limits] = lambda: LIMITS,
    executor: Executor | None = None,
    patience: float | None = 0,
    now: Callable[[], float] = time.time,
    clock: Clock | None = None,
) -> ArchiveReport:
    """Plan a run, or resume one that has begun, and carry it out."""
    root = root_of(objects)
    found = resolve_archive(request, store, root.archive(request.path), now=now)
    if found.plan is None:
        assert found.entry is not None
        return ArchiveReport.recorded(request, found.entry)
    runner = archive_runner(
        found.plan,
        sources=[store],
        root=root,
        executor=executor or InlineExecutor([store], root),
        limits=limits,
        listener=listener or Heard(),
        clock=clock or ManualClock(),
        patience=patience,
    )
    (report,) = runner.run()
    return report


def last_run(objects: Objects) -> Manifest:
    """Verify an archive and return the manifest of its last run."""
    archive = Archive(objects)
    found = verify_archive(archive)
    assert found.problems == []
    head = archive.head()
    assert head is not None
    return archive.manifest(head.runs[-1])


def held_by(objects: Objects, manifest: Manifest) -> dict[int, bytes]:
    """Return the bytes of each segment in a run, by id, without lost bytes."""
    return {
        segment.id: b"".join(
            bytes(block)
            for stretch in segment.stretches
            for block in read_segment(objects, manifest.format, segment, stretch.start, stretch.end)
        )
        for segment in manifest.segments
    }
