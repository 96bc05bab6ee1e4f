"""Backoff: how long a failing copy waits before it retries, and when it gives up."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from sluice.errors import AuthenticationFailed, Category

if TYPE_CHECKING:
    from sluice.errors import SluiceError


_DOUBLINGS = 30
"""Most doublings of a wait. No policy needs so many, and larger powers overflow a float."""


@dataclass(frozen=True, slots=True)
class Policy:
    """Exponential backoff that gives up when nothing advanced for too long. Times in seconds.

    Attributes:
        first: the wait after the first failure.
        most: the longest wait.
        patience: how long failures may follow each other without any progress.
    """

    first: float
    most: float
    patience: float


POLICIES = {
    Category.SPEC: Policy(first=0, most=0, patience=0),
    Category.BACKEND: Policy(first=0.2, most=15, patience=300),
    Category.INFRASTRUCTURE: Policy(first=0.5, most=30, patience=120),
    Category.SCHEDULING: Policy(first=5, most=60, patience=600),
    Category.INTEGRITY: Policy(first=0, most=0, patience=0),
}


ROTATED = Policy(first=1, most=5, patience=150)
"""For a store that rejects a password that it accepted before: a changed Secret reaches the files
of a pod up to two minutes later."""


@dataclass(slots=True)
class Patience:
    """One copy's failures since it last advanced.

    Args:
        patience: overrides every policy's patience, in seconds.
    """

    patience: float | None = None
    _failures: int = field(default=0, init=False)
    _since: float | None = field(default=None, init=False)
    _known: bool = field(default=False, init=False)

    def advanced(self) -> None:
        """Forget past failures, since something moved."""
        self._failures = 0
        self._since = None
        self._known = True

    def delay(self, error: SluiceError, now: float) -> float | None:
        """Return the seconds to wait before the retry after `error`; None to give up.

        Args:
            error: the failure.
            now: the time, in seconds.
        """
        rotated = self._known and isinstance(error, AuthenticationFailed)
        if not error.retryable and not rotated:
            return None
        policy = ROTATED if rotated else POLICIES[error.category]
        self._since = now if self._since is None else self._since
        limit = policy.patience if self.patience is None else self.patience
        if now - self._since > limit:
            return None
        doublings = min(self._failures, _DOUBLINGS)
        wait = min(policy.first * 2.0**doublings, policy.most)
        self._failures += 1
        return wait
