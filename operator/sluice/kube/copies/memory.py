"""Memory of a copy between two looks, which only spares calls."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from sluice.core.scope.progress import Meter
from sluice.engine.access.survey import going_on
from sluice.errors import StoreTimeout

if TYPE_CHECKING:
    from collections.abc import Callable

    from sluice.core.reconcile.copies.world import PlanSeen
    from sluice.core.values.wish import Wish
    from sluice.core.workloads.answers import Answer
    from sluice.engine.access.source_runs import Place
    from sluice.engine.access.survey import Survey
    from sluice.engine.workloads.workload import Measures
    from sluice.kube.loop.memory import Blocking
    from sluice.stores.allowance import Kept


@dataclass(slots=True)
class CopyMemory:
    """Memory of a copy between two looks. Nothing relies on it.

    Attributes:
        plan: the plan in the ConfigMap, which never changes, and its count in the allowance.
        watch: the plan's hash, the stores that are asked, and the measure of progress there.
        meter: the speed.
        metered: the hash of the plan, and the name of the attempt's Job, that the meter is about.
        controls: the controls that were last written for the driver.
        wish: how the copy is to end, as it was last written to the journal.
        results: the hash of the results of a scope that were last published, and when that was
            read; None if it is not known.
        survey: the question of a look that ran out of time, and its findings so far.
    """

    plan: tuple[PlanSeen, Kept] | None = None
    watch: tuple[tuple[str, Place, tuple[Place, ...]], Measures] | None = None
    meter: Meter = field(default_factory=Meter)
    metered: tuple[str, str] = ("", "")
    controls: dict[str, str] | None = None
    wish: Wish | None = None
    results: tuple[str, float] | None = None
    survey: tuple[object, Survey] | None = None

    async def surveyed(
        self, blocking: Blocking, asked: object, call: Callable[[], Answer]
    ) -> Answer:
        """Ask the stores. If the time of a look ends first, the next look goes on from there.

        Args:
            blocking: makes the call in a thread.
            asked: identifies the question and the stores.
            call: asks the stores.

        Raises:
            StoreTimeout: the time of the look ended.
        """
        survey = self.survey[1] if self.survey is not None and self.survey[0] == asked else {}
        before, self.survey = len(survey), None

        def ask() -> Answer:
            with going_on(survey):
                return call()

        try:
            return await blocking(ask)
        except StoreTimeout:
            if len(survey) > before:  # else the store is away, and the findings get old
                self.survey = (asked, survey)
            raise
