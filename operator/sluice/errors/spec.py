"""Errors of a resource that asks for something impossible. Its author has to change it."""

from __future__ import annotations

from sluice.errors.base import Category, SluiceError


class SpecError(SluiceError):
    """The resource asks for something that cannot be done."""

    category = Category.SPEC
    default_remedy = "Correct the resource and apply it again."


class InvalidSpec(SpecError):
    """A field is missing, unknown or has a wrong value."""


class SourceNotFound(SpecError):
    """The scope or stream to copy from does not exist."""

    default_remedy = "Check the scope and the stream's name; nothing was made."


class TargetScopeNotFound(SpecError):
    """The scope to copy to does not exist."""

    default_remedy = "Create it first; only a ScopeCopy with scopePolicy: CreateIfAbsent makes one."


class TargetExists(SpecError):
    """The target stream is there and this copy did not make it."""

    default_remedy = "Name another target, or delete the stream if it is not needed."


class TargetSealed(SpecError):
    """The target stream is sealed, so nothing can be appended to it."""

    default_remedy = "Name another target; what is sealed takes no events any more."


class StreamExists(SpecError):
    """The stream to own is there, and it is somebody else's."""

    default_remedy = "Name another stream, or let the one who has it release it."


class SourceUnsupported(SpecError):
    """The source has a shape that this version cannot copy."""


class CutInsideEvent(SpecError):
    """A range that was asked for begins or ends inside an event."""

    default_remedy = "Give a cut that a client of the store gave; nothing was published."


class PlanTooLarge(SpecError):
    """The plan has more segments and parts than a ConfigMap can hold."""

    default_remedy = "Copy it with `sluice run`, which needs no ConfigMap; nothing was made."


class StoreNotFound(SpecError):
    """The StreamStore that a resource names does not exist in its namespace."""

    default_remedy = "Apply the StreamStore, or correct the name; all goes on by itself then."


class SecretNotFound(SpecError):
    """The Secret that a StreamStore names does not exist, or lacks a key."""

    default_remedy = (
        "Create the Secret with the keys username and password, for S3 accessKeyId and "
        "secretAccessKey."
    )


class ClaimNotFound(SpecError):
    """The PersistentVolumeClaim that a StreamStore names does not exist, or its volume is lost."""

    default_remedy = "Create the claim, or name another one."


class ProfileNotFound(SpecError):
    """The administrator offers no such runtime profile."""

    default_remedy = "Name a profile that is offered, or ask the administrator for a new one."


class AccessDenied(SpecError):
    """The StreamStore's `access` does not allow it."""

    default_remedy = "Ask whoever has the StreamStore to extend spec.access."


class OwnerForbidden(SpecError):
    """The operator has no right to read objects of an owner's kind."""

    default_remedy = (
        'Add a ClusterRole with the label sluice.dev/aggregate-to-owner-reader: "true" that '
        "allows to get, list and watch them; it is looked at again every minute."
    )


class OwnerKindNotFound(SpecError):
    """The cluster does not know an owner's apiVersion and kind, or not yet."""

    default_remedy = (
        "Correct the owner's apiVersion and kind, or install its definition; it is waited for."
    )


class AbortRefused(SpecError):
    """Publishing has begun; the copy can only be finished."""

    default_remedy = "Run the copy again: what is left to publish takes seconds."


class ReaderGroupNotFound(SpecError):
    """The store has no such reader group, or it does not read the copy's source."""

    default_remedy = "Check the group's scope and name, and the streams that it reads."


class ReaderGroupBusy(SpecError):
    """Readers of the group are online, so how far it has read is not known exactly."""

    default_remedy = (
        "Close these readers; one that died is taken out by ReaderGroup.readerOffline of a client. "
        "Or give a cut of your own with --cut."
    )


class ReaderGroupExists(SpecError):
    """A reader group of that name is there and began somewhere else."""

    default_remedy = (
        "Give it another name with --as, or delete that group if nobody needs it; it is untouched."
    )


class ArchiveNotFound(SpecError):
    """There is no archive at the path, or it has no such run."""

    default_remedy = "Check the store, the path and the run."


class ArchiveUnsupported(SpecError):
    """The archive was written by a later version of Sluice, in a way that this one cannot read."""

    default_remedy = "Use a version of Sluice that is as new as the one that wrote the archive."


class TooManyEvents(SpecError):
    """The stream has more events than may become objects of their own."""

    default_remedy = "Raise spec.maxEvents, or take the format Segments or Parquet."
