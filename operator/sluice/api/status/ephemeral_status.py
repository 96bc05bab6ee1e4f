"""Define the status of an EphemeralStream."""

from __future__ import annotations

from functools import partial
from typing import Annotated, Final, Literal

from pydantic import BeforeValidator, Field

from sluice.api.status.common import (
    Count,
    Name,
    Number,
    ResourceStatus,
    ShortText,
    StatusModel,
    Time,
    Token,
    head,
)

MOST_STREAMS: Final = 50
"""Streams that a status names; it counts all of them."""


_OWNERS = BeforeValidator(partial(head, 64))


class OwnerStatus(StatusModel):
    """An owner, as the operator last saw it."""

    api_version: Name = Field(description="As in spec.owners.")
    kind: ShortText = Field(description="As in spec.owners.")
    name: Name = Field(description="As in spec.owners.")
    namespace: Name | None = Field(default=None, description="As in spec.owners.")
    uid: ShortText | None = Field(
        default=None,
        description="The owner's UID; absent as long as no such object was seen. An object that is "
        "created again under the name is another owner.",
    )
    state: Literal["Absent", "Present", "Finished", "Gone", "Unknown", "Removed"] = Field(
        description="Absent: it was never seen. Gone: it was there. Unknown: it cannot be read. "
        "Removed: the spec no longer names it, and its owner reference is removed."
    )


class ReleaseStatus(StatusModel):
    """Why and when the streams were released."""

    reason: ShortText = Field(
        description="OwnersDeleted, OwnersFinished or MaxAgeReached, in one word."
    )
    time: Time = Field(description="When it was decided.")
    completed: Time | None = Field(default=None, description="When the release was finished.")


class EphemeralStreamStatus(ResourceStatus):
    """Which streams exist, and which owners need them."""

    stream_count: Number | None = Field(default=None, description="Streams that are owned now.")
    streams: Annotated[
        tuple[Name, ...],
        Field(max_length=MOST_STREAMS),
        BeforeValidator(partial(head, MOST_STREAMS)),
    ] = Field(default=(), description=f"The names of these streams, at most {MOST_STREAMS}.")
    owners: Annotated[tuple[OwnerStatus, ...], Field(max_length=64), _OWNERS] = Field(
        default=(), description="The owners, in the order of the spec."
    )
    owners_summary: ShortText | None = Field(
        default=None, description="How many of the owners exist, for a table."
    )
    admitted_time: Time | None = Field(
        default=None,
        description="When the StreamStore, if it is of another namespace, first admitted this "
        "resource. Its streams are released from there even if it no longer does.",
    )
    owners_gone_time: Time | None = Field(
        default=None, description="When the operator saw that the last owner was gone or finished."
    )
    config_hash: ShortText | None = Field(
        default=None,
        description="The hash of the config that the stream was given, to compare with the spec's.",
    )
    created_milliseconds: Count | None = Field(
        default=None,
        description="When the store created the stream, by the store's clock. A stream that is "
        "created again under the name is another one.",
    )
    last_handled_requested_at: Token | None = Field(
        default=None,
        description="The value of the annotation sluice.dev/requestedAt that the operator acted on "
        "last.",
    )
    release: ReleaseStatus | None = Field(
        default=None, description="Set once the streams are released while the resource stays."
    )
