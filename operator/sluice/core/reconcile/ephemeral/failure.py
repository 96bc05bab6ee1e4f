"""What went wrong with an EphemeralStream, and when it is looked at again."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from sluice.core.reconcile.ephemeral.world import EphemeralDecision
from sluice.core.reconcile.shared.conditions import Saying
from sluice.core.values.trouble import Trouble
from sluice.errors import StoreUnavailable

if TYPE_CHECKING:
    from sluice.core.reconcile.ephemeral.status import EphemeralStatus

WAIT_SECONDS: Final = 30.0
"""Between two looks at what is waited for; events usually come first."""

RETRY_SECONDS: Final = 5.0
"""Before something is tried again that a store has failed to do."""

STALLED_SECONDS: Final = 60.0
"""Between two looks at a resource that waits for a person."""

NOT_ASKED: Final = Trouble.of(StoreUnavailable("the store was not asked yet"))
"""While nobody knows what the store says."""


def failed(status: EphemeralStatus, trouble: Trouble) -> EphemeralDecision:
    """Something failed: it is tried again, or waits for a person."""
    if not trouble.retryable:
        return stalled(status, trouble)
    said = Saying(trouble.reason, str(trouble))
    return EphemeralDecision(status=status.working(said), again=RETRY_SECONDS)


def stalled(status: EphemeralStatus, trouble: Trouble) -> EphemeralDecision:
    """It waits for a person, and is looked at now and then."""
    said = Saying(trouble.reason, str(trouble))
    return EphemeralDecision(status=status.stalled(said), again=STALLED_SECONDS)
