"""What all kinds share: how models read YAML, metadata, references."""

from __future__ import annotations

from typing import Annotated, Any, Final, Literal

from pydantic import BaseModel, ConfigDict, Field
from pydantic.alias_generators import to_camel

GROUP: Final = "sluice.dev"
VERSION: Final = "v1alpha1"
API_VERSION: Final = f"{GROUP}/{VERSION}"


class ApiModel(BaseModel):
    """A part of a resource: camelCase in YAML, unknown fields refused, immutable."""

    model_config = ConfigDict(
        alias_generator=to_camel, extra="forbid", frozen=True, validate_by_name=False
    )


StoreName = Annotated[
    str, Field(min_length=1, max_length=63, pattern=r"^[a-z0-9]([a-z0-9-]*[a-z0-9])?$")
]
"""The name of a StreamStore or a Secret."""

ScopeName = Annotated[str, Field(min_length=1, max_length=249, pattern=r"^[A-Za-z0-9._-]+$")]
"""The name of a scope in a store."""

StreamNameText = Annotated[str, Field(min_length=1, max_length=249, pattern=r"^[A-Za-z0-9._-]+$")]
"""The name of a stream in a scope."""


class Metadata(ApiModel):
    """Kubernetes' metadata, as far as Sluice reads it; the rest is allowed."""

    model_config = ConfigDict(extra="ignore")

    name: StoreName = Field(description="The resource's name.")
    namespace: StoreName = Field(default="default", description="The resource's namespace.")


class LocalRef(ApiModel):
    """Names an object of the same namespace."""

    model_config = ConfigDict(json_schema_extra={"x-kubernetes-map-type": "atomic"})

    name: StoreName = Field(description="The object's name.")


class Resource(ApiModel):
    """What every resource begins with. A status is the operator's and is not read from files."""

    model_config = ConfigDict(extra="forbid")

    api_version: Literal["sluice.dev/v1alpha1"]
    metadata: Metadata
    status: Any = Field(default=None, exclude=True)
