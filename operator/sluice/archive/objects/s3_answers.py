"""Parse the answers of an S3 store, which the library passes on as text in its errors."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Final

from sluice.errors import (
    AuthenticationFailed,
    PermissionDenied,
    SluiceError,
    StoreBusy,
    StoreRejected,
    StoreTimeout,
    StoreUnavailable,
)

_LIBRARY: Final = "Generic S3 error: "
"""The prefix of all error messages of the library."""
_NO_USER: Final = {
    "InvalidAccessKeyId",
    "SignatureDoesNotMatch",
    "ExpiredToken",
    "InvalidToken",
    "XAdminUserNotFound",
}
_KINDS: Final[dict[int, type[SluiceError]]] = {
    401: AuthenticationFailed,
    403: PermissionDenied,
    409: StoreBusy,
    429: StoreBusy,
    503: StoreBusy,
}
_REMEDIES: Final[dict[type[SluiceError], str]] = {
    PermissionDenied: "Let the user list, read, write and delete objects of this bucket."
}
_SERVER: Final = 500


@dataclass(frozen=True, slots=True)
class S3Failure:
    """The server's answer, parsed from the text of the library's error, which has nothing else.

    Attributes:
        status: HTTP status; None without an answer.
        code: error code of S3; empty without one.
        message: message of the store, or the first line of the library's.
        late: whether the answer did not come in time.
    """

    status: int | None
    code: str
    message: str
    late: bool

    @classmethod
    def of(cls, error: Exception) -> S3Failure:
        """Parse an error. Its whole text is never shown, since it is a page long."""
        text = str(error)
        status = re.search(r"status code: (\d{3})", text)
        code = re.search(r"<Code>(\w+)</Code>", text)
        said = re.search(r"<Message>([^<]*)</Message>", text)
        cause = re.findall(r'(?:message|error): "([^"]*)"', text)
        first = text.partition("\n")[0].partition(": <?xml")[0].removeprefix(_LIBRARY)
        return cls(
            int(status[1]) if status else None,
            code[1] if code else "",
            said[1] if said else ": ".join([first, *cause[-1:]]),
            "kind: Timeout" in text,
        )

    def told(self, what: str) -> SluiceError:
        """Return the matching SluiceError, with `what` before the message."""
        text = f"{what}: {self.code + ', ' if self.code else ''}{self.message}"
        if self.status is None:
            return (StoreTimeout if self.late else StoreUnavailable)(text)
        if self.code in _NO_USER:
            return AuthenticationFailed(text)
        if self.code == "NoSuchBucket":
            return StoreRejected(text, remedy="Make the bucket first, or correct its name.")
        kind = _KINDS.get(self.status)
        if kind is None:
            kind = StoreUnavailable if self.status >= _SERVER else StoreRejected
        return kind(text, remedy=_REMEDIES.get(kind))


def only_missing(error: FileNotFoundError) -> None:
    """Raise the error again if the bucket or the user is missing, and not just the object."""
    if S3Failure.of(error).code not in {"", "NoSuchKey"}:
        raise error
