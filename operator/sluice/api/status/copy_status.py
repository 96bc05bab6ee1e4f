"""Define the status of a StreamCopy."""

from __future__ import annotations

from functools import partial
from typing import Annotated

from pydantic import BeforeValidator, ConfigDict, Field

from sluice.api.fields.continuous import MOST_GROUPS
from sluice.api.fields.rules import following
from sluice.api.status.common import (
    Count,
    Gaps,
    HookedStatus,
    Name,
    Number,
    ObjectRef,
    ShortText,
    StatusModel,
    Text,
    Time,
    VerificationStatus,
    head,
)


class CutoverStatus(StatusModel):
    """How far the end of a copy is that follows its source."""

    state: ShortText = Field(
        description="Draining while the rest is followed, Sealed once the source takes no more "
        "events, Done once the target has all."
    )
    source_cut: Text | None = Field(
        default=None,
        description="Where the copy ends in the source, as the text of a StreamCut. Absent if it "
        "is not known any more, or longer than 4096 characters.",
    )
    target_cut: Text | None = Field(
        default=None,
        description="The same position in the target, for ranges of copies and for clients.",
    )
    time: Time | None = Field(default=None, description="When this state began.")


class FollowStatus(StatusModel):
    """How far a copy is that follows its source, as the operator measures it in the stores."""

    lag: ShortText = Field(
        default="", description="The bytes that the target lacks, and since when, for a table."
    )
    lag_bytes: Count = Field(
        default=0, description="Bytes that the source has and the target has not."
    )
    lag_seconds: Count | None = Field(
        default=None,
        description="For how long the target has lacked the oldest of these bytes. 2 also stands "
        "for less; absent while that is unknown.",
    )
    bytes: Count = Field(default=0, description="Bytes of the source that the target has.")
    proved_bytes: Count = Field(
        default=0, description="Bytes of them that were read back and compared with the source."
    )
    proved_to: Time | None = Field(
        default=None,
        description="All that the source held at this time is in the target, and was compared.",
    )
    segments: Count = Field(default=0, description="Segments of the source that are followed.")
    ended: Count = Field(
        default=0, description="Segments of the source that were followed to their ends."
    )
    restarts: Number = Field(
        default=0, description="How often another pod has taken over since the copy follows."
    )
    pod: Name | None = Field(default=None, description="The pod that follows, or did so last.")
    time: Time | None = Field(default=None, description="When this was measured.")


class GroupStatus(StatusModel):
    """A reader group of spec.readerGroups, once the target is complete."""

    name: Name = Field(description="The group's name in the source's scope.")
    made: Name = Field(description="The name of its group in the target's scope.")
    state: ShortText = Field(
        description="Waiting until its position in the source is known, then Made."
    )
    why: Text | None = Field(default=None, description="Why it waits.")


class StreamCopyStatus(HookedStatus):
    """The progress and the result of the copy."""

    model_config = ConfigDict(
        json_schema_extra=following(
            jobRef=("startCut", "endCut"),
            completionTime=("verification", "positionMapRef", "gaps", "cutover"),
        )
    )

    start_cut: Text | None = Field(
        default=None, description="Where the copy begins in the source: `segment=offset,...`."
    )
    end_cut: Text | None = Field(
        default=None,
        description="Where the copy ends in the source, as the text of a StreamCut. Absent if it "
        "is not known any more, or longer than 4096 characters.",
    )
    verification: VerificationStatus | None = Field(
        default=None, description="Which bytes were compared before they were published."
    )
    position_map_ref: ObjectRef | None = Field(
        default=None,
        description="The ConfigMap that maps positions of the source to positions of the target, "
        "once the copy is done.",
    )
    gaps: Gaps | None = Field(
        default=None,
        description="Bytes that the sources had lost before they were read, the first 100 gaps. "
        "Only with onTruncation: Record.",
    )
    cutover: CutoverStatus | None = Field(
        default=None,
        description="The end of a copy that follows its source, once it is asked for.",
    )
    follow: FollowStatus | None = Field(
        default=None,
        description="How far a copy is that follows its source. Written when it says something "
        "new, and at least every five minutes.",
    )
    reader_groups: (
        Annotated[
            tuple[GroupStatus, ...],
            Field(max_length=MOST_GROUPS),
            BeforeValidator(partial(head, MOST_GROUPS)),
        ]
        | None
    ) = Field(
        default=None,
        description="The groups of spec.readerGroups, once the target is complete.",
    )
