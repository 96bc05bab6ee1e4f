"""All errors of Sluice, in one tree.

Each error that leaves a module of Sluice belongs to this tree. An error says what is wrong
(`message`), why, in one CamelCase word for conditions and JSON (`reason`), who has to act
(`category`), and what to do (`remedy`). `retryable` says whether another try can help.

Each category has a module with its errors. This package exports them all.

The first lines of the classes' docstrings stand in docs/conditions.md, so users read them.

    SluiceError
    ├── SpecError                 the resource asks for something impossible
    │   ├── InvalidSpec               a field has a wrong value
    │   ├── SourceNotFound            no such scope or stream to copy from
    │   ├── TargetScopeNotFound       no such scope to copy to
    │   ├── TargetExists              the target is there and this copy did not make it
    │   ├── TargetSealed              the target takes no events any more
    │   ├── StreamExists              the stream to own is there and has another owner
    │   ├── SourceUnsupported         the source has a shape that cannot be copied yet
    │   ├── CutInsideEvent            a range begins or ends inside an event
    │   ├── PlanTooLarge              the plan does not fit into a ConfigMap
    │   ├── StoreNotFound             the StreamStore that is named does not exist
    │   ├── StoreNotShared            another namespace shares no such StreamStore
    │   ├── LoginNotShared            a shared StreamStore has a login, and drivers get none
    │   ├── SecretNotFound            the Secret that is named does not exist, or lacks a key
    │   ├── ClaimNotFound             the PersistentVolumeClaim that is named does not exist
    │   ├── ProfileNotFound           the administrator offers no such runtime profile
    │   ├── QueriesNotOffered         the operator has no image for queries
    │   ├── AccessDenied              the StreamStore's access does not allow it
    │   ├── OwnerForbidden            the operator has no right to read an owner
    │   ├── OwnerKindNotFound         the cluster does not know an owner's kind
    │   ├── AbortRefused              publishing has begun, the copy can only be finished
    │   ├── ReaderGroupNotFound       no such reader group, or not one of the source
    │   ├── ReaderGroupBusy           readers of the group are online
    │   ├── ReaderGroupExists         the reader group is there and began somewhere else
    │   ├── ArchiveNotFound           no archive there, or no such run of it
    │   ├── ArchiveUnsupported        a later version wrote it
    │   ├── TooManyEvents             more events than may become objects
    │   ├── HookNotFound              no such CronJob for a hook
    │   ├── HookRefused               the CronJob may not be used, or its Job is refused
    │   ├── HookFailed                the Job of a hook failed
    │   ├── InvalidQuery              a query has a mistake, or may not do what it asks for
    │   ├── QueryChanged              a query cannot go on from where it was
    │   ├── StateTooLarge             a query's open windows take too much memory
    │   └── ResultTooLarge            a batch has too many rows for one segment
    ├── BackendError              the store refused a call, or did not answer it
    │   ├── StoreUnavailable          no connection, or it broke                    (retryable)
    │   │   └── StoreTimeout          no answer before the deadline                 (retryable)
    │   ├── StoreBusy                 the store asks to come again later            (retryable)
    │   ├── StoreNotReady             the StreamStore is not ready                  (retryable)
    │   ├── AuthenticationFailed      the store does not know the user
    │   │   └── CertificateRejected       the store's certificate does not verify
    │   ├── PermissionDenied          the store knows the user and refuses
    │   ├── TokenExpired              a delegation token has to be renewed          (retryable)
    │   ├── StoreRejected             a status that the caller did not expect
    │   ├── ProtocolError             bytes that are not the store's protocol
    │   ├── ScopeNotFound, StreamNotFound, StreamNotSealed, ScopeNotEmpty
    │   ├── ArchiveMoved              another run was recorded in the archive      (retryable)
    │   └── SegmentError              about one segment
    │       ├── NoSuchSegment, SegmentExists, SegmentSealed, SegmentTruncated
    │       ├── StoreMoving           another segment store owns the segment        (retryable)
    │       ├── InvalidEventNumber    another writer with this id was faster        (retryable)
    │       └── ConditionFailed       a compare-and-set found another value
    ├── InfrastructureError       the driver, a worker or the machine broke         (retryable)
    │   ├── ResourceChanged           a resource was changed while it was worked on (retryable)
    │   ├── ApiUnavailable            the Kubernetes API refused or did not answer  (retryable)
    │   ├── DriverLost                the driver's pod is gone or gave no reason    (retryable)
    │   ├── DriverEvicted             the node evicted the driver's pod             (retryable)
    │   ├── DriverOutOfMemory         the driver needed more memory than it may use (retryable)
    │   ├── DeadlineExceeded          the copy took longer than it may
    │   ├── QuerySuperseded           another attempt of the query has begun
    │   └── SchedulingError           no room to run it                             (retryable)
    │       ├── Unschedulable             no node takes the pod                     (retryable)
    │       ├── QuotaExceeded             the namespace's quota is used up          (retryable)
    │       ├── ImagePullFailed           the image cannot be pulled                (retryable)
    │       ├── DriverNotStarted          the driver's pod stays pending            (retryable)
    │       ├── WaitingForExecutors       Spark's executors did not come in time    (retryable)
    │       └── PodRefused                the cluster's rules forbid the pod        (retryable)
    ├── IntegrityError            the data are not what the plan says; never retried by itself
    │   ├── SourceReplaced            deleted and made again under the same name
    │   ├── SourceTruncated           retention took bytes that the plan wants
    │   ├── TargetReplaced            the target changed under the copy
    │   ├── TargetLost                the store has lost journal, and target or scope
    │   ├── OutcomeUnknown            the store has forgotten whether a part was appended
    │   ├── SourceKept                a moved stream was not deleted: it is not as it was copied
    │   ├── JournalDamaged            the copy's journal cannot be read
    │   ├── EventsDamaged             a segment's bytes are no events
    │   ├── MalformedEvents           events do not fit the schema they are read by
    │   ├── DigestMismatch            staged bytes differ from the source's
    │   ├── ArchiveDamaged            an archive is not what its manifest says
    │   ├── CheckpointLost            a query's checkpoint is gone
    │   └── CheckpointDiverged        a query's checkpoint does not belong to its ledger
    └── CopyAborted               the copy's journal is gone: it was aborted, or lost
"""

from sluice.errors.backend import (
    ArchiveMoved,
    AuthenticationFailed,
    BackendError,
    CertificateRejected,
    ConditionFailed,
    InvalidEventNumber,
    NoSuchSegment,
    PermissionDenied,
    ProtocolError,
    ScopeNotEmpty,
    ScopeNotFound,
    SegmentError,
    SegmentExists,
    SegmentSealed,
    SegmentTruncated,
    StoreBusy,
    StoreMoving,
    StoreNotReady,
    StoreRejected,
    StoreTimeout,
    StoreUnavailable,
    StreamNotFound,
    StreamNotSealed,
    TokenExpired,
)
from sluice.errors.base import EXIT_CODES, Category, SluiceError
from sluice.errors.infrastructure import (
    ApiUnavailable,
    CopyAborted,
    DeadlineExceeded,
    DriverEvicted,
    DriverLost,
    DriverOutOfMemory,
    InfrastructureError,
    QuerySuperseded,
    ResourceChanged,
)
from sluice.errors.integrity import (
    UNDECIDED,
    ArchiveDamaged,
    CheckpointDiverged,
    CheckpointLost,
    DigestMismatch,
    EventsDamaged,
    IntegrityError,
    JournalDamaged,
    MalformedEvents,
    OutcomeUnknown,
    SourceKept,
    SourceReplaced,
    SourceTruncated,
    TargetLost,
    TargetReplaced,
)
from sluice.errors.scheduling import (
    DriverNotStarted,
    ImagePullFailed,
    PodRefused,
    QuotaExceeded,
    SchedulingError,
    Unschedulable,
    WaitingForExecutors,
)
from sluice.errors.spec import (
    AbortRefused,
    AccessDenied,
    ArchiveNotFound,
    ArchiveUnsupported,
    ClaimNotFound,
    CutInsideEvent,
    HookFailed,
    HookNotFound,
    HookRefused,
    InvalidQuery,
    InvalidSpec,
    LoginNotShared,
    OwnerForbidden,
    OwnerKindNotFound,
    PlanTooLarge,
    ProfileNotFound,
    QueriesNotOffered,
    QueryChanged,
    ReaderGroupBusy,
    ReaderGroupExists,
    ReaderGroupNotFound,
    ResultTooLarge,
    SecretNotFound,
    SourceNotFound,
    SourceUnsupported,
    SpecError,
    StateTooLarge,
    StoreNotFound,
    StoreNotShared,
    StreamExists,
    TargetExists,
    TargetScopeNotFound,
    TargetSealed,
    TooManyEvents,
)

__all__ = [  # noqa: RUF022 - in the order of the tree, as docs/conditions.md has them
    "Category",
    "SluiceError",
    "SpecError",
    "InvalidSpec",
    "SourceNotFound",
    "TargetScopeNotFound",
    "TargetExists",
    "TargetSealed",
    "StreamExists",
    "SourceUnsupported",
    "CutInsideEvent",
    "PlanTooLarge",
    "StoreNotFound",
    "StoreNotShared",
    "LoginNotShared",
    "SecretNotFound",
    "ClaimNotFound",
    "ProfileNotFound",
    "QueriesNotOffered",
    "AccessDenied",
    "OwnerForbidden",
    "OwnerKindNotFound",
    "AbortRefused",
    "ReaderGroupNotFound",
    "ReaderGroupBusy",
    "ReaderGroupExists",
    "ArchiveNotFound",
    "ArchiveUnsupported",
    "TooManyEvents",
    "HookNotFound",
    "HookRefused",
    "HookFailed",
    "InvalidQuery",
    "QueryChanged",
    "StateTooLarge",
    "ResultTooLarge",
    "BackendError",
    "StoreUnavailable",
    "StoreTimeout",
    "StoreBusy",
    "StoreNotReady",
    "AuthenticationFailed",
    "CertificateRejected",
    "PermissionDenied",
    "TokenExpired",
    "StoreRejected",
    "ProtocolError",
    "ScopeNotFound",
    "StreamNotFound",
    "StreamNotSealed",
    "ScopeNotEmpty",
    "ArchiveMoved",
    "SegmentError",
    "NoSuchSegment",
    "SegmentExists",
    "SegmentSealed",
    "SegmentTruncated",
    "StoreMoving",
    "InvalidEventNumber",
    "ConditionFailed",
    "InfrastructureError",
    "ResourceChanged",
    "ApiUnavailable",
    "DriverLost",
    "DriverEvicted",
    "DriverOutOfMemory",
    "DeadlineExceeded",
    "QuerySuperseded",
    "SchedulingError",
    "Unschedulable",
    "QuotaExceeded",
    "ImagePullFailed",
    "DriverNotStarted",
    "WaitingForExecutors",
    "PodRefused",
    "IntegrityError",
    "SourceReplaced",
    "SourceTruncated",
    "TargetReplaced",
    "TargetLost",
    "OutcomeUnknown",
    "SourceKept",
    "JournalDamaged",
    "EventsDamaged",
    "MalformedEvents",
    "DigestMismatch",
    "ArchiveDamaged",
    "CheckpointLost",
    "CheckpointDiverged",
    "CopyAborted",
    "EXIT_CODES",
    "UNDECIDED",
]
