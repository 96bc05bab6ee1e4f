"""Run the first leg of a scope whose streams are followed: up to where that begins."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from sluice.core.copy.plan import StreamPlan
from sluice.core.values.trouble import Trouble
from sluice.engine.access.source_runs import live
from sluice.engine.follow.until_near import UntilNear
from sluice.engine.scope.queue import Halting
from sluice.engine.scope.report import ScopeReport
from sluice.engine.scope.runner import ScopeRunner
from sluice.errors import InvalidSpec, SluiceError

if TYPE_CHECKING:
    from sluice.core.follow.catching_up import Staging
    from sluice.core.scope.scope import StreamResult
    from sluice.core.workloads.plan import ScopeCopyPlan
    from sluice.engine.tasks.work import CopyRun


class FirstLegRunner(ScopeRunner):
    """A runner that ends once the planned bytes of each stream are readable in its target.

    A stream that came live has no result yet: a follower goes on. A stream that was given up for
    now is left to the follower as well, if another one came live: it keeps no other waiting.

    Args:
        plan: as for `ScopeRunner`; its streams are followed.
        staging: how streams catch up that are live and far behind.
        how: further arguments of `ScopeRunner`.

    Raises:
        InvalidSpec: the streams of the plan are not followed.
    """

    def __init__(self, plan: ScopeCopyPlan, *, staging: Staging | None = None, **how: Any) -> None:
        if not plan.follows:
            raise InvalidSpec(
                "the plan follows no source, and has no first leg", remedy="Leave out --until-live."
            )
        super().__init__(plan, **how)
        self._staging = staging
        self._works: dict[int, UntilNear] = {}
        self._live: set[int] = set()

    def _begin(self, place: int) -> CopyRun:
        item = self._plan.items[place]
        if not isinstance(item, StreamPlan):
            raise TypeError(f"{item.name} is archived, and not followed")
        sources = [live(one) for one in self._sources]
        work = UntilNear(
            item,
            sources,
            live(self._target),
            number=place,
            limits=lambda: self._limits,
            clock=self._clock,
            staging=self._staging,
        )
        self._works[place] = work
        return self._run_of(work, Halting(self._listener, self._queue))

    def _ended(self, place: int, result: StreamResult) -> None:
        """Take in the result of a stream, unless it came live."""
        if self._works.pop(place).is_live and result.trouble is None:
            self._live.add(place)
            self._results.moved()
            return
        super()._ended(place, result)

    def _finish(self, trouble: Trouble | None) -> ScopeReport:
        """Record the results, and that the streams are live, and return the report."""
        try:
            self._patiently(self._results.write)
            left = set(self._results.left) - self._live
            passing = self._live and left <= self._results.given_up
            if trouble is None and left and not passing:
                trouble = self._results.trouble or self._why_stopped()
            if trouble is None and not self._patiently(self._log.live):
                trouble = self._why_stopped()  # between the last look and the last stream
        except SluiceError as error:
            trouble = trouble or Trouble.of(error)
        results = self._results.all(stopped=False)
        return ScopeReport(plan=self._plan, results=results, trouble=trouble)
