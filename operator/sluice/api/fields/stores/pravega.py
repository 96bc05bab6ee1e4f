"""Define where a Pravega cluster is."""

from __future__ import annotations

from pydantic import ConfigDict, Field, ValidationInfo, field_validator

from sluice.api.fields.common import ApiModel, SecretRef
from sluice.api.fields.stores.part import CABundle, StoreEntry, StorePart
from sluice.api.rules import Rule, one_of, rules
from sluice.api.scalars.addresses import ControllerURI, ServerName

_TLS = "tls://"
_NO_TLS = "tls needs an address with TLS: write controllerURI as tls://host:port, or remove tls"


class BasicAuth(ApiModel):
    """A user name and a password."""

    secret_ref: SecretRef = Field(description="A Secret with the keys `username` and `password`.")


class Auth(ApiModel):
    """How Sluice logs in to the store."""

    model_config = ConfigDict(json_schema_extra=one_of("way to log in", "basic"))

    basic: BasicAuth = Field(description="Log in by user name and password.")


class TLSSpec(ApiModel):
    """How Sluice knows the servers of a Pravega cluster that speaks TLS."""

    ca_bundle_ref: CABundle | None = Field(
        default=None,
        description="CA certificates to trust the controller and the segment stores by, and no "
        "others; those of the system when left out.",
    )
    server_name: ServerName | None = Field(
        default=None,
        description="The name that the certificates of all these servers have; that of each "
        "server's own host when left out.",
    )
    client_certificate_secret_ref: SecretRef | None = Field(
        default=None,
        description="A Secret with the keys `tls.crt` and `tls.key`, for proxies and meshes in "
        "front of Pravega that ask for a client certificate. Pravega itself asks for none.",
    )


class PravegaSpec(StorePart):
    """A Pravega cluster."""

    model_config = ConfigDict(
        json_schema_extra=rules(
            Rule(
                f"!has(self.tls) || self.controllerURI.startsWith('{_TLS}')",
                _NO_TLS,
                path=".tls",
                reason="FieldValueForbidden",
            )
        )
    )

    controller_uri: ControllerURI = Field(
        alias="controllerURI",
        description="The controller's gRPC address: tcp://host:port, or tls://host:port if "
        "controller and segment stores speak TLS.",
    )
    tls: TLSSpec | None = Field(
        default=None,
        description="With tls://, how Sluice knows the servers. Leave it out if the system's CAs "
        "signed their certificates, for the hosts of their addresses.",
    )
    auth: Auth | None = Field(
        default=None,
        description="How Sluice logs in. Leave it out if the store needs no login.",
    )

    @field_validator("tls")
    @classmethod
    def _tls_goes_with_its_address(
        cls, tls: TLSSpec | None, info: ValidationInfo
    ) -> TLSSpec | None:
        if tls is not None and not info.data.get("controller_uri", _TLS).startswith(_TLS):
            raise ValueError(_NO_TLS)
        return tls

    @property
    def entry(self) -> StoreEntry:
        """The way to the cluster."""
        tls = self.tls or TLSSpec()
        shown = tls.client_certificate_secret_ref
        return StoreEntry(
            uri=self.controller_uri,
            secret=self.auth.basic.secret_ref.name if self.auth else None,
            ca=tls.ca_bundle_ref,
            server_name=tls.server_name,
            client_certificate=shown.name if shown else None,
        )
