"""What the operator reports of an EphemeralStream."""

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
    """An owner, as it was last seen."""

    api_version: Name = Field(description="As in spec.owners.")
    kind: ShortText = Field(description="As in spec.owners.")
    name: Name = Field(description="As in spec.owners.")
    namespace: Name | None = Field(default=None, description="As in spec.owners.")
    uid: ShortText | None = Field(
        default=None,
        description="Which object of that name it is; absent while there was none. "
        "One made again under the name is another owner.",
    )
    state: Literal["Absent", "Present", "Finished", "Gone", "Unknown", "Removed"] = Field(
        description="Absent: not made yet. Gone: it was there. Unknown: it cannot be read. "
        "Removed: the spec names it no more, and it loses its reference."
    )


class ReleaseStatus(StatusModel):
    """Why and when the streams were let go."""

    reason: ShortText = Field(
        description="OwnersDeleted, OwnersFinished or MaxAgeReached, in one word."
    )
    time: Time = Field(description="When it was decided.")
    completed: Time | None = Field(default=None, description="When nothing was left of them.")


class EphemeralStreamStatus(ResourceStatus):
    """Which streams there are, and who needs them."""

    stream_count: Number | None = Field(default=None, description="Streams that are owned now.")
    streams: Annotated[
        tuple[Name, ...],
        Field(max_length=MOST_STREAMS),
        BeforeValidator(partial(head, MOST_STREAMS)),
    ] = Field(default=(), description=f"Their names, at most {MOST_STREAMS} of them.")
    owners: Annotated[tuple[OwnerStatus, ...], Field(max_length=64), _OWNERS] = Field(
        default=(), description="The owners, in the order of the spec."
    )
    owners_summary: ShortText | None = Field(
        default=None, description="How many of the owners are there, for a table."
    )
    owners_gone_time: Time | None = Field(
        default=None, description="When the last owner was seen to be gone or finished."
    )
    config_hash: ShortText | None = Field(
        default=None, description="Tells whether the stream was given the config of the spec."
    )
    created_milliseconds: Count | None = Field(
        default=None,
        description="When the store made the stream, in its own time; one made again under the "
        "name is another.",
    )
    last_handled_requested_at: Token | None = Field(
        default=None,
        description="The value of the annotation sluice.dev/requestedAt that was last obeyed.",
    )
    release: ReleaseStatus | None = Field(
        default=None, description="Set once the streams are let go while the resource stays."
    )
