"""The first leg of a copy that follows its source, and what brings it near from far behind."""

from __future__ import annotations

from typing import TYPE_CHECKING

from sluice.core.copy.steps import BeginCatchUp, Done
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
        if not self._followed.is_live or self._part is not None or isinstance(step, BeginCatchUp):
            return step
        self.is_live = True
        return Done(UNVERIFIED)
