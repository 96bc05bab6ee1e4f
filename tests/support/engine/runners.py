"""Runners of whole plans, put together as by `pipelines.programs.run`."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from sluice.archive.formats.piece import OBJECT
from sluice.engine.archive.archive_run import ArchiveCopy
from sluice.engine.copy.stream_copy import StreamCopyWork
from sluice.engine.tasks.runner import Runner

if TYPE_CHECKING:
    from collections.abc import Sequence

    from sluice.archive.runs.archive_root import ArchiveRoot
    from sluice.core.archive.plan import ArchivePlan
    from sluice.core.copy.plan import StreamPlan
    from sluice.core.workloads.plan import Plan
    from sluice.engine.access.source_runs import Origin
    from sluice.engine.archive.report import ArchiveReport
    from sluice.engine.copy.report import StreamReport
    from sluice.stores.base import Source, Store


def copy_runner(
    plan: Plan, *, sources: Sequence[Origin], target: Store, **how: Any
) -> Runner[StreamPlan, StreamReport]:
    """Return a runner of a plan's copies. Further arguments are those of Runner."""
    works = [
        StreamCopyWork(stream, number, sources, target)
        for number, stream in enumerate(plan.streams)
    ]
    return Runner(works, **how)


def archive_runner(
    plan: ArchivePlan, *, sources: Sequence[Source], root: ArchiveRoot, **how: Any
) -> Runner[ArchivePlan, ArchiveReport]:
    """Return a runner of one run of an archive. Further arguments are those of Runner."""
    return Runner([ArchiveCopy(plan, sources, root.archive(plan.path))], unit=OBJECT, **how)
