"""Run the plan of an archive's run to its end."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING

from sluice.archive.formats.piece import OBJECT
from sluice.core.archive.plan import ArchivePlan
from sluice.engine.archive.archive_run import ArchiveCopy
from sluice.engine.archive.report import ArchiveReport
from sluice.engine.rounds.limits import Limits
from sluice.engine.rounds.runner import Runner

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from sluice.archive.runs.archive_root import ArchiveRoot
    from sluice.engine.rounds.executor import Executor
    from sluice.engine.rounds.work import Clock, Listener
    from sluice.stores.base import Source


class ArchiveRunner(Runner[ArchivePlan, ArchiveReport]):
    """A runner for one run of an archive.

    Args:
        plan: what to archive.
        sources: the stores to read from, as the plan numbers them.
        root: the place that holds the archive.
        executor, limits, listener, clock, patience, slow: see Runner.
    """

    def __init__(
        self,
        plan: ArchivePlan,
        *,
        sources: Sequence[Source],
        root: ArchiveRoot,
        executor: Executor,
        limits: Callable[[], Limits] = Limits,
        listener: Listener | None = None,
        clock: Clock = time,
        patience: float | None = None,
        slow: Executor | None = None,
    ) -> None:
        super().__init__(
            [ArchiveCopy(plan, sources, root.archive(plan.path))],
            executor=executor,
            limits=limits,
            listener=listener,
            clock=clock,
            patience=patience,
            slow=slow,
            unit=OBJECT,
        )
