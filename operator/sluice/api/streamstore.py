"""StreamStore: a place that holds streams."""

from __future__ import annotations

from typing import Annotated, Literal, Self

from pydantic import ConfigDict, Field, field_validator, model_validator

from sluice.api.common import ApiModel, LocalRef, Resource
from sluice.api.rules import Rule, one_of, rules

_MOST_PORT = 65535
_SELECTOR = "namespaces: Selector and selector go together: give both or none"
_PORT = f"the address ends in a port from 1 to {_MOST_PORT}: tcp://host:9090"


class BasicAuth(ApiModel):
    """A user name and a password."""

    secret_ref: LocalRef = Field(description="A Secret with the keys `username` and `password`.")


class Auth(ApiModel):
    """How Sluice shows the store who it is."""

    model_config = ConfigDict(json_schema_extra=one_of("way to log in", "basic"))

    basic: BasicAuth = Field(description="By user name and password.")


class PravegaStore(ApiModel):
    """A Pravega cluster."""

    controller_uri: str = Field(
        alias="controllerURI",
        pattern=r"^tcp://(\[[0-9A-Fa-f:]+\]|[A-Za-z0-9.-]+):[0-9]{1,5}$",
        max_length=300,
        description="The controller's gRPC address, tcp://host:port.",
        json_schema_extra=rules(
            Rule(
                "!self.matches(':[0-9]{1,5}$')"
                " || (int(self.substring(self.lastIndexOf(':') + 1)) >= 1"
                f" && int(self.substring(self.lastIndexOf(':') + 1)) <= {_MOST_PORT})",
                _PORT,
            )
        ),
    )
    auth: Auth | None = Field(default=None, description="Left out where the store asks for none.")

    @field_validator("controller_uri", mode="after")
    @classmethod
    def _has_a_port(cls, uri: str) -> str:
        if not 1 <= int(uri.rpartition(":")[2]) <= _MOST_PORT:
            raise ValueError(_PORT)
        return uri


Operation = Literal["Read", "Create", "Append", "Delete"]
ScopePattern = Annotated[str, Field(min_length=1, max_length=250, pattern=r"^[A-Za-z0-9._-]*\*?$")]
Label = Annotated[
    str, Field(max_length=63, pattern=r"^([A-Za-z0-9]([A-Za-z0-9._-]*[A-Za-z0-9])?)?$")
]
LabelKey = Annotated[str, Field(min_length=1, max_length=317)]


class NamespaceSelector(ApiModel):
    """Namespaces, by their labels."""

    match_labels: Annotated[dict[LabelKey, Label], Field(min_length=1, max_length=16)] = Field(
        description="Labels that a namespace must have, all of them."
    )


class Access(ApiModel):
    """Who may do what with the store, beyond what the store's own rules allow its user."""

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
        description="Whose workloads may own streams here: those of this namespace, or also those "
        "of the namespaces that the selector takes.",
    )
    selector: NamespaceSelector | None = Field(
        default=None, description="With Selector: the other namespaces."
    )
    scopes: Annotated[tuple[ScopePattern, ...], Field(min_length=1, max_length=64)] | None = Field(
        default=None,
        description="Scopes that may be used: names, or beginnings of names that end in *. "
        "All when left out.",
        json_schema_extra={"x-kubernetes-list-type": "set"},
    )
    operations: Annotated[tuple[Operation, ...], Field(min_length=1, max_length=4)] | None = Field(
        default=None,
        description="What may be done: Read streams, Create them, Append to or change those that "
        "exist, Delete them. All when left out.",
        json_schema_extra={"x-kubernetes-list-type": "set"},
    )

    @model_validator(mode="after")
    def _selector_goes_with_namespaces(self) -> Self:
        if (self.namespaces == "Selector") != (self.selector is not None):
            raise ValueError(_SELECTOR)
        return self


class StreamStoreSpec(ApiModel):
    """Where the store is, and who may use it."""

    model_config = ConfigDict(json_schema_extra=one_of("backend", "pravega"))

    pravega: PravegaStore = Field(description="A Pravega cluster.")
    access: Access | None = Field(
        default=None,
        description="Who may do what; everything is allowed from this namespace when left out.",
    )


class StreamStore(Resource):
    """A place that holds streams."""

    kind: Literal["StreamStore"]
    spec: StreamStoreSpec
