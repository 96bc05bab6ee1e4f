"""The first leg of a copy that follows its source, and what brings it near from far behind."""

from __future__ import annotations

from typing import TYPE_CHECKING

from sluice.core.copy.steps import BeginCatchUp, Done, Follow, Grow, Live, Prove, Skip
from sluice.core.workloads.answers import UNVERIFIED
from sluice.engine.follow.work import FollowWork

if TYPE_CHECKING:
    from sluice.core.copy.steps import Step


class UntilNear(FollowWork):
    """A copy that ends where a follower goes on: all planned bytes are readable, and it is near.

    Its report has no digest, since the copy is not complete.

    Attributes:
        is_live: whether it has come so far. A copy that was complete before has not.
    """

    is_live = False

    def look(self) -> Step:
        """Decide the next step."""
        step = super().look()
        if not self._followed.is_live or self._part is not None or self._goes_on(step):
            return step
        self.is_live = True
        return Done(UNVERIFIED)

    def _goes_on(self, step: Step) -> bool:
        """Tell whether a step may lead to more that is far.

        What was before the source's last scale event is followed here, as far as it is near: what
        comes behind that may be much.
        """
        if isinstance(step, Follow):
            return self._followed.far is not None and not self._followed.settled
        return isinstance(step, Live | BeginCatchUp | Skip | Prove | Grow)
