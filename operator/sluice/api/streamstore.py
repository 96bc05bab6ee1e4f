"""StreamStore: a place that holds streams."""

from __future__ import annotations

from typing import Literal

from pydantic import ConfigDict, Field, field_validator

from sluice.api.common import ApiModel, LocalRef, Resource
from sluice.api.rules import Rule, one_of, rules

_MOST_PORT = 65535
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


class StreamStoreSpec(ApiModel):
    """Where the store is."""

    model_config = ConfigDict(json_schema_extra=one_of("backend", "pravega"))

    pravega: PravegaStore = Field(description="A Pravega cluster.")


class StreamStore(Resource):
    """A place that holds streams."""

    kind: Literal["StreamStore"]
    spec: StreamStoreSpec
