"""What a failure means for a resource: try again, when, or wait for a person."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final, NamedTuple

from sluice.errors import Category

if TYPE_CHECKING:
    from sluice.core.trouble import Trouble


class Backoff(NamedTuple):
    """Waits between attempts, in seconds: `first`, doubled each time, at most `most`."""

    first: float
    most: float

    def after(self, failures: int) -> float:
        """The wait after so many failures in a row, from 1."""
        return min(self.first * 2.0 ** min(failures - 1, 30), self.most)


ATTEMPTS: Final = {
    Category.BACKEND: Backoff(5, 300),
    Category.INFRASTRUCTURE: Backoff(2, 120),
    Category.SCHEDULING: Backoff(15, 300),
}
"""Between attempts that fail for a reason that passes."""

RECHECK: Final = Backoff(30, 600)
"""Between looks at what only a person can mend outside the resource: a stream that is not there, a
right that is missing. It costs a few calls, and spares them the second step."""


class Verdict(NamedTuple):
    """What follows from a failure.

    Attributes:
        final: whether the resource is stalled: it needs somebody.
        wait: seconds until it is tried again; None for not before something changes.
    """

    final: bool
    wait: float | None


def judge(trouble: Trouble, *, failures: int, limit: int) -> Verdict:
    """What follows from the latest of `failures` failures in a row, of which `limit` are allowed.

    Integrity failures are never tried again without a person: the data are not what they should
    be. What the spec or the store's administrator got wrong is looked at again slowly, for ever.
    """
    if trouble.category is Category.INTEGRITY:
        return Verdict(final=True, wait=None)
    if trouble.category is Category.SPEC:
        return Verdict(final=True, wait=RECHECK.after(failures))
    if not trouble.retryable:
        recheck = trouble.category is Category.BACKEND
        return Verdict(final=True, wait=RECHECK.after(failures) if recheck else None)
    if failures > limit:
        return Verdict(final=True, wait=None)
    return Verdict(final=False, wait=ATTEMPTS[trouble.category].after(failures))
