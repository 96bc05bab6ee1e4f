"""Errors of calls to a store: the store refused a call, or did not answer it."""

from __future__ import annotations

from sluice.errors.base import Category, SluiceError


class BackendError(SluiceError):
    """The store refused a call, or did not answer it."""

    category = Category.BACKEND
    default_remedy = "Look at the store's logs. The next try goes on where this one stopped."


class StoreUnavailable(BackendError):
    """There is no connection to the store, or the connection broke."""

    retryable = True
    default_remedy = (
        "Check that the store runs and that its address is correct and reachable. "
        "The next try goes on where this one stopped."
    )


class StoreTimeout(StoreUnavailable):
    """The store did not answer before the deadline."""


class StoreBusy(BackendError):
    """The store is busy and asks to try again later."""

    retryable = True


class StoreNotReady(BackendError):
    """The StreamStore is not ready yet."""

    retryable = True
    default_remedy = (
        "Look at the StreamStore's conditions. Work goes on by itself once it is ready."
    )


class AuthenticationFailed(BackendError):
    """The store does not know the user, or the password is wrong."""

    default_remedy = (
        "Correct the login in the StreamStore's Secret, or name a Secret if it names none."
    )


class CertificateRejected(AuthenticationFailed):
    """The store's certificate does not verify, so it may be another server."""

    default_remedy = (
        "Name the certificate of the store's authority in the StreamStore's tls.caBundleRef."
    )


class PermissionDenied(BackendError):
    """The store knows the user and refuses the operation."""

    default_remedy = (
        "Grant the user READ_UPDATE on a copy's source (listing segments needs it), and on the "
        "scopes of targets and of EphemeralStreams."
    )


class TokenExpired(BackendError):
    """The segment store refuses the delegation token. A new token may be accepted."""

    retryable = True


class StoreRejected(BackendError):
    """The store answered with an unexpected status."""


class ProtocolError(BackendError):
    """The server sent bytes that do not follow the store's protocol."""

    default_remedy = "Check that the address is that of a stream store of a supported version."


class ScopeNotFound(BackendError):
    """The store has no such scope."""


class StreamNotFound(BackendError):
    """The store has no such stream."""


class StreamNotSealed(BackendError):
    """Only a sealed stream can be deleted."""


class ScopeNotEmpty(BackendError):
    """Only an empty scope can be deleted."""


class ArchiveMoved(BackendError):
    """Another process changed the archive meanwhile."""

    retryable = True


class SegmentError(BackendError):
    """The store refused something about one segment.

    Args:
        message: the refused operation, and why.
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
    """The segment does not exist, or no longer exists."""


class SegmentExists(SegmentError):
    """The segment already exists."""


class SegmentSealed(SegmentError):
    """The segment is sealed and takes no more bytes."""


class SegmentTruncated(SegmentError):
    """Bytes before `start_offset` are gone."""

    def __init__(self, message: str, *, segment: str = "", start_offset: int = 0) -> None:
        super().__init__(message, segment=segment)
        self.start_offset = start_offset


class StoreMoving(SegmentError):
    """Another segment store owns the segment (`host` says which, when the store does)."""

    retryable = True
    default_remedy = (
        "Wait: segments move when a segment store ends or starts, and the next try goes on where"
        " this one stopped. If this lasts for minutes, look at the store's logs."
    )

    def __init__(self, message: str, *, segment: str = "", host: str = "") -> None:
        super().__init__(message, segment=segment)
        self.host = host


class InvalidEventNumber(SegmentError):
    """Another connection with the same writer id was faster; set up again and go on from there."""

    retryable = True


class ConditionFailed(SegmentError):
    """A compare-and-set found another value than expected."""
