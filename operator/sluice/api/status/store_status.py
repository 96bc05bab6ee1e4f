"""Define the status of a StreamStore."""

from __future__ import annotations

from typing import Annotated

from pydantic import Field

from sluice.api.fields.common import ObjectName
from sluice.api.status.common import Number, ResourceStatus, Time


class StreamStoreStatus(ResourceStatus):
    """What the operator found when it last asked the store."""

    protocol_version: Annotated[int, Field(ge=0, le=1_000_000)] | None = Field(
        default=None, description="The version of the protocol that the store speaks."
    )
    latency_milliseconds: Annotated[int, Field(ge=0, le=86_400_000)] | None = Field(
        default=None, description="How long the store took to answer, in milliseconds."
    )
    last_probe_time: Time | None = Field(default=None, description="When the store was last asked.")
    in_use_by: Number | None = Field(
        default=None,
        description="Resources that need this store: unfinished ones, and those with a schedule.",
    )
    shared_users: Number | None = Field(
        default=None, description="How many of these are in other namespaces; absent for none."
    )
    held_secrets: Annotated[tuple[ObjectName, ...], Field(max_length=64)] = Field(
        default=(),
        description="Secrets of this namespace that must not be deleted while the store is in use.",
        json_schema_extra={"x-kubernetes-list-type": "set"},
    )
