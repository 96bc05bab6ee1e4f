"""The base class of all errors, and their categories."""

from __future__ import annotations

from enum import StrEnum
from typing import ClassVar, Final


class Category(StrEnum):
    """The party that has to act. Each category has its own backoff and its own exit code."""

    SPEC = "Spec"
    BACKEND = "Backend"
    INFRASTRUCTURE = "Infrastructure"
    SCHEDULING = "Scheduling"
    INTEGRITY = "Integrity"


EXIT_CODES: Final = {
    Category.SPEC: 2,
    Category.BACKEND: 3,
    Category.INFRASTRUCTURE: 4,
    Category.SCHEDULING: 5,
    Category.INTEGRITY: 6,
}
"""The exit code of a process that ends by an error of a category."""


class SluiceError(Exception):
    """Root of the tree.

    Args:
        message: what is wrong, with the names concerned.
        field: the path of the spec's field that has to change, if there is one.
        remedy: what to do; each class has a default.
    """

    category: ClassVar[Category] = Category.INFRASTRUCTURE
    retryable: ClassVar[bool] = False
    default_remedy: ClassVar[str] = "Run again with --log-level debug and report the output."

    def __init__(
        self, message: str, *, field: str | None = None, remedy: str | None = None
    ) -> None:
        super().__init__(message)
        self.message = message
        self.field = field
        self.remedy = remedy or self.default_remedy

    @property
    def reason(self) -> str:
        """The CamelCase word that conditions, events and JSON output carry."""
        return type(self).__name__

    def __str__(self) -> str:
        """Return the message, after the field that it is about."""
        return f"{self.field}: {self.message}" if self.field else self.message

    def __reduce__(self) -> tuple[object, ...]:
        """Pickle the state, so that errors with any signature cross a process boundary whole."""
        return (_revive, (type(self), self.args, dict(self.__dict__)))


def _revive(
    kind: type[SluiceError], args: tuple[object, ...], state: dict[str, object]
) -> SluiceError:
    error = kind.__new__(kind, *args)
    error.args = args
    error.__dict__.update(state)
    return error
