"""The first leg of a copy that follows its source."""

from __future__ import annotations

from typing import TYPE_CHECKING

from sluice.core.copy.steps import Done, Live
from sluice.core.workloads.answers import UNVERIFIED
from sluice.engine.copy.stream_copy import StreamCopyWork

if TYPE_CHECKING:
    from sluice.core.copy.steps import Step


class UntilLive(StreamCopyWork):
    """A copy that ends where it would begin to follow its source: all planned bytes are readable.

    Its report has no digest, since the copy is not complete.

    Attributes:
        is_live: whether it has come so far. A copy that was complete before has not.
    """

    is_live = False

    def look(self) -> Step:
        """Decide the next step."""
        step = super().look()
        if not isinstance(step, Live):
            return step
        self.is_live = True
        return Done(UNVERIFIED)
