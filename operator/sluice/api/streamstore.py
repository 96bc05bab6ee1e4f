"""StreamStore: a place that holds streams."""

from __future__ import annotations

from typing import Literal

from pydantic import Field

from sluice.api.common import ApiModel, LocalRef, Resource


class BasicAuth(ApiModel):
    """A user name and a password."""

    secret_ref: LocalRef = Field(description="A Secret with the keys `username` and `password`.")


class Auth(ApiModel):
    """How Sluice shows the store who it is."""

    basic: BasicAuth = Field(description="By user name and password.")


class PravegaStore(ApiModel):
    """A Pravega cluster."""

    controller_uri: str = Field(
        alias="controllerURI",
        pattern=r"^tcp://(\[[0-9A-Fa-f:]+\]|[A-Za-z0-9.-]+):[0-9]{1,5}$",
        max_length=300,
        description="The controller's gRPC address, tcp://host:port.",
    )
    auth: Auth | None = Field(default=None, description="Left out where the store asks for none.")


class StreamStoreSpec(ApiModel):
    """Where the store is."""

    pravega: PravegaStore = Field(description="A Pravega cluster.")


class StreamStore(Resource):
    """A place that holds streams."""

    kind: Literal["StreamStore"]
    spec: StreamStoreSpec
