"""Judge a failure: decide whether and when the resource is tried again, or waits for a person."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final, NamedTuple

from sluice.errors import Category

if TYPE_CHECKING:
    from sluice.core.values.trouble import Trouble


class Backoff(NamedTuple):
    """Waits between attempts, in seconds: `first`, doubled each time, at most `most`."""

    first: float
    most: float

    def after(self, failures: int) -> float:
        """Give the wait in seconds after `failures` failures in a row, from 1."""
        return min(self.first * 2.0 ** min(failures - 1, 30), self.most)


ATTEMPTS: Final = {
    Category.BACKEND: Backoff(5, 300),
    Category.INFRASTRUCTURE: Backoff(2, 120),
    Category.SCHEDULING: Backoff(15, 300),
}
"""Waits between attempts after failures that may pass by themselves."""

RECHECK: Final = Backoff(30, 600)
"""Waits between checks of a cause that only a person can mend outside the resource: a missing
stream, a missing right. A check costs a few calls. So the person has to mend the cause only, and
need not annotate the resource as well."""


LASTING: Final = frozenset({"CutInsideEvent", "InvalidSpec", "SourceUnsupported"})
"""Reasons that fail every attempt for the same spec, some only after it has copied everything."""

DECIDED: Final = frozenset({"HookFailed"})
"""Reasons after which nothing is tried again by itself: a person has to see first what a Job of
theirs has left half done."""

_MOST_ROW: Final = 16
"""Failures in a row after which every backoff has reached its longest wait."""


class Verdict(NamedTuple):
    """Consequence of a failure.

    Attributes:
        final: whether the resource is `Stalled`, since a person has to act.
        wait: seconds until it is tried again; None to wait for a change by a user.
    """

    final: bool
    wait: float | None


def judge(trouble: Trouble, *, failures: int, limit: int | None) -> Verdict:
    """Decide what follows from a failure.

    Integrity failures are never tried again without a person: the data are not what they should
    be. Mistakes in the spec or by the store's administrator are checked again slowly.

    Args:
        trouble: the latest failure.
        failures: failures in a row, with this one.
        limit: the most failures in a row, if an attempt failed. None if the failure keeps an
            attempt from beginning, as a quota or an unreachable store does: then the operator
            waits without a limit.
    """
    if trouble.category is Category.INTEGRITY or trouble.reason in DECIDED:
        return Verdict(final=True, wait=None)
    if limit is not None and (failures > limit or trouble.reason in LASTING):
        return Verdict(final=True, wait=None)
    if trouble.category is Category.SPEC:
        return Verdict(final=True, wait=RECHECK.after(failures))
    if not trouble.retryable:
        recheck = trouble.category is Category.BACKEND
        return Verdict(final=True, wait=RECHECK.after(failures) if recheck else None)
    return Verdict(final=False, wait=ATTEMPTS[trouble.category].after(failures))


def gave_up(trouble: Trouble, verdict: Verdict) -> bool:
    """Tell whether the failure might pass, but the limit of failures ended the attempts."""
    passes = trouble.retryable or trouble.category in {Category.SPEC, Category.BACKEND}
    return (
        verdict == (True, None)
        and passes
        and trouble.category is not Category.INTEGRITY
        and trouble.reason not in LASTING
    )


def in_a_row(trouble: Trouble, elapsed: float) -> int:
    """Estimate how many times in a row a failure was met, `elapsed` seconds after the same one.

    The growing waits between the failures tell the number. So the status needs no counter for
    failures that are no attempts.
    """
    checked = trouble.category in ATTEMPTS and trouble.retryable
    backoff = ATTEMPTS[trouble.category] if checked else RECHECK
    if elapsed > 2 * backoff.most:
        return 1
    waits = (backoff.after(number) for number in range(1, _MOST_ROW))
    return 1 + sum(wait <= elapsed + 1 for wait in waits)  # a status has whole seconds
