"""Define StreamStore: a place that holds streams, live or archived."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, Literal, Self

from pydantic import ConfigDict, Field, model_validator

from sluice.api.fields.backends import BACKENDS, Backend, BackendName, Holds, named
from sluice.api.fields.common import ApiModel, Resource
from sluice.api.fields.stores.pravega import PravegaSpec
from sluice.api.fields.stores.s3 import S3Spec
from sluice.api.fields.stores.volume import VolumeSpec
from sluice.api.rules import Rule, exactly_one, rules

if TYPE_CHECKING:
    from sluice.api.fields.stores.part import StoreEntry, StorePart

_SELECTOR = "namespaces: Selector and selector go together: give both or none"
_NO_SCOPES = "archives are in no scope: remove scopes, or give a store of live streams"
_LIVE = " || ".join(f"has(self.{name})" for name in named(Holds.LIVE))


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
    def entry(self) -> StoreEntry:
        """The way to the store."""
        part: StorePart = getattr(self, self.kind.name)
        return part.entry

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
        return self.entry.secret


class StreamStore(Resource):
    """A place that holds streams, live or archived."""

    kind: Literal["StreamStore"]
    spec: StreamStoreSpec
