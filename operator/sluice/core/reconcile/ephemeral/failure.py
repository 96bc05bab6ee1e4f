"""Report a failure of an EphemeralStream, and decide when it is looked at again."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from sluice.core.reconcile.ephemeral.world import EphemeralDecision
from sluice.core.reconcile.shared.conditions import Saying
from sluice.core.values.trouble import Trouble
from sluice.errors import StoreUnavailable

if TYPE_CHECKING:
    from sluice.core.reconcile.ephemeral.status import EphemeralStatus

WAIT_SECONDS: Final = 30.0
"""Seconds between two looks at a resource that waits; events usually wake it sooner."""

STORE_SECONDS: Final = 60.0
"""Seconds between two looks at a resource that waits for its StreamStore, which wakes it then.
Thousands may wait for one."""

RETRY_SECONDS: Final = 5.0
"""Seconds before a call that a store has failed is tried again."""

STALLED_SECONDS: Final = 60.0
"""Seconds between two looks at a resource that waits for a person."""

NOT_ASKED: Final = Trouble.of(StoreUnavailable("the store was not asked yet"))
"""The failure to report while there is no answer of the store."""


def failed(status: EphemeralStatus, trouble: Trouble) -> EphemeralDecision:
    """Report a failure, and try again or wait for a person."""
    if not trouble.retryable:
        return stalled(status, trouble)
    said = Saying(trouble.reason, str(trouble))
    return EphemeralDecision(status=status.working(said), again=RETRY_SECONDS)


def stalled(status: EphemeralStatus, trouble: Trouble) -> EphemeralDecision:
    """Report that the resource waits for a person, and look at it now and then."""
    said = Saying(trouble.reason, str(trouble))
    return EphemeralDecision(status=status.stalled(said), again=STALLED_SECONDS)
