"""The one tree of errors.

Every error that leaves a module of Sluice is one of these. An error says *what* is wrong
(`message`), *why* in one CamelCase word that conditions and JSON carry (`reason`), *whose move it
is* (`category`) and *what to do* (`remedy`). Whether trying again can help is `retryable`.

    SluiceError
    ├── SpecError                 the resource asks for something impossible
    │   ├── InvalidSpec               a field has a wrong value
    │   ├── SourceNotFound            no such scope or stream to copy from
    │   ├── TargetScopeNotFound       no such scope to copy to
    │   ├── TargetExists              the target is there and is not ours
    │   ├── StreamExists              the stream to own is there and is not ours
    │   ├── SourceUnsupported         the source has a shape that cannot be copied yet
    │   ├── PlanTooLarge              its plan does not fit into a ConfigMap
    │   ├── StoreNotFound             the StreamStore that is named does not exist
    │   ├── SecretNotFound            the Secret that is named does not exist, or lacks a key
    │   ├── ProfileNotFound           the administrator offers no such runtime profile
    │   ├── AccessDenied              the StreamStore's access does not allow it
    │   ├── OwnerForbidden            the operator has no right to read an owner
    │   ├── OwnerKindNotFound         the cluster does not know an owner's kind
    │   └── AbortRefused              publishing has begun, the copy can only be finished
    ├── BackendError              the store answered, and the answer was no
    │   ├── StoreUnavailable          no connection, or it broke                    (retryable)
    │   │   └── StoreTimeout          no answer before the deadline                 (retryable)
    │   ├── StoreBusy                 the store asks to come again later            (retryable)
    │   ├── StoreNotReady             the StreamStore is not ready                  (retryable)
    │   ├── AuthenticationFailed      the store does not know the user
    │   ├── PermissionDenied          the store knows the user and refuses
    │   ├── TokenExpired              a delegation token has to be renewed          (retryable)
    │   ├── StoreRejected             a status that the caller did not expect
    │   ├── ProtocolError             bytes that are not the store's protocol
    │   ├── ScopeNotFound, StreamNotFound, StreamNotSealed, ScopeNotEmpty
    │   └── SegmentError              about one segment
    │       ├── NoSuchSegment, SegmentExists, SegmentSealed, SegmentTruncated
    │       ├── WrongHost             another server owns the segment               (retryable)
    │       ├── InvalidEventNumber    another writer with our id was faster         (retryable)
    │       └── ConditionFailed       a compare-and-set found another value
    ├── InfrastructureError       what runs the copy broke (driver, worker, disk)   (retryable)
    │   ├── ResourceChanged           a resource was changed while it was worked on (retryable)
    │   ├── ApiUnavailable            the Kubernetes API said no, or nothing        (retryable)
    │   ├── DriverLost                the driver's pod is gone or ended without a word (retryable)
    │   ├── DriverEvicted             the node took the driver's pod off            (retryable)
    │   ├── DriverOutOfMemory         the driver needed more memory than it may use (retryable)
    │   ├── DeadlineExceeded          the copy took longer than it may
    │   └── SchedulingError           no room to run it                             (retryable)
    │       ├── Unschedulable             no node takes the pod                     (retryable)
    │       ├── QuotaExceeded             the namespace's quota is used up          (retryable)
    │       ├── ImagePullFailed           the image is not to be had                (retryable)
    │       ├── DriverNotStarted          the driver's pod stays pending            (retryable)
    │       ├── WaitingForExecutors       Spark's executors did not come in time    (retryable)
    │       └── PodRefused                the cluster's rules forbid the pod        (retryable)
    ├── IntegrityError            the data are not what the plan says; never retried by itself
    │   ├── SourceReplaced            deleted and made again under the same name
    │   ├── SourceTruncated           retention took bytes that the plan wants
    │   ├── TargetReplaced            the target changed under the copy
    │   ├── JournalDamaged            what drivers wrote down of the copy cannot be read
    │   ├── EventsDamaged             a segment's bytes are no events
    │   └── DigestMismatch            staged bytes differ from the source's
    └── CopyAborted               somebody aborted this copy while it ran
"""

from __future__ import annotations

from enum import StrEnum
from typing import ClassVar


class Category(StrEnum):
    """Whose move it is. Each category has its own backoff and its own exit code."""

    SPEC = "Spec"
    BACKEND = "Backend"
    INFRASTRUCTURE = "Infrastructure"
    SCHEDULING = "Scheduling"
    INTEGRITY = "Integrity"


class SluiceError(Exception):
    """Root of the tree.

    Args:
        message: what is wrong, with the names concerned.
        field: the path of the spec's field that has to change, when there is one.
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
        """The message, led by the field it is about."""
        return f"{self.field}: {self.message}" if self.field else self.message

    def __reduce__(self) -> tuple[object, ...]:
        """Pickle by state, so that errors of any signature cross a process boundary whole."""
        return (_revive, (type(self), self.args, dict(self.__dict__)))


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

    default_remedy = "Create the scope first; a copy does not make scopes."


class TargetExists(SpecError):
    """The target stream is there and this copy did not make it."""

    default_remedy = "Name another target, or delete the stream if it is not needed."


class StreamExists(SpecError):
    """The stream to own is there, and it is somebody else's."""

    default_remedy = "Name another stream, or let the one who has it release it."


class SourceUnsupported(SpecError):
    """The source has a shape that this version cannot copy."""


class PlanTooLarge(SpecError):
    """The plan has more segments and parts than a ConfigMap can hold."""

    default_remedy = "Copy it with `sluice run`, which needs no ConfigMap; nothing was made."


class StoreNotFound(SpecError):
    """The StreamStore that a resource names does not exist in its namespace."""

    default_remedy = "Apply the StreamStore, or correct the name; the copy waits for it."


class SecretNotFound(SpecError):
    """The Secret that a StreamStore names does not exist, or lacks a key."""

    default_remedy = "Create the Secret with the keys username and password."


class ProfileNotFound(SpecError):
    """The administrator offers no such runtime profile."""

    default_remedy = "Name one of the profiles that the message lists, or ask for a new one."


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


class BackendError(SluiceError):
    """The store answered, and the answer was no."""

    category = Category.BACKEND
    default_remedy = "Look at the store's logs; a copy goes on where it stopped when run again."


class StoreUnavailable(BackendError):
    """No connection to the store, or it broke."""

    retryable = True
    default_remedy = (
        "Check that the store runs and that its address is right and reachable; "
        "it is tried again, and a copy goes on where it stopped."
    )


class StoreTimeout(StoreUnavailable):
    """The store did not answer before the deadline."""


class StoreBusy(BackendError):
    """The store asks to come again later."""

    retryable = True


class StoreNotReady(BackendError):
    """The StreamStore is not ready; the copy waits for it."""

    retryable = True
    default_remedy = "Look at the StreamStore's conditions; the copy goes on when it is ready."


class AuthenticationFailed(BackendError):
    """The store does not know the user, or the password is wrong."""

    default_remedy = "Check the Secret that the StreamStore names."


class PermissionDenied(BackendError):
    """The store knows the user and refuses the operation."""

    default_remedy = (
        "Grant the user READ_UPDATE on a copy's source (listing segments needs it), and on the "
        "scopes of targets and of EphemeralStreams."
    )


class TokenExpired(BackendError):
    """The segment store refuses a delegation token; a fresh one may do."""

    retryable = True


class StoreRejected(BackendError):
    """The store answered with a status that the caller did not expect."""


class ProtocolError(BackendError):
    """The peer sent bytes that are not the store's protocol."""

    default_remedy = "Check that the address is a stream store of a supported version."


class ScopeNotFound(BackendError):
    """The store has no such scope."""


class StreamNotFound(BackendError):
    """The store has no such stream."""


class StreamNotSealed(BackendError):
    """Only a sealed stream can be deleted."""


class ScopeNotEmpty(BackendError):
    """Only an empty scope can be deleted."""


class SegmentError(BackendError):
    """The store refused something about one segment.

    Args:
        message: what was refused.
        segment: the segment's full name in the store.
        field: as in SluiceError.
        remedy: as in SluiceError.
    """

    def __init__(
        self,
        message: str,
        *,
        segment: str = "",
        field: str | None = None,
        remedy: str | None = None,
    ) -> None:
        super().__init__(message, field=field, remedy=remedy)
        self.segment = segment


class NoSuchSegment(SegmentError):
    """The segment does not exist, or not any more."""


class SegmentExists(SegmentError):
    """The segment is there already."""


class SegmentSealed(SegmentError):
    """The segment takes no more bytes."""


class SegmentTruncated(SegmentError):
    """Bytes before `start_offset` are gone."""

    def __init__(self, message: str, *, segment: str = "", start_offset: int = 0) -> None:
        super().__init__(message, segment=segment)
        self.start_offset = start_offset


class WrongHost(SegmentError):
    """Another server owns the segment (`host` says which, when the store does)."""

    retryable = True

    def __init__(self, message: str, *, segment: str = "", host: str = "") -> None:
        super().__init__(message, segment=segment)
        self.host = host


class InvalidEventNumber(SegmentError):
    """Another connection with the same writer id was faster; set up again and go on from there."""

    retryable = True


class ConditionFailed(SegmentError):
    """A compare-and-set found another value than expected."""


class InfrastructureError(SluiceError):
    """What runs the copy broke: the driver, a worker, the machine."""

    category = Category.INFRASTRUCTURE
    retryable = True
    default_remedy = "Run again: the copy goes on where it stopped."


class ResourceChanged(InfrastructureError):
    """Somebody changed or deleted a resource while it was worked on; it is looked at again."""


class ApiUnavailable(InfrastructureError):
    """The Kubernetes API refused a call of the operator, or did not answer."""

    default_remedy = "Check the operator's rights (docs/security.md) and the API server."


class DriverLost(InfrastructureError):
    """The driver's pod is gone, or ended without saying why."""

    default_remedy = "The next attempt goes on where this one stopped."


class DriverEvicted(InfrastructureError):
    """The node took the driver's pod off, for want of disk or memory."""

    default_remedy = "Give the runtime profile more scratch space or memory, if it happens again."


class DriverOutOfMemory(InfrastructureError):
    """The driver's container used more memory than its limit."""

    default_remedy = "Raise spec.runtime.driver.resources.memory."


class DeadlineExceeded(InfrastructureError):
    """The copy took longer than `spec.activeDeadlineSeconds`."""

    retryable = False
    default_remedy = (
        "Raise spec.activeDeadlineSeconds, then annotate the copy with sluice.dev/requestedAt: "
        "it goes on where it stopped."
    )


class SchedulingError(InfrastructureError):
    """There is no room to run the copy."""

    category = Category.SCHEDULING


class Unschedulable(SchedulingError):
    """No node takes the pod."""

    default_remedy = "Make room, or ask for less in spec.runtime; the pod starts when there is."


class QuotaExceeded(SchedulingError):
    """The namespace's resource quota is used up."""

    default_remedy = "Raise the namespace's quota, or ask for less in spec.runtime."


class ImagePullFailed(SchedulingError):
    """The image of the runtime profile is not to be had."""

    default_remedy = "Ask the administrator to correct the profile's image or pull secrets."


class DriverNotStarted(SchedulingError):
    """The driver's pod did not start in time, and nothing that is known as an obstacle is told."""

    default_remedy = (
        "Look at the pod, its events and its node with kubectl describe; the next attempt makes "
        "another pod."
    )


class WaitingForExecutors(SchedulingError):
    """Not one of the executors that a copy asked for came in time, or none stayed."""

    default_remedy = (
        "Look at the executors' pods and their events; make room for them, lower their resources, "
        "or set spec.runtime.executors to 0."
    )


class PodRefused(SchedulingError):
    """The cluster's rules forbid the driver's pod, or it cannot be set up."""

    default_remedy = "Ask the administrator: the message has the cluster's own words."


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
        "it takes the bounds anew."
    )


class TargetReplaced(IntegrityError):
    """The target stream is not the one this copy made."""

    default_remedy = "Abort this copy, or name another target."


class JournalDamaged(IntegrityError):
    """The copy's journal in the target store cannot be read."""

    default_remedy = "Abort the copy and run it again: it starts anew."


class EventsDamaged(IntegrityError):
    """A segment holds bytes that are no events."""

    default_remedy = "Check the source store's disks; Sluice copies no damaged segment."


class DigestMismatch(IntegrityError):
    """Staged bytes differ from the source's; nothing was published."""

    default_remedy = "Run again to copy anew; if it happens twice, check the store's disks."


class CopyAborted(SluiceError):
    """Somebody aborted this copy while it ran."""

    category = Category.INFRASTRUCTURE
    default_remedy = "Run it again if it is still wanted: it starts anew."


def _revive(
    kind: type[SluiceError], args: tuple[object, ...], state: dict[str, object]
) -> SluiceError:
    error = kind.__new__(kind, *args)
    error.args = args
    error.__dict__.update(state)
    return error
