"""Reasons that are failures, and where each reason is explained."""

from __future__ import annotations

from typing import Final, NamedTuple

from sluice import errors
from sluice.core.catalogue.reasons import ARCHIVE, COPIES, COPY, DRIVEN, EPHEMERAL, NORMAL, STORE
from sluice.errors import Category

PAGE: Final = "docs/conditions.md"
"""Where each reason is explained; see `anchor`."""


class FailureReason(NamedTuple):
    """A reason that is a failure. Events say it as a warning.

    Attributes:
        name: one CamelCase word, of an error or of the driver.
        kinds: the kinds that say it.
        means: what it means.
        remedy: what to do, where the error does not know better.
        category: whose move it is.
        retryable: whether trying again can help.
        waits: whether a copy waits for it to pass, and does not count it as a failure.
    """

    name: str
    kinds: tuple[str, ...]
    means: str
    remedy: str
    category: Category
    retryable: bool
    waits: bool = False


_DRIVERS_OWN: Final = (
    FailureReason(
        "Interrupted",
        DRIVEN,
        "The driver was told to stop before the copy or the run was complete.",
        "Nothing: the next attempt goes on where this one stopped.",
        Category.INFRASTRUCTURE,
        retryable=True,
    ),
    FailureReason(
        "InternalError",
        DRIVEN,
        "A bug of the driver.",
        "Report it with the log of the driver's pod.",
        Category.INFRASTRUCTURE,
        retryable=True,
    ),
)

ABSTRACT: Final = frozenset(
    {"SluiceError", "SpecError", "BackendError", "SegmentError", "SchedulingError"}
)
"""Errors that only group others: nobody raises them, so no condition says them."""

OF_COMMANDS: Final = frozenset({"ReaderGroupNotFound", "ReaderGroupBusy", "ReaderGroupExists"})
"""What only the command line comes to, so no condition says it either."""

_OF_RESTORES: Final = frozenset({"ArchiveNotFound", "ArchiveUnsupported", "ArchiveDamaged"})
"""What only those come to that read an archive: its next run, and copies from it."""

_OF_RUNS: Final = frozenset({"TooManyEvents", "ArchiveMoved"})
"""What only a run of an archive comes to."""

_OF_TARGETS: Final = frozenset(
    {
        "TargetScopeNotFound",
        "TargetExists",
        "TargetSealed",
        "TargetReplaced",
        "CutInsideEvent",
        "OutcomeUnknown",
        "SourceKept",
        "JournalDamaged",
        "DigestMismatch",
        "AbortRefused",
        "CopyAborted",
    }
)
"""What only a copy comes to, which makes streams."""

_SAID_BY_STORES: Final = frozenset(
    {
        "InvalidSpec",
        "SecretNotFound",
        "ClaimNotFound",
        "StoreUnavailable",
        "StoreTimeout",
        "StoreBusy",
        "AuthenticationFailed",
        "PermissionDenied",
        "StoreRejected",
        "ProtocolError",
        "ApiUnavailable",
    }
)
"""What asking a StreamStore whether it is there can come to."""

_SAID_BY_EPHEMERALS: Final = _SAID_BY_STORES | {
    "AccessDenied",
    "StoreNotFound",
    "StoreNotReady",
    "ScopeNotFound",
    "ResourceChanged",
    "StreamExists",
    "OwnerForbidden",
    "OwnerKindNotFound",
}
"""What keeps an EphemeralStream from making, changing or releasing streams."""

_OF_EPHEMERALS: Final = frozenset(
    {"ResourceChanged", "StreamExists", "OwnerForbidden", "OwnerKindNotFound"}
)
"""What nothing else says."""

_WAITED_FOR: Final = frozenset({"StoreNotFound", "StoreNotReady"})
"""What a copy is woken up for when it has passed."""

_PLAINLY: Final = {
    "SegmentTruncated": "Bytes that were asked for are gone from the segment.",
    "WrongHost": "Another server owns the segment now.",
    "InvalidEventNumber": "Another driver of the same copy was faster.",
    "ConditionFailed": "The segment holds another value than was expected.",
}
"""What errors mean whose own texts speak to programmers."""

_ERRORS: Final = {
    cls.__name__: cls
    for cls in (getattr(errors, name) for name in errors.__all__)
    if isinstance(cls, type) and issubclass(cls, errors.SluiceError)
}


def _kinds(name: str) -> tuple[str, ...]:
    """The kinds that can say a failure."""
    if name in _OF_RESTORES:
        return (*COPY, *ARCHIVE)
    if name in _OF_RUNS:
        return ARCHIVE
    return (
        *(STORE if name in _SAID_BY_STORES else ()),
        *(COPIES if name not in _OF_EPHEMERALS else ()),
        *(ARCHIVE if name not in _OF_EPHEMERALS | _OF_TARGETS else ()),
        *(EPHEMERAL if name in _SAID_BY_EPHEMERALS else ()),
    )


def failures() -> tuple[FailureReason, ...]:
    """The reasons that are failures: errors in the order of their tree, then the driver's own."""
    return (
        *(
            FailureReason(
                name,
                _kinds(name),
                _PLAINLY.get(name) or " ".join((cls.__doc__ or "").strip().splitlines()[0].split()),
                cls.default_remedy,
                cls.category,
                retryable=cls.retryable,
                waits=name in _WAITED_FOR,
            )
            for name, cls in _ERRORS.items()
            if name not in ABSTRACT | OF_COMMANDS
        ),
        *_DRIVERS_OWN,
    )


_WARNINGS: Final = frozenset(
    {reason.name for reason in NORMAL if reason.warning}
    | {failure.name for failure in failures()}
    | ABSTRACT
)


def is_warning(reason: str) -> bool:
    """Whether an event with this reason is a warning."""
    return reason in _WARNINGS


def anchor(reason: str) -> str:
    """Where a reason is explained: a page of the project and a place in it."""
    return f"{PAGE}#{reason.lower()}"
