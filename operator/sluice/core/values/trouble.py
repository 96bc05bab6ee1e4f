"""Why something does not go on, as a value that can be stored and compared."""

from __future__ import annotations

from typing import Final

from sluice.api.status.common import Reason, cut
from sluice.core.values.model import Frozen
from sluice.errors import Category, SluiceError

_LONGEST: Final = 4096
"""Characters of a message, as in a status; it may have words of somebody else's server."""


class Trouble(Frozen):
    """A failure: one CamelCase reason, whose move it is, what is wrong and what to do.

    The same in a driver's termination message, in a status and in a report.
    """

    reason: Reason
    category: Category
    message: str
    remedy: str
    field: str | None = None
    retryable: bool = False

    @classmethod
    def of(cls, error: SluiceError) -> Trouble:
        """The failure that an error means."""
        return cls(
            reason=error.reason,
            category=error.category,
            message=cut(_LONGEST, "; ".join([error.message, *getattr(error, "__notes__", ())])),
            remedy=error.remedy,
            field=error.field,
            retryable=error.retryable,
        )

    def __str__(self) -> str:
        """What is wrong, led by the field it is about, and what to do."""
        return sentence(self.message, field=self.field, remedy=self.remedy)


def sentence(message: str, *, field: str | None, remedy: str) -> str:
    """What is wrong, led by the field it is about, and what to do, for people."""
    what = f"{field}: {message}" if field else message
    return f"{what.rstrip('.')}. {remedy}".rstrip()
