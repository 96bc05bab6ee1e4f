"""Run the copies of a plan."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING

from sluice.core.copy.plan import StreamPlan
from sluice.engine.copy.report import StreamReport
from sluice.engine.copy.stream_copy import StreamCopyWork
from sluice.engine.rounds.limits import Limits
from sluice.engine.rounds.runner import Runner

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from sluice.core.workloads.plan import Plan
    from sluice.engine.rounds.executor import Executor
    from sluice.engine.rounds.work import Clock, Listener
    from sluice.stores.base import Source, Store


class CopyRunner(Runner[StreamPlan, StreamReport]):
    """A runner of a plan's copies.

    Args:
        plan: what to copy.
        sources: the stores to read from, as the plan numbers them.
        target: the store to write to.
        executor, limits, listener, clock, patience, slow: see Runner.
        keep_sources: whether to keep the sources of moves.
    """

    def __init__(
        self,
        plan: Plan,
        *,
        sources: Sequence[Source],
        target: Store,
        executor: Executor,
        limits: Callable[[], Limits] = Limits,
        listener: Listener | None = None,
        clock: Clock = time,
        patience: float | None = None,
        slow: Executor | None = None,
        keep_sources: bool = False,
    ) -> None:
        super().__init__(
            [
                StreamCopyWork(stream, number, sources, target, keep=keep_sources)
                for number, stream in enumerate(plan.streams)
            ],
            executor=executor,
            limits=limits,
            listener=listener,
            clock=clock,
            patience=patience,
            slow=slow,
        )
