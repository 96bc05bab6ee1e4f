"""List the reasons that are no failures, and how attempts end."""

from __future__ import annotations

from enum import StrEnum
from typing import Final, NamedTuple

from sluice.api import registry

COPY, SCOPE = ("StreamCopy",), ("ScopeCopy",)
COPIES = (*COPY, *SCOPE)
ARCHIVE = ("StreamArchive",)
ARCHIVING = (*SCOPE, *ARCHIVE)
DRIVEN = tuple(kind.name for kind in registry.DRIVEN)
"""The kinds that drivers work for."""

STORE, EPHEMERAL = ("StreamStore",), ("EphemeralStream",)


class Place(StrEnum):
    """Where a reason appears."""

    READY = "Ready"
    """In the condition Ready and those that go with it, and in an event when it is new."""
    VERIFIED = "Verified"
    """In the condition Verified."""
    DRIFTED = "Drifted"
    """In the condition Drifted."""
    EVENT = "event"
    """In an event only."""
    HISTORY = "history"
    """In status.history only, as the reason of an attempt's end."""


class Reason(NamedTuple):
    """A reason of conditions and events.

    Attributes:
        name: one CamelCase word.
        kinds: the kinds that report it.
        means: what it means.
        remedy: what to do.
        warning: whether events with it are warnings.
        place: where it appears.
    """

    name: str
    kinds: tuple[str, ...]
    means: str
    remedy: str = "Nothing."
    warning: bool = False
    place: Place = Place.READY


NORMAL: Final = (
    Reason("Reachable", STORE, "The store answers, and knows the user."),
    Reason(
        "Mountable",
        STORE,
        "The claim of the volume is there. Only pods that mount it can look into it.",
    ),
    Reason("InUse", STORE, "It was deleted, and waits for the copies and streams that need it."),
    Reason("Starting", DRIVEN, "The plan is written, and the driver of an attempt starts."),
    Reason("Copying", COPIES, "A driver stages bytes; readers see none of them yet."),
    Reason(
        "Verifying",
        DRIVEN,
        "All bytes are staged, or in the archive; they are read again and compared.",
    ),
    Reason("Publishing", COPIES, "The bytes are in the target; the driver tidies up."),
    Reason(
        "Scheduled",
        ARCHIVE,
        "No run was due yet; status.nextRunTime says when the first one is.",
    ),
    Reason(
        "Archiving",
        ARCHIVING,
        "A driver writes what is new; no reader sees any of it before its run is recorded.",
    ),
    Reason("Archived", ARCHIVE, "The last run that was due is recorded, and can be restored."),
    Reason(
        "ArchivedWithGaps",
        ARCHIVE,
        "As `Archived`, without bytes that the source had lost before they were read "
        "(`onTruncation: Record`).",
        "See `status.gaps`; archive more often, or let the source keep its events for longer.",
    ),
    Reason("Copied", COPY, "The target is whole and was verified before it was published."),
    Reason(
        "CopiedWithGaps",
        COPY,
        "As `Copied`, without bytes that the source had lost before they were read "
        "(`onTruncation: Record`).",
        "See `status.gaps`; a longer retention of the source leaves a copy more time.",
    ),
    Reason(
        "Succeeded",
        SCOPE,
        "Every stream that was to be copied is whole in its target, and was verified before it "
        "was published; or each is archived, and was read back.",
    ),
    Reason(
        "PartiallySucceeded",
        SCOPE,
        "Some streams are whole in their targets, others could not be copied or were not begun "
        "(`failurePolicy: Stop`).",
        "See `status.failedStreams`. Mend what is said there, and annotate the resource with "
        "sluice.dev/requestedAt: what is not copied yet is tried again.",
        warning=True,
    ),
    Reason(
        "Failed",
        SCOPE,
        "No stream could be copied.",
        "As for `PartiallySucceeded`.",
        warning=True,
    ),
    Reason(
        "DigestsMatch",
        COPIES,
        "What was staged is, byte for byte, what the source holds.",
        place=Place.VERIFIED,
    ),
    Reason(
        "ReadBack",
        ARCHIVING,
        "What the last run added was read back, and is what the source holds.",
        place=Place.VERIFIED,
    ),
    Reason(
        "Suspended",
        (*DRIVEN, *EPHEMERAL),
        "Nothing runs, is made or released; what is staged, and each stream, stays.",
        "Set spec.suspend to false to go on.",
    ),
    Reason("Stopping", DRIVEN, "The driver is being stopped; what is staged stays."),
    Reason(
        "SpecChanged",
        DRIVEN,
        "spec.runtime was changed before the attempt's driver ran: another attempt took its place.",
        place=Place.HISTORY,
    ),
    Reason(
        "Deleting",
        (*DRIVEN, *EPHEMERAL),
        "It was deleted: a driver stops, what is staged is dropped, streams are let go, and an "
        "archive is deleted where onDelete says so.",
    ),
    Reason(
        "Orphaned",
        (*DRIVEN, *EPHEMERAL),
        "It was let go, and what it had is left in a store: what was staged, streams, or an "
        "archive.",
        "When the store can be reached again, drop what a copy staged with `sluice abort`, and "
        "streams with `sluice streams stale --delete`; delete an archive by its path.",
        warning=True,
        place=Place.EVENT,
    ),
    Reason(
        "ArchiveKept",
        ARCHIVE,
        "It was deleted with `onDelete: Delete`, and its archive stays: somebody else has put runs "
        "there, or it is not known who has; or nothing may be deleted there. Or the archive is "
        "deleted, and objects that are not of it stay in its folders.",
        "`sluice archive inspect` tells who has made a run; delete what stays by its path if "
        "nobody needs it.",
        place=Place.EVENT,
    ),
    Reason(
        "WaitingForOwner",
        EPHEMERAL,
        "None of the owners was there yet, so no stream is made.",
        "Apply an owner, or correct spec.owners.",
    ),
    Reason("Making", EPHEMERAL, "The stream is made or adopted, or a prefix is marked."),
    Reason("Configuring", EPHEMERAL, "The stream is given the configuration of the spec."),
    Reason("Claimed", EPHEMERAL, "The streams that are there are owned."),
    Reason(
        "StreamMissing",
        EPHEMERAL,
        "Somebody else deleted the stream, with what was in it. It is made again.",
        "Find out who deletes streams of Sluice.",
        warning=True,
    ),
    Reason(
        "ConfigDrifted",
        EPHEMERAL,
        "Somebody else changed the configuration of the stream.",
        "Change spec.config, or annotate the resource with sluice.dev/requestedAt to have the "
        "stream changed back.",
        place=Place.DRIFTED,
    ),
    Reason(
        "Conflict",
        EPHEMERAL,
        "An older resource, or another one that has the stream, claims the same.",
        "Delete one of the two, or name other streams.",
        warning=True,
    ),
    Reason(
        "OwnersDeleted",
        EPHEMERAL,
        "The owners are gone, and Kubernetes' garbage collector deletes the resource next.",
    ),
    Reason(
        "OwnerOrphaned",
        EPHEMERAL,
        "The owners were deleted with --cascade=orphan, so the streams stay.",
        "Make an owner again, which takes the streams over, or delete the resource.",
        warning=True,
    ),
    Reason(
        "GracePeriod",
        EPHEMERAL,
        "Nobody needs the streams any more, and a successor may still take them over.",
    ),
    Reason(
        "StillRead",
        EPHEMERAL,
        "The streams are released when copies have read them, or after an hour.",
    ),
    Reason("Releasing", EPHEMERAL, "The streams are let go, and the resource stays."),
    Reason(
        "Released",
        EPHEMERAL,
        "The streams were let go for good. No stream is made again.",
        "Nothing; the resource can be deleted.",
    ),
)

OUTCOMES: Final = (
    (
        "Succeeded",
        "The target was whole afterwards, or every target of a scope, or the run was recorded.",
    ),
    ("Failed", "The reason is a failure, or says that not every stream of a scope is copied."),
    ("Suspended", "spec.suspend was set while it ran."),
    ("Stopped", "The StreamStore's access was withdrawn while it ran; what was staged is kept."),
    ("Replaced", "spec.runtime was changed before its driver ran."),
)
"""How attempts end, in status.history and in the metric sluice_attempts_total."""
