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

    default_remedy = "Create it first, or make another copy with scopePolicy: CreateIfAbsent."


class TargetExists(SpecError):
    """The target stream exists, and this copy did not make it."""

    default_remedy = "Name another target, or delete the stream if it is not needed."


class TargetSealed(SpecError):
    """The target stream is sealed, so nothing can be appended to it."""

    default_remedy = "Name another target: a sealed stream takes no events."


class StreamExists(SpecError):
    """The stream exists, and the resource does not own it."""

    default_remedy = "Name another stream, or release it from the resource that owns it."


class SourceUnsupported(SpecError):
    """This version cannot copy a source of this shape."""


class CutInsideEvent(SpecError):
    """A requested range begins or ends inside an event."""

    default_remedy = "Take the cut from a client of the store. Nothing was published."


class PlanTooLarge(SpecError):
    """The plan has more segments and parts than a ConfigMap can hold."""

    default_remedy = "Copy it with `sluice run`, which needs no ConfigMap; nothing was made."


class StoreNotFound(SpecError):
    """The named StreamStore does not exist in the resource's namespace."""

    default_remedy = "Apply the StreamStore, or correct the name. Work goes on by itself then."


class StoreNotShared(SpecError):
    """The other namespace shares no StreamStore of this name with the resource's namespace."""

    default_remedy = (
        "Ask its administrator to add your namespace to spec.access.sharedWith, or correct the "
        "name. Work goes on by itself then."
    )


class LoginNotShared(SpecError):
    """Drivers of the copy may not have the login or files of a StreamStore of another namespace."""

    default_remedy = (
        "Run the copy in the StreamStore's namespace, make a StreamStore with a login of your "
        "own, or have the entry of access.sharedWith say driverNamespace: Store."
    )


class SecretNotFound(SpecError):
    """The StreamStore's Secret does not exist, or lacks a key."""

    default_remedy = (
        "Create the Secret with the keys username and password, or for S3 with accessKeyId and "
        "secretAccessKey."
    )


class ClaimNotFound(SpecError):
    """The StreamStore's PersistentVolumeClaim does not exist, or its volume is lost."""

    default_remedy = "Create the claim, or name another."


class ProfileNotFound(SpecError):
    """The administrator offers no such runtime profile."""

    default_remedy = "Name an offered profile, or ask the administrator for a new one."


class QueriesNotOffered(SpecError):
    """The administrator offers no queries: the operator has no image for them."""

    default_remedy = "Ask the administrator to set the Helm value queries.image."


class AccessDenied(SpecError):
    """The StreamStore's `access`, or the administrator, does not allow it."""

    default_remedy = "Ask the StreamStore's administrator to extend spec.access."


class OwnerForbidden(SpecError):
    """The operator may not read objects of an owner's kind."""

    default_remedy = (
        'Add a ClusterRole with the label sluice.dev/aggregate-to-owner-reader: "true" that '
        "allows to get, list and watch them. The operator looks again every minute."
    )


class OwnerKindNotFound(SpecError):
    """The cluster does not know an owner's apiVersion and kind yet."""

    default_remedy = (
        "Correct the owner's apiVersion and kind, or install its definition. The operator looks "
        "again by itself."
    )


class AbortRefused(SpecError):
    """Publishing has begun; the copy can only be finished."""

    default_remedy = "Run the copy again: it publishes the rest within seconds."


class ReaderGroupNotFound(SpecError):
    """The store has no such reader group, or the group does not read the copy's source."""

    default_remedy = "Check the group's scope and name, and the streams that it reads."


class ReaderGroupBusy(SpecError):
    """Readers of the group are online, so its exact position is unknown."""

    default_remedy = (
        "Close these readers. Take out a dead reader with ReaderGroup.readerOffline of a client. "
        "Or give a cut of your own with --cut."
    )


class ReaderGroupExists(SpecError):
    """A reader group of that name exists and began at another position."""

    default_remedy = (
        "Give the new group another name with --as, or delete the existing one if you do not need "
        "it. Sluice did not change it."
    )


class ArchiveNotFound(SpecError):
    """The path has no archive, or the archive has no such run."""

    default_remedy = "Check the store, the path and the run."


class ArchiveUnsupported(SpecError):
    """A later version of Sluice wrote the archive in a way that this version cannot read."""

    default_remedy = "Use the version of Sluice that wrote the archive, or a later one."


class TooManyEvents(SpecError):
    """The stream has more events than `spec.maxEvents` allows."""

    default_remedy = "Raise spec.maxEvents, or take the format Segments or Parquet."


class HookNotFound(SpecError):
    """The CronJob that a hook names does not exist in the copy's namespace."""

    default_remedy = "Apply the CronJob, or correct the name. The copy goes on by itself then."


class HookRefused(SpecError):
    """The hook's CronJob may not be used for copies, or the API server refuses its Job."""

    default_remedy = (
        'If copies may run it, annotate the CronJob with sluice.dev/hook: "true". The copy goes on '
        "by itself then."
    )


class HookFailed(SpecError):
    """The Job of a hook failed, took too long, or was deleted before it ended."""

    default_remedy = (
        "Look at the Job with kubectl describe and kubectl logs, and correct the CronJob. Then "
        "annotate the copy with sluice.dev/requestedAt, which runs the hook again. Or take "
        "onFailure: Continue."
    )


class InvalidQuery(SpecError):
    """The query has a mistake, or asks for something that a query may not do."""


class QueryChanged(SpecError):
    """The query or a source was changed, so it cannot go on from where it was."""

    default_remedy = (
        "Take the change back, or set onChange: Restart. It goes on behind the last event that it "
        "has read then, with empty windows."
    )


class StateTooLarge(SpecError):
    """The windows of a query that are not closed take too much of its memory."""

    default_remedy = (
        "Give the query's pod more memory (spec.runtime.driver.resources.memory; half of it is for "
        "windows). Or make the query anew, under another name, with shorter windows, a smaller "
        "latenessSeconds or fewer keys. Nothing of the batch was written."
    )


class ResultTooLarge(SpecError):
    """A batch has more rows for one segment than a store takes at once."""

    default_remedy = (
        "Take smaller batches by limits.batchBytes, or make the query anew with more segments of "
        "the sink. Nothing of the batch was written."
    )
