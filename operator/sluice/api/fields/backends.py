"""List the kinds of stores: what each holds, how its addresses look, which credentials it takes.

Code asks the record of a kind, never which kind it is. The other parts of a kind stand in modules
above, by its name here: its part of the spec in `api.fields.stores`; the client of a store of live
streams in `stores.connect`; the objects of a store of archives in `engine.access.connect`.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum
from typing import Final, Literal

BackendName = Literal["pravega", "s3", "volume"]
"""The field of a StreamStore's spec that says where it is."""

UNNAMED: Final[BackendName] = "pravega"
"""The kind of a store whose address names none. Recorded addresses count on it."""

LOGIN_KEYS: Final = ("username", "password")
"""The keys of a Secret with a login."""

BUCKET_KEYS: Final = ("accessKeyId", "secretAccessKey")
"""The keys of a Secret for a bucket."""


class Holds(StrEnum):
    """The content of a store."""

    LIVE = "live streams"
    ARCHIVES = "archives"


@dataclass(frozen=True, slots=True, kw_only=True)
class Backend:
    """One kind of store.

    Attributes:
        name: the field of the spec.
        holds: its content.
        forms: how its addresses are written, as messages show it.
        entrance: what its addresses lead to, as messages name it.
        keys: the keys of its Secret; None if it takes no Secret.
        secret_field: the field of the spec that names the Secret.
        server_field: the field of the spec that names the server; None if there is none.
        ca_field: the field of the spec that names a bundle of certificates; None if there is none.
        client_field: the field of the spec that names the Secret with the certificate to show to
            servers; None if there is none.
        claim_field: the field of the spec that names the claim that pods mount; None if there is
            none.
        public_server: the URL of the server of stores whose address names no server, with the
            region in braces; None if the address itself is that of the server.
        region: the region of stores that name none; empty if there are none.
    """

    name: BackendName
    holds: Holds
    forms: tuple[str, ...]
    entrance: str
    keys: tuple[str, str] | None = None
    secret_field: str | None = None
    server_field: str | None = None
    ca_field: str | None = None
    client_field: str | None = None
    claim_field: str | None = None
    public_server: str | None = None
    region: str = ""

    @property
    def mounted(self) -> bool:
        """Whether only pods that mount it can read it."""
        return self.claim_field is not None

    def part_at(self, server: str) -> dict[str, dict[str, str]]:
        """Return the spec of a StreamStore that names a server and nothing else."""
        _, part, field = (self.server_field or "").split(".")
        return {part: {field: server}}

    def has_form(self, uri: str) -> bool:
        """Tell whether an address has the scheme of one of this kind."""
        scheme = uri.partition(":")[0]
        return any(form.partition(":")[0] == scheme for form in self.forms)


BACKENDS: Final[dict[BackendName, Backend]] = {
    one.name: one
    for one in (
        Backend(
            name="pravega",
            holds=Holds.LIVE,
            forms=("tcp://HOST:PORT", "tls://HOST:PORT"),
            entrance="Pravega controller",
            keys=LOGIN_KEYS,
            secret_field="spec.pravega.auth.basic.secretRef.name",  # noqa: S106 - where, not what
            server_field="spec.pravega.controllerURI",
            ca_field="spec.pravega.tls.caBundleRef",
            client_field="spec.pravega.tls.clientCertificateSecretRef.name",
        ),
        Backend(
            name="s3",
            holds=Holds.ARCHIVES,
            forms=("s3://bucket/prefix",),
            entrance="bucket",
            keys=BUCKET_KEYS,
            secret_field="spec.s3.credentialsSecretRef.name",  # noqa: S106 - where, not what
            server_field="spec.s3.endpoint",
            ca_field="spec.s3.caBundleRef",
            public_server="https://s3.{region}.amazonaws.com",
            region="us-east-1",
        ),
        Backend(
            name="volume",
            holds=Holds.ARCHIVES,
            forms=("volume://CLAIM/path", "file:///path"),
            entrance="volume",
            claim_field="spec.volume.claimName",
        ),
    )
}
"""All kinds of stores, in the order of the spec's fields."""


def holding(holds: Holds) -> list[Backend]:
    """Return the kinds of stores with this content."""
    return [one for one in BACKENDS.values() if one.holds is holds]


def named(holds: Holds) -> list[str]:
    """Return the names of the kinds of stores with this content."""
    return [one.name for one in holding(holds)]


def either(holds: Holds) -> str:
    """Return the names of the kinds of stores with this content, for messages."""
    return " or ".join(named(holds))


def kind_of(uri: str, holds: Holds) -> Backend:
    """Return the kind of store with this content that has such addresses.

    For an address of no known form it is the first one, which refuses the address when it is
    opened.
    """
    kinds = holding(holds)
    return next((one for one in kinds if one.has_form(uri)), kinds[0])
