"""Define what the parts of all kinds of stores share."""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import Annotated, Literal, NamedTuple

from pydantic import ConfigDict, Field

from sluice.api.fields.common import ApiModel, ObjectName


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


class StoreEntry(NamedTuple):
    """The way to a store, in words that fit every kind of store.

    Attributes:
        uri: its address. `api.fields.backends` has the forms.
        secret: the name of the Secret that holds the credentials; None if it needs none.
        ca: certificates to trust its servers by.
        server_name: the name that the certificates of its servers have.
        client_certificate: the name of the Secret with the certificate to show to its servers.
        endpoint: the URL of its server, if the address does not name it.
        region: the region of its server.
    """

    uri: str
    secret: str | None = None
    ca: CABundle | None = None
    server_name: str | None = None
    client_certificate: str | None = None
    endpoint: str | None = None
    region: str | None = None


class StorePart(ApiModel, ABC):
    """The part of a StreamStore's spec that says where it is."""

    @property
    @abstractmethod
    def entry(self) -> StoreEntry:
        """The way to the store."""
