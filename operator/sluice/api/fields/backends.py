"""List the kinds of stores: what each holds, and which credentials it takes.

Code asks what a store holds, never which kind it is. A new kind of store needs a record here, its
spec in `api.kinds.streamstore`, and code that opens it (`stores.connect`, `engine.access.connect`).
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum
from typing import Final, Literal

BackendName = Literal["pravega", "s3", "volume"]
"""The field of a StreamStore's spec that says where it is."""


class Holds(StrEnum):
    """The content of a store."""

    LIVE = "live streams"
    ARCHIVES = "archives"


@dataclass(frozen=True, slots=True)
class Backend:
    """One kind of store.

    Attributes:
        name: the field of the spec.
        holds: its content.
        keys: the keys of its Secret; None if it takes no Secret.
        secret_field: the field of the spec that names the Secret.
        server_field: the field of the spec that names the server; None if there is none.
        ca_field: the field of the spec that names a bundle of certificates; None if there is none.
        mounted: whether only pods that mount it can read it.
    """

    name: BackendName
    holds: Holds
    keys: tuple[str, str] | None = None
    secret_field: str | None = None
    server_field: str | None = None
    ca_field: str | None = None
    mounted: bool = False


BACKENDS: Final[dict[BackendName, Backend]] = {
    one.name: one
    for one in (
        Backend(
            "pravega",
            Holds.LIVE,
            keys=("username", "password"),
            secret_field="spec.pravega.auth.basic.secretRef.name",  # noqa: S106 - where, not what
            server_field="spec.pravega.controllerURI",
            ca_field="spec.pravega.tls.caBundleRef",
        ),
        Backend(
            "s3",
            Holds.ARCHIVES,
            keys=("accessKeyId", "secretAccessKey"),
            secret_field="spec.s3.credentialsSecretRef.name",  # noqa: S106 - where, not what
            server_field="spec.s3.endpoint",
            ca_field="spec.s3.caBundleRef",
        ),
        Backend("volume", Holds.ARCHIVES, mounted=True),
    )
}
"""All kinds of stores, in the order of the spec's fields."""


def named(holds: Holds) -> list[str]:
    """Return the names of the store kinds with this content."""
    return [one.name for one in BACKENDS.values() if one.holds is holds]
