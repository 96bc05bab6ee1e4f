"""What a failure means for a resource: try again, when, or wait for a person."""

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


LASTING: Final = frozenset({"CutInsideEvent", "InvalidSpec", "SourceUnsupported"})
"""Reasons by which an attempt fails that every other attempt for the same spec would meet, perhaps
after it had copied everything again."""

_MOST_ROW: Final = 16
"""By then every wait is its longest."""


class Verdict(NamedTuple):
    """What follows from a failure.

    Attributes:
        final: whether the resource is stalled: it needs somebody.
        wait: seconds until it is tried again; None for not before something changes.
    """

    final: bool
    wait: float | None


def judge(trouble: Trouble, *, failures: int, limit: int | None) -> Verdict:
    """What follows from the latest of `failures` failures in a row.

    Only attempts use up the `limit`, whatever they fail by; what keeps one from beginning, a quota
    or a store that is away, is waited for without one.

    Integrity failures are never tried again without a person: the data are not what they should
    be. What the spec or the store's administrator got wrong is looked at again slowly: for ever
    where that keeps an attempt from beginning, and as often as the limit says where it ends one.
    """
    if trouble.category is Category.INTEGRITY:
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
    """Whether it might pass, and yet no other attempt is made since there were so many."""
    passes = trouble.retryable or trouble.category in {Category.SPEC, Category.BACKEND}
    return (
        verdict == (True, None)
        and passes
        and trouble.category is not Category.INTEGRITY
        and trouble.reason not in LASTING
    )


def in_a_row(trouble: Trouble, elapsed: float) -> int:
    """Which failure in a row it is, where the same one was met `elapsed` seconds ago.

    By the waits between them, so nobody has to count what is no attempt.
    """
    checked = trouble.category in ATTEMPTS and trouble.retryable
    backoff = ATTEMPTS[trouble.category] if checked else RECHECK
    if elapsed > 2 * backoff.most:
        return 1
    waits = (backoff.after(number) for number in range(1, _MOST_ROW))
    return 1 + sum(wait <= elapsed + 1 for wait in waits)  # a status has whole seconds
