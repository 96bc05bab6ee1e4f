"""Failures as values that can be stored and compared."""

from __future__ import annotations

from typing import Final

from sluice.api.scalars.texts import Reason, cut
from sluice.core.values.model import Frozen
from sluice.errors import Category, SluiceError

_LONGEST: Final = 4096
"""Most characters of a message, as in a status: it may quote a server that Sluice does not run."""


class Trouble(Frozen):
    """A failure: one CamelCase reason, who has to act, what is wrong and what to do.

    It is the same in a driver's termination message, in a status and in a report.
    """

    reason: Reason
    category: Category
    message: str
    remedy: str
    field: str | None = None
    retryable: bool = False

    @classmethod
    def of(cls, error: SluiceError) -> Trouble:
        """Return the failure that an error means."""
        return cls(
            reason=error.reason,
            category=error.category,
            message=cut(_LONGEST, "; ".join([error.message, *getattr(error, "__notes__", ())])),
            remedy=error.remedy,
            field=error.field,
            retryable=error.retryable,
        )

    def __str__(self) -> str:
        """Return the field, what is wrong with it, and what to do."""
        return sentence(self.message, field=self.field, remedy=self.remedy)


def sentence(message: str, *, field: str | None, remedy: str) -> str:
    """Return the field, what is wrong with it, and what to do, as text for people."""
    what = f"{field}: {message}" if field else message
    return f"{what.rstrip('.')}. {remedy}".rstrip()
