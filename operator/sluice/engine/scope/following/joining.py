"""Find the streams that a scope has got since its copy was planned, and plan their copies.

Only names are listed, so that this costs little while there are none.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

import structlog

from sluice.core.copy.plan import StreamPlan
from sluice.core.scope import selection
from sluice.core.scope.request import Selector
from sluice.core.scope.scope import MOST_STREAMS, StreamResult
from sluice.core.workloads.plan import ScopeCopyPlan
from sluice.engine.access import parallel
from sluice.engine.scope.planners.base import failed, is_for_all
from sluice.engine.scope.planners.copies import CopyPlanner
from sluice.engine.scope.report import may_pass
from sluice.errors import ScopeNotFound, SluiceError

if TYPE_CHECKING:
    from collections.abc import Sequence

    from sluice.core.scope.request import ScopeRequest
    from sluice.stores.base import Store

_log = structlog.get_logger()


class Listed(NamedTuple):
    """What a look at the source's scope has shown.

    Attributes:
        joining: the plan of the streams that join, alone; None if none does.
        gone: the places of streams that the scope has no more.
    """

    joining: ScopeCopyPlan | None
    gone: tuple[int, ...]


class Joiner:
    """Looks for streams that join.

    Args:
        request: the copy of the scope.
        source: the store to read from.
        target: the store to write to.
    """

    def __init__(self, request: ScopeRequest, source: Store, target: Store) -> None:
        self._request = request
        self._source = source
        self._target = target
        self._left: set[str] = set()

    def look(self, plan: ScopeCopyPlan) -> Listed:
        """List the scope by the copy's selection.

        Streams that the copy leaves out, and those that it has, are not looked at again. Nothing is
        changed.

        Args:
            plan: the plan of the whole as it is now.

        Raises:
            SluiceError: a store does not answer.
        """
        request, store = self._request, self._source
        try:
            names = store.list_streams(request.source, internal=True)
            tags = selection.tags_of(request)
            found = parallel.each(
                lambda tag: frozenset(store.list_streams(request.source, tag)), tags
            )
        except ScopeNotFound:
            names, tags, found = [], (), []
        there = frozenset(names)
        gone = tuple(at for at, item in enumerate(plan.items) if item.name not in there)
        tagged = dict(zip(tags, found, strict=True))
        wanted = selection.selected(names, tagged=tagged, request=request)
        known = {one.name for one in plan.items} | {one.stream for one in plan.scope.settled}
        fresh = [name for name in wanted if name not in known and name not in self._left]
        room = MOST_STREAMS - len(plan.items)
        if len(fresh) > room:
            _log.warning("a scope has more streams than a copy takes", streams=len(fresh) - room)
        return Listed(self._joining(fresh[:room], plan) if fresh[:room] else None, gone)

    def _joining(self, names: Sequence[str], plan: ScopeCopyPlan) -> ScopeCopyPlan | None:
        """Plan the copies of streams; None if there is nothing to record of them now."""
        streams: list[StreamPlan] = []
        settled: list[StreamResult] = []
        try:
            self._plan(names, plan, streams, settled)
        except SluiceError as error:
            if is_for_all(error):
                raise
            # One cannot be planned in this way, and must not keep the others back.
            streams.clear()
            settled.clear()
            for name in names:
                try:
                    self._plan([name], plan, streams, settled)
                except SluiceError as single:
                    if is_for_all(single):
                        raise
                    target = selection.renamed(name, self._request.rename)
                    settled.append(failed(name, target, single))
        settled = [one for one in settled if one.trouble is None or not may_pass(one.trouble)]
        if not (streams or settled):
            return None
        scope = plan.scope.model_copy(
            update={"settled": tuple(settled), "left_out": (), "tables": ()}
        )
        return ScopeCopyPlan(
            sources=plan.sources, target=plan.target, streams=tuple(streams), scope=scope
        )

    def _plan(
        self,
        names: Sequence[str],
        plan: ScopeCopyPlan,
        streams: list[StreamPlan],
        settled: list[StreamResult],
    ) -> None:
        """Plan the copies of streams, and add to the plans, and to the results of those without."""
        narrow = self._request.model_copy(
            update={
                "include": tuple(Selector(type="Exact", value=name) for name in names),
                "exclude": (),
            }
        )
        planner = CopyPlanner(narrow, self._source, self._target)
        choice = planner.choose(one_store=plan.sources[0].uri == plan.target.uri)
        there = frozenset(planner.there() or ())
        fresh, exists = planner.stand(
            choice.chosen, [one for one in choice.chosen if one.target in there]
        )
        planned = {one.target.stream for one in plan.streams}
        for taken in exists:
            if self._request.on_exists != "Skip" or taken.target in planned:
                planner.fail(taken, planner.exist([taken]))
        for new in fresh:
            if new.chosen.target in planned:
                planner.fail(new.chosen, planner.exist([new.chosen]))
        planner.bind([new for new in fresh if new.chosen.target not in planned])
        streams += [one for one in planner.plans if isinstance(one, StreamPlan)]
        settled += planner.settled
        had = {one.name for one in streams} | {one.stream for one in settled}
        self._left |= {name for name in names if name not in had}
