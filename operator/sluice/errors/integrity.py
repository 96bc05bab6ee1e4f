"""Errors of data that are not as the plan says. A person has to look at them."""

from __future__ import annotations

from sluice.errors.base import Category, SluiceError


class IntegrityError(SluiceError):
    """The data differ from the plan. Sluice does not retry this by itself."""

    category = Category.INTEGRITY
    default_remedy = "Compare source and target before you delete anything."


class SourceReplaced(IntegrityError):
    """The source was deleted and made again under the same name."""

    default_remedy = "Give the copy another name to copy the new stream."


class SourceTruncated(IntegrityError):
    """Retention or a truncation deleted bytes that the plan needs."""

    default_remedy = (
        "Lengthen the source's retention, then delete the copy and apply it again: "
        "it takes new bounds. With onTruncation: Record a copy goes on without the lost bytes."
    )


class TargetReplaced(IntegrityError):
    """The target stream is not the stream that this copy made."""

    default_remedy = (
        "Delete this copy (on the command line: sluice abort -f FILE), or name another target."
    )


class TargetLost(IntegrityError):
    """The target store has lost the copy's journal, and its target or scope."""

    default_remedy = (
        "Find out whether the store lost its data, or whether its address leads to another store "
        "now. If the store stays empty, make the scope again, and run the copy again: it starts "
        "anew. A resource is run again by the annotation sluice.dev/requestedAt."
    )


class OutcomeUnknown(IntegrityError):
    """Sluice cannot tell whether a part was appended: the store remembers this for a day only."""

    default_remedy = (
        "Check whether the target's end has the source's events. If not, delete the copy and "
        "apply it under another name."
    )


class SourceKept(IntegrityError):
    """A moved stream was copied but not deleted: it, or its target, changed after the copy."""

    default_remedy = (
        "Compare source and target with `sluice verify`, then delete one of them yourself."
    )


UNDECIDED = (TargetLost, OutcomeUnknown, SourceKept)
"""Errors after which nothing is cleaned up, since a person has to decide what to do."""


class JournalDamaged(IntegrityError):
    """The copy's journal in the target store cannot be read."""

    default_remedy = "Abort the copy and run it again: it starts anew."


class EventsDamaged(IntegrityError):
    """A segment holds bytes that are not events."""

    default_remedy = "Check the source store's disks; Sluice copies no damaged segment."


class MalformedEvents(IntegrityError):
    """Events do not fit the format and the schema that they are read by."""

    default_remedy = (
        "Correct the schema, or read with malformed: Drop, or with Rescue and the column "
        "_malformed, which takes such events."
    )


class DigestMismatch(IntegrityError):
    """Staged bytes differ from the source's; nothing was published."""

    default_remedy = "Run again to copy anew; if it happens twice, check the store's disks."


class ArchiveDamaged(IntegrityError):
    """An archive's bytes differ from its manifest, or are missing.

    Args:
        message: what is wrong.
        name: of the object that is damaged or missing.
    """

    default_remedy = (
        "Put the objects back from a copy of the archive. Runs that do not list them are not "
        "affected and can be restored."
    )

    def __init__(self, message: str, *, name: str = "") -> None:
        super().__init__(message)
        self.name = name


class CheckpointLost(IntegrityError):
    """The query's checkpoint is gone, and with it the windows that were not closed."""

    default_remedy = (
        "Bring the checkpoint back, or set onChange: Restart. The query goes on behind the last "
        "event that it has read then, with empty windows."
    )


class CheckpointDiverged(IntegrityError):
    """The query's checkpoint and its ledger beside the first sink do not belong together."""

    default_remedy = (
        "Bring back the checkpoint that belongs to the ledger, or set onChange: Restart. The query "
        "goes on behind the last batch of the ledger then, with empty windows."
    )
