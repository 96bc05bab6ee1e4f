"""What all kinds share: how models read YAML, metadata, references, quantities."""

from __future__ import annotations

import re
from typing import Annotated, Any, Final, Literal

from pydantic import BaseModel, BeforeValidator, ConfigDict, Field
from pydantic.alias_generators import to_camel

GROUP: Final = "sluice.dev"
VERSION: Final = "v1alpha1"
API_VERSION: Final = f"{GROUP}/{VERSION}"

_SUFFIXES = {
    "": 1,
    "k": 10**3,
    "M": 10**6,
    "G": 10**9,
    "T": 10**12,
    "Ki": 2**10,
    "Mi": 2**20,
    "Gi": 2**30,
    "Ti": 2**40,
}
_QUANTITY = re.compile(r"([0-9]{1,15})(k|M|G|T|Ki|Mi|Gi|Ti)?")


class ApiModel(BaseModel):
    """A part of a resource: camelCase in YAML, unknown fields refused, immutable."""

    model_config = ConfigDict(
        alias_generator=to_camel, extra="forbid", frozen=True, validate_by_name=False
    )


def _to_bytes(value: Any) -> Any:
    """Bytes from a Kubernetes quantity; anything else is left for pydantic to refuse."""
    if isinstance(value, str):
        match = _QUANTITY.fullmatch(value)
        if match is None:
            raise ValueError("write a whole number of bytes, or one with a suffix: 500k, 64Mi, 2Gi")
        return int(match[1]) * _SUFFIXES[match[2] or ""]
    return value


Bytes = Annotated[int, BeforeValidator(_to_bytes)]
"""A number of bytes, written as a Kubernetes quantity."""

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

    name: StoreName = Field(description="The object's name.")


class Resource(ApiModel):
    """What every resource begins with. A status is the operator's and is not read from files."""

    model_config = ConfigDict(extra="forbid")

    api_version: Literal["sluice.dev/v1alpha1"]
    metadata: Metadata
    status: Any = Field(default=None, exclude=True)
