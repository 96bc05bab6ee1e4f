"""List the reasons that are failures, and tell where each reason is explained."""

from __future__ import annotations

from typing import Final, NamedTuple

from sluice import errors
from sluice.core.catalogue.reason import (
    ARCHIVE,
    COPIES,
    COPY,
    DRIVEN,
    EPHEMERAL,
    QUERY,
    STORE,
)
from sluice.core.catalogue.reasons import NORMAL
from sluice.errors import Category

PAGE: Final = "docs/conditions.md"
"""The page that explains each reason; see `anchor`."""


class FailureReason(NamedTuple):
    """A reason that is a failure. Events with it are warnings.

    Attributes:
        name: one CamelCase word: the name of an error, or a word of the driver.
        kinds: the kinds that report it.
        means: what it means.
        remedy: what to do, if the error has no better remedy.
        category: where the cause is.
        retryable: whether another attempt can help.
        waits: whether a copy waits until it has passed, and does not count it as a failure.
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
        (*DRIVEN, *QUERY),
        "The driver was told to stop before the copy or the run was complete.",
        "Nothing: the next attempt goes on where this one stopped.",
        Category.INFRASTRUCTURE,
        retryable=True,
    ),
    FailureReason(
        "InternalError",
        (*DRIVEN, *QUERY),
        "The driver failed through a bug.",
        "Report it with the log of the driver's pod.",
        Category.INFRASTRUCTURE,
        retryable=True,
    ),
)

ABSTRACT: Final = frozenset(
    {"SluiceError", "SpecError", "BackendError", "SegmentError", "SchedulingError"}
)
"""Errors that only group others. They are never raised, so no condition has them."""

OF_COMMANDS: Final = frozenset(
    {
        "ReaderGroupNotFound",
        "ReaderGroupBusy",
        "ReaderGroupExists",
    }
)
"""Errors of the command line only, so no condition has them either."""

_OF_QUERIES: Final = frozenset(
    {
        "MalformedEvents",
        "InvalidQuery",
        "QueriesNotOffered",
        "QueryChanged",
        "ResultTooLarge",
        "StateTooLarge",
        "QuerySuperseded",
        "CheckpointLost",
        "CheckpointDiverged",
    }
)
"""Errors of queries only."""

_OF_RESTORES: Final = frozenset({"ArchiveNotFound", "ArchiveUnsupported", "ArchiveDamaged"})
"""Errors of reading an archive: of its next run, and of copies from it."""

_OF_RUNS: Final = frozenset({"TooManyEvents", "ArchiveMoved"})
"""Errors of an archive's runs only."""

_OF_TARGETS: Final = frozenset(
    {
        "TargetScopeNotFound",
        "TargetExists",
        "TargetSealed",
        "TargetReplaced",
        "TargetLost",
        "CutInsideEvent",
        "OutcomeUnknown",
        "SourceKept",
        "JournalDamaged",
        "DigestMismatch",
        "AbortRefused",
        "CopyAborted",
        "HookNotFound",
        "HookRefused",
        "HookFailed",
    }
)
"""Errors of copies only, since these make streams and have hooks."""

_ALSO_OF_SINKS: Final = frozenset(
    {"TargetScopeNotFound", "TargetExists", "TargetSealed", "TargetReplaced", "JournalDamaged"}
)
"""Errors of targets that the sinks of queries have, too."""

_SAID_BY_STORES: Final = frozenset(
    {
        "InvalidSpec",
        "AccessDenied",
        "SecretNotFound",
        "ClaimNotFound",
        "StoreUnavailable",
        "StoreTimeout",
        "StoreBusy",
        "AuthenticationFailed",
        "CertificateRejected",
        "PermissionDenied",
        "StoreRejected",
        "ProtocolError",
        "ApiUnavailable",
    }
)
"""Errors of the probe of a StreamStore."""

_SAID_BY_EPHEMERALS: Final = _SAID_BY_STORES | {
    "StoreNotFound",
    "StoreNotReady",
    "StoreNotShared",
    "ScopeNotFound",
    "ResourceChanged",
    "StreamExists",
    "OwnerForbidden",
    "OwnerKindNotFound",
}
"""Errors that keep an EphemeralStream from making, changing or releasing streams."""

_OF_EPHEMERALS: Final = frozenset(
    {"ResourceChanged", "StreamExists", "OwnerForbidden", "OwnerKindNotFound"}
)
"""Errors of EphemeralStreams only."""

_WAITED_FOR: Final = frozenset({"StoreNotFound", "StoreNotReady", "StoreNotShared", "AccessDenied"})
"""Errors that a copy waits for: the operator looks at it again when they have passed."""

_PLAINLY: Final = {
    "SegmentTruncated": "Requested bytes are gone from the segment.",
    "StoreMoving": "The segment moves to another segment store.",
    "InvalidEventNumber": "Another driver of the same copy appended first.",
    "ConditionFailed": "The segment holds an unexpected value.",
}
"""The meanings, for users, of errors whose docstrings are for programmers."""

_ERRORS: Final = {
    cls.__name__: cls
    for cls in (getattr(errors, name) for name in errors.__all__)
    if isinstance(cls, type) and issubclass(cls, errors.SluiceError)
}


def _kinds(name: str) -> tuple[str, ...]:
    """Return the kinds that can report a failure."""
    if name in _OF_QUERIES:
        return QUERY
    if name in _OF_RESTORES:
        return (*COPY, *ARCHIVE, *QUERY)
    if name in _OF_RUNS:
        return ARCHIVE
    of_copies = name in _OF_TARGETS - _ALSO_OF_SINKS
    return (
        *(STORE if name in _SAID_BY_STORES else ()),
        *(COPIES if name not in _OF_EPHEMERALS else ()),
        *(ARCHIVE if name not in _OF_EPHEMERALS | _OF_TARGETS else ()),
        *(EPHEMERAL if name in _SAID_BY_EPHEMERALS else ()),
        *(QUERY if name == "ResourceChanged" or not (of_copies or name in _OF_EPHEMERALS) else ()),
    )


def failures() -> tuple[FailureReason, ...]:
    """Return the reasons that are failures: errors in their tree's order, then the driver's own."""
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


_MEANINGS: Final = {reason.name: reason.means for reason in NORMAL} | {
    failure.name: failure.means for failure in failures()
}

ENDS: Final = frozenset(reason.name for reason in NORMAL if reason.ends)
"""Reasons with which the work for a resource has ended well."""


def meaning(reason: str) -> str:
    """Tell what a reason means; an empty text for one that the catalogue does not have."""
    return _MEANINGS.get(reason, "")


def is_warning(reason: str) -> bool:
    """Tell whether an event with this reason is a warning."""
    return reason in _WARNINGS


def anchor(reason: str) -> str:
    """Return where a reason is explained: a page of the project and a place in it."""
    return f"{PAGE}#{reason.lower()}"
