"""Copies between streams of a store that speaks TLS and needs a login."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Final

from segment_hash import segment_report
from support.command.follow_command import FollowingCopy
from support.command.sluice_command import Copy

if TYPE_CHECKING:
    from pathlib import Path

    from localstore import Cluster, ForeignClient, Standalone, User

LOGIN: Final = "login"
TRUST: Final = "trust"
"""The names of the Secret with the login, and of the ConfigMap with the certificates."""


@dataclass
class SecuredCopy(Copy):
    """A copy whose store names a login and a bundle of certificates.

    Args:
        tls: the store's field `tls`, as YAML has it.
    """

    tls: str = f"{{caBundleRef: {{name: {TRUST}}}}}"

    @property
    def file(self) -> Path:
        """The file, written anew."""
        path = super().file
        path.write_text(secured(path.read_text(), self.uri, self.tls))
        return path


@dataclass
class SecuredFollowing(FollowingCopy):
    """A copy that follows its source, with a login and a bundle of certificates."""

    tls: str = field(default=f"{{caBundleRef: {{name: {TRUST}}}}}")

    @property
    def file(self) -> Path:
        """The file, written anew."""
        path = super().file
        path.write_text(secured(path.read_text(), self.uri, self.tls))
        return path


def secured(text: str, uri: str, tls: str) -> str:
    """Add the login and the certificates to the StreamStore in a file."""
    address = f'controllerURI: "{uri}"'
    assert address in text
    login = f"auth: {{basic: {{secretRef: {{name: {LOGIN}}}}}}}"
    return text.replace(address, ", ".join(filter(None, (address, login, tls and f"tls: {tls}"))))


def mount(copy: Copy, user: User, bundle: str) -> None:
    """Write the login and the certificates to files, as Kubernetes would mount them."""
    folder = copy.folder / "credentials"
    for path, text in (
        (f"{LOGIN}/username", user.name),
        (f"{LOGIN}/password", user.password),
        (f"_{TRUST}/ca.crt", bundle),
    ):
        (folder / path).parent.mkdir(parents=True, exist_ok=True)
        (folder / path).write_text(text)
    copy.environment["SLUICE_CREDENTIALS_DIR"] = str(folder)


def segments_of(
    server: Standalone | Cluster, foreign: ForeignClient, stream: tuple[str, str]
) -> list[dict[str, Any]]:
    """Return the witness's report on each segment of a stream, over TLS."""
    token = foreign.token(*stream)
    ids = [segment.id for segment in foreign.info(*stream).segments]
    return [
        segment_report(*server.segment_store, *stream, each, token=token, ca=str(server.bundle))
        for each in ids
    ]
