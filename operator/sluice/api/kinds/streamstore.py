"""Define StreamStore: a place that holds streams, live or archived."""

from __future__ import annotations

from typing import Annotated, Literal, Self

from pydantic import ConfigDict, Field, ValidationInfo, field_validator, model_validator

from sluice.api.fields.backends import BACKENDS, Backend, BackendName, Holds, named
from sluice.api.fields.common import ApiModel, Folder, ObjectName, Resource, SecretRef
from sluice.api.rules import Rule, exactly_one, one_of, rules
from sluice.api.scalars.addresses import ControllerURI, Endpoint, ServerName

_SELECTOR = "namespaces: Selector and selector go together: give both or none"
_TLS = "tls://"
_NO_TLS = "tls needs an address with TLS: write controllerURI as tls://host:port, or remove tls"
_NO_SCOPES = "archives are in no scope: remove scopes, or give a store of live streams"
_LIVE = " || ".join(f"has(self.{name})" for name in named(Holds.LIVE))


class BasicAuth(ApiModel):
    """A user name and a password."""

    secret_ref: SecretRef = Field(description="A Secret with the keys `username` and `password`.")


class Auth(ApiModel):
    """How Sluice logs in to the store."""

    model_config = ConfigDict(json_schema_extra=one_of("way to log in", "basic"))

    basic: BasicAuth = Field(description="Log in by user name and password.")


class CABundle(ApiModel):
    """A reference to a key of a ConfigMap or a Secret in the same namespace."""

    model_config = ConfigDict(json_schema_extra={"x-kubernetes-map-type": "atomic"})

    kind: Literal["ConfigMap", "Secret"] = Field(
        default="ConfigMap", description="The object's kind."
    )
    name: ObjectName = Field(description="The object's name.")
    key: Annotated[str, Field(min_length=1, max_length=253, pattern=r"^[-._a-zA-Z0-9]+$")] = Field(
        default="ca.crt", description="The key in the object. Its value is certificates in PEM."
    )


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


class PravegaSpec(ApiModel):
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


class S3Spec(ApiModel):
    """A bucket of Amazon S3, or of another server with its protocol."""

    bucket: Annotated[
        str, Field(min_length=3, max_length=63, pattern=r"^[a-z0-9][a-z0-9.-]*[a-z0-9]$")
    ] = Field(description="The bucket's name.")
    prefix: Folder | None = Field(
        default=None,
        description="The path in the bucket below which archives are; all of the bucket when left "
        "out.",
    )
    endpoint: Endpoint | None = Field(
        default=None,
        description="The server, https://host:port. Amazon's server of the region when left out.",
    )
    region: Annotated[str, Field(min_length=1, max_length=63, pattern=r"^[a-z0-9-]+$")] | None = (
        Field(default=None, description="The bucket's region; us-east-1 when left out.")
    )
    credentials_secret_ref: SecretRef | None = Field(
        default=None,
        description="A Secret with the keys `accessKeyId` and `secretAccessKey`. It may be left "
        "out only where the administrator lets the operator use its own identity; pods then use "
        "what their environment offers, such as a role of their ServiceAccount.",
    )
    ca_bundle_ref: CABundle | None = Field(
        default=None,
        description="CA certificates to trust the server by, besides those of the system.",
    )


class VolumeSpec(ApiModel):
    """A directory of a volume."""

    claim_name: ObjectName = Field(
        description="The PersistentVolumeClaim, in this namespace. Drivers and executors mount "
        "it, so it needs ReadWriteMany if they are on different nodes."
    )
    path: Folder | None = Field(
        default=None, description="The directory in the volume; its root when left out."
    )


Operation = Literal["Read", "Create", "Append", "Delete"]
ScopePattern = Annotated[str, Field(min_length=1, max_length=250, pattern=r"^[A-Za-z0-9._-]*\*?$")]
Scopes = Annotated[
    Annotated[tuple[ScopePattern, ...], Field(min_length=1, max_length=64)] | None,
    Field(
        description="Scopes that may be used: names, or beginnings of names, with * at their end. "
        "All when left out.",
        json_schema_extra={"x-kubernetes-list-type": "set"},
    ),
]
Operations = Annotated[
    Annotated[tuple[Operation, ...], Field(min_length=1, max_length=4)] | None,
    Field(
        description="What may be done: Read streams, Create them, Append to or change those that "
        "exist, Delete them. All when left out.",
        json_schema_extra={"x-kubernetes-list-type": "set"},
    ),
]
Label = Annotated[
    str, Field(max_length=63, pattern=r"^([A-Za-z0-9]([A-Za-z0-9._-]*[A-Za-z0-9])?)?$")
]
LabelKey = Annotated[str, Field(min_length=1, max_length=317)]


class NamespaceSelector(ApiModel):
    """Namespaces, by their labels."""

    match_labels: Annotated[dict[LabelKey, Label], Field(min_length=1, max_length=16)] = Field(
        description="Labels that a namespace must have, all of them."
    )


class Grant(ApiModel):
    """Namespaces whose resources may use the store, within the limits of `access`."""

    selector: NamespaceSelector = Field(
        description="The namespaces. Every namespace has the label kubernetes.io/metadata.name, "
        "which no user can change."
    )
    scopes: Scopes = None
    operations: Operations = None
    driver_namespace: Literal["Copy", "Store"] = Field(
        default="Copy",
        description="Where drivers run that need the login or the certificates. Copy: in the "
        "namespace of the copy, where these are not, so such copies are refused. Store: in the "
        "StreamStore's namespace, with its quota, as long as the copy uses StreamStores of this "
        "namespace only. Drivers that mount nothing run in the namespace of the copy.",
    )


class Access(ApiModel):
    """Who may do what with the store. The store's own rules for the login hold as well."""

    model_config = ConfigDict(
        json_schema_extra=rules(
            Rule(
                "(has(self.namespaces) && self.namespaces == 'Selector') == has(self.selector)",
                _SELECTOR,
                path=".selector",
            )
        )
    )

    namespaces: Literal["Same", "Selector"] = Field(
        default="Same",
        description="Whose workloads may own streams in the store: those of this namespace, or "
        "also those of the namespaces that selector selects.",
    )
    selector: NamespaceSelector | None = Field(
        default=None, description="With namespaces: Selector, the other namespaces."
    )
    scopes: Scopes = None
    operations: Operations = None
    shared_with: Annotated[tuple[Grant, ...], Field(max_length=64)] = Field(
        default=(),
        description="Other namespaces whose resources may name this StreamStore. One entry has to "
        "allow all that a resource does. Their users never see the login.",
        json_schema_extra={"x-kubernetes-list-type": "atomic"},
    )

    @model_validator(mode="after")
    def _selector_goes_with_namespaces(self) -> Self:
        if (self.namespaces == "Selector") != (self.selector is not None):
            raise ValueError(_SELECTOR)
        return self


class StreamStoreSpec(ApiModel):
    """Where the store is, and who may use it."""

    model_config = ConfigDict(
        json_schema_extra=rules(
            exactly_one("backend", *BACKENDS),
            Rule(
                f"{_LIVE} || !has(self.access) || !has(self.access.scopes)",
                _NO_SCOPES,
                path=".access.scopes",
                reason="FieldValueForbidden",
            ),
            Rule(
                f"{_LIVE} || !has(self.access) || !has(self.access.sharedWith)"
                " || self.access.sharedWith.all(grant, !has(grant.scopes))",
                _NO_SCOPES,
                path=".access.sharedWith",
                reason="FieldValueForbidden",
            ),
        )
    )

    pravega: PravegaSpec | None = Field(
        default=None, description="A Pravega cluster: a store of live streams."
    )
    s3: S3Spec | None = Field(default=None, description="A bucket: a store of archives.")
    volume: VolumeSpec | None = Field(
        default=None, description="A directory of a volume: a store of archives."
    )
    access: Access | None = Field(
        default=None,
        description="Who may do what; everything is allowed from this namespace when left out.",
    )

    @model_validator(mode="after")
    def _one_backend(self) -> Self:
        if len(self._given()) != 1:
            raise ValueError(f"exactly one backend is needed: {', '.join(BACKENDS)}")
        access = self.access
        limits: tuple[Access | Grant, ...] = () if access is None else (access, *access.shared_with)
        if self.holds_archives and any(one.scopes is not None for one in limits):
            raise ValueError(_NO_SCOPES)
        return self

    def _given(self) -> list[BackendName]:
        """Return the names of the backends that the spec has."""
        return [name for name in BACKENDS if getattr(self, name) is not None]

    @property
    def backend(self) -> PravegaSpec | S3Spec | VolumeSpec:
        """The backend's own part of the spec."""
        return next(one for one in (self.pravega, self.s3, self.volume) if one is not None)

    @property
    def kind(self) -> Backend:
        """The kind of store."""
        (name,) = self._given()
        return BACKENDS[name]

    @property
    def holds_archives(self) -> bool:
        """Whether it is a store of archives, and not of live streams."""
        return self.kind.holds is Holds.ARCHIVES

    @property
    def secret(self) -> str | None:
        """The name of the Secret that holds the credentials."""
        if self.pravega is not None:
            return self.pravega.auth.basic.secret_ref.name if self.pravega.auth else None
        if self.s3 is not None and self.s3.credentials_secret_ref is not None:
            return self.s3.credentials_secret_ref.name
        return None


class StreamStore(Resource):
    """A place that holds streams, live or archived."""

    kind: Literal["StreamStore"]
    spec: StreamStoreSpec
