"""What is kept of a copy between two looks, and never relied on."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from sluice.core.scope.progress import Meter
from sluice.engine.access.survey import going_on
from sluice.errors import StoreTimeout

if TYPE_CHECKING:
    from collections.abc import Callable

    from sluice.core.reconcile.copies.world import PlanSeen
    from sluice.core.workloads.answers import Answer
    from sluice.engine.access.source_runs import Place
    from sluice.engine.access.survey import Survey
    from sluice.engine.workloads.workload import Measures
    from sluice.kube.loop.memory import Blocking
    from sluice.stores.allowance import Kept


@dataclass(slots=True)
class CopyMemory:
    """What is kept of a copy between two looks, only to spare calls.

    Attributes:
        plan: the plan ConfigMap, which never changes, and what it counts while it is kept.
        watch, meter: for its progress.
        controls: what the driver was last told of the spec.
        survey: what was found by a look that was not done in time, and what that has asked.
    """

    plan: tuple[PlanSeen, Kept] | None = None
    watch: tuple[str, Place, Measures] | None = None
    meter: Meter = field(default_factory=Meter)
    controls: dict[str, str] | None = None
    survey: tuple[object, Survey] | None = None

    async def surveyed(
        self, blocking: Blocking, asked: object, call: Callable[[], Answer]
    ) -> Answer:
        """What stores answer. Where time ends before that, the next look goes on with it.

        Args:
            blocking: makes the call.
            asked: tells what is asked, and of whom.
            call: asks.
        """
        survey = self.survey[1] if self.survey is not None and self.survey[0] == asked else {}
        before, self.survey = len(survey), None

        def ask() -> Answer:
            with going_on(survey):
                return call()

        try:
            return await blocking(ask)
        except StoreTimeout:
            if len(survey) > before:  # else it is the store that is away, and all of it gets old
                self.survey = (asked, survey)
            raise
