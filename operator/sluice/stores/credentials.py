"""A user and password for a store, read from files and never shown."""

from __future__ import annotations

from dataclasses import dataclass, field
from time import monotonic
from typing import TYPE_CHECKING, Final

from sluice.api.fields.backends import LOGIN_KEYS
from sluice.errors import AuthenticationFailed

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence
    from pathlib import Path

_GRACE: Final = 60.0
"""Seconds that a kubelet may take to change the files of a pod."""


@dataclass(frozen=True, slots=True)
class Credentials:
    """A user and password for a store. The repr shows neither, so logs do not."""

    username: str = field(repr=False)
    password: str = field(repr=False)
    source: tuple[str, Path] | None = field(default=None, repr=False, compare=False)
    """The Secret and the folder that they were read from."""

    @classmethod
    def read(cls, secret: str, folder: Path | None) -> Credentials:
        """Read `<folder>/<secret>/username` and `.../password`, as Kubernetes mounts a Secret.

        Line breaks at the end of a file are dropped.

        Raises:
            AuthenticationFailed: there is no such folder or file, or a file is empty.
        """
        username, password = (read_file(secret, key, folder, keys=LOGIN_KEYS) for key in LOGIN_KEYS)
        return cls(username, password, source=None if folder is None else (secret, folder))

    def again(self) -> Credentials:
        """Read the files again. Return the same credentials if there are none, or they fail."""
        if self.source is None:
            return self
        try:
            return Credentials.read(*self.source)
        except AuthenticationFailed:
            return self


class Grace:
    """For how long a refusal may pass of what a store, or its certificate, was accepted by before.

    A changed Secret or ConfigMap reaches the files of a pod late, so a refusal stands only if
    nothing has changed for a while.

    Args:
        clock: monotonic time in seconds.
    """

    def __init__(self, clock: Callable[[], float] = monotonic) -> None:
        self._clock = clock
        self._accepted = False
        self._refused: float | None = None

    def accepted(self) -> None:
        """Note that all is well."""
        self._accepted, self._refused = True, None

    def may_pass(self) -> bool:
        """Note a refusal. Tell whether it may pass by itself."""
        now = self._clock()
        if self._refused is None:
            self._refused = now
        return self._accepted and now - self._refused < _GRACE


def read_file(secret: str, key: str, folder: Path | None, *, keys: Sequence[str]) -> str:
    """Read `<folder>/<secret>/<key>`, as Kubernetes mounts a Secret, without its last line break.

    Args:
        secret: the Secret's name.
        key: the key whose value is read.
        folder: the folder of Secrets; None if the process has none.
        keys: all keys that the Secret must have, for the remedy.

    Raises:
        AuthenticationFailed: there is no such folder or file, or the file is empty.
    """
    if folder is None:
        raise AuthenticationFailed(
            f"the store's credentials are in the Secret {secret!r}, "
            "and this process has no folder of credentials",
            field="secret",
            remedy=f"Mount the Secret as <folder>/{secret} and set SLUICE_CREDENTIALS_DIR "
            "to that folder.",
        )
    path = folder / secret / key
    remedy = f"Give the Secret {secret!r} the keys {' and '.join(keys)}, mounted at {path.parent}."
    try:
        text = path.read_text(encoding="utf-8").rstrip("\r\n")
    except (OSError, UnicodeDecodeError) as error:
        reason = error.strerror if isinstance(error, OSError) else "it is not UTF-8"
        raise AuthenticationFailed(
            f"cannot read {path}: {reason}", field="secret", remedy=remedy
        ) from None
    if not text:
        raise AuthenticationFailed(f"{path} is empty", field="secret", remedy=remedy)
    return text
