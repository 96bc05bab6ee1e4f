"""Archives of streams of a real store, with the slices in this process."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from sluice.archive.objects.directory import DirectoryObjects
from sluice.archive.runs.archive_root import ArchiveRoot
from sluice.core.archive.names import Format
from sluice.core.archive.request import ArchiveRequest
from sluice.engine.archive.planning import resolve_archive
from sluice.engine.tasks.executor import InlineExecutor
from support.engine.runners import archive_runner

if TYPE_CHECKING:
    from pathlib import Path

    from sluice.core.copy.plan import OnTruncation
    from sluice.core.values.model import StreamName
    from sluice.stores.base import Store
    from support.store.clicks import Clicks

EVENTS: Final = {Format.SEGMENTS: 3000, Format.PARQUET: 3000, Format.EVENT_OBJECTS: 300}
"""Number of events for a run of each format: a gateway takes some milliseconds for each object."""


def archive_stream(
    root: ArchiveRoot,
    path: str,
    form: Format,
    store: Store,
    stream: StreamName,
    *,
    on_truncation: OnTruncation = "Fail",
) -> None:
    """Record a run of a stream's present events, which adds to the run before."""
    request = ArchiveRequest(
        archive_id="cd" * 16,
        source=stream,
        store="tcp://it:9090",
        path=path,
        format=form,
        on_truncation=on_truncation,
    )
    plan = resolve_archive(request, store, root.archive(path)).plan
    assert plan is not None
    runner = archive_runner(
        plan,
        sources=[store],
        root=root,
        executor=InlineExecutor([store], root),
        patience=5,
    )
    (report,) = runner.run()
    assert report.error is None, report.error


def archive_in(folder: Path, clicks: Clicks, store: Store, form: Format = Format.SEGMENTS) -> None:
    """Record a run of a stream in a folder that is one archive."""
    root = ArchiveRoot(folder.as_uri(), lambda path: DirectoryObjects(folder / path))
    archive_stream(root, "", form, store, clicks.name)
