"""Errors of data that are not as the plan says. A person has to look at them."""

from __future__ import annotations

from sluice.errors.base import Category, SluiceError


class IntegrityError(SluiceError):
    """The data are not what the plan says. Never retried without a person."""

    category = Category.INTEGRITY
    default_remedy = "Compare source and target before anything is deleted."


class SourceReplaced(IntegrityError):
    """The source was deleted and made again under the same name."""

    default_remedy = "Give the copy another name to copy the new stream."


class SourceTruncated(IntegrityError):
    """Retention or a truncation took bytes that the plan wants."""

    default_remedy = (
        "Lengthen the source's retention, then delete and apply the copy again: "
        "it takes the bounds anew. With onTruncation: Record a copy goes on without what is lost."
    )


class TargetReplaced(IntegrityError):
    """The target stream is not the one this copy made."""

    default_remedy = (
        "Delete this copy (on the command line: sluice abort -f FILE), or name another target."
    )


class OutcomeUnknown(IntegrityError):
    """Nobody knows any more whether a part was appended: the store remembers it for a day only."""

    default_remedy = (
        "Look at the target's end whether the source's events are there, then delete the copy "
        "and apply it under another name if they are not."
    )


class SourceKept(IntegrityError):
    """A stream was copied whole to be moved, and is not as it was copied: it was not deleted."""

    default_remedy = "Compare source and target with `sluice verify`, then delete one yourself."


UNDECIDED = (OutcomeUnknown, SourceKept)
"""Errors after which nothing is cleaned up, since a person has to decide what to do."""


class JournalDamaged(IntegrityError):
    """The copy's journal in the target store cannot be read."""

    default_remedy = "Abort the copy and run it again: it starts anew."


class EventsDamaged(IntegrityError):
    """A segment holds bytes that are no events."""

    default_remedy = "Check the source store's disks; Sluice copies no damaged segment."


class DigestMismatch(IntegrityError):
    """Staged bytes differ from the source's; nothing was published."""

    default_remedy = "Run again to copy anew; if it happens twice, check the store's disks."


class ArchiveDamaged(IntegrityError):
    """An archive's bytes are not what its manifest says, or are not there.

    Args:
        message: what is wrong.
        name: of the object that is damaged or missing.
    """

    default_remedy = (
        "Put the objects back as they were, from a copy of the archive; a run that does not list "
        "them is not concerned and can be restored."
    )

    def __init__(self, message: str, *, name: str = "") -> None:
        super().__init__(message)
        self.name = name
