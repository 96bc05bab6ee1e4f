"""Decide what becomes of a copy after a failure: when it is tried again, and what it keeps."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from sluice.core.reconcile.copies.actions import Abandon, Decision, RemoveFinalizer
from sluice.core.reconcile.copies.seen import PARTLY, follows
from sluice.errors import UNDECIDED, Category

if TYPE_CHECKING:
    from sluice.core.reconcile.copies.actions import Action
    from sluice.core.reconcile.copies.seen import CopySeen
    from sluice.core.reconcile.copies.statuses.base import CopyStatus
    from sluice.core.reconcile.shared.jobs import JobSeen
    from sluice.core.values.trouble import Trouble

MISSING: Final = frozenset(
    {
        "AccessDenied",
        "StoreNotFound",
        "StoreNotShared",
        "LoginNotShared",
        "SecretNotFound",
        "ClaimNotFound",
        "ProfileNotFound",
        "InvalidSpec",
        "HookNotFound",
        "HookRefused",
        "HookFailed",
    }
)
"""Reasons that are not about the streams. Staged bytes stay: once the cause is mended, the copy
goes on where it was."""

HELD: Final = frozenset(error.__name__ for error in UNDECIDED) | PARTLY
"""Reasons after which everything stays in the stores until a person decides."""


def failed(
    copy: CopySeen, status: CopyStatus, trouble: Trouble, *, attempt: JobSeen | None
) -> Decision:
    """Record a failure; try again later, or give up."""
    verdict = status.fail(trouble, attempt)
    return Decision(status=status.value, actions=dropped(copy, status), again=verdict.wait)


def dropped(copy: CopySeen, status: CopyStatus) -> tuple[Action, ...]:
    """Delete staged bytes and the finalizer after a failure that ends the copy.

    The driver has deleted its staging already; this makes sure. An object that is missing around
    the copy, such as a Secret, can be put there again. So staged bytes stay then.
    """
    if follows(copy):
        # Its target may be a user's stream by now, and the cause may pass, such as a source that
        # is gone for a while. Only a person ends it, who deletes it.
        return ()
    failure = status.value.last_failure
    hopeless = (
        failure is not None
        and failure.category in {Category.SPEC, Category.INTEGRITY}
        and failure.reason not in MISSING | HELD
    )
    if not (copy.finalizer and hopeless):
        return ()
    return (Abandon(),) if copy.keeps else (Abandon(), RemoveFinalizer())
