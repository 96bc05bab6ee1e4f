"""Define the parts of a status that tell how a source is followed, and how that ends."""

from __future__ import annotations

from functools import partial
from typing import Annotated, ClassVar, Final

from pydantic import BeforeValidator, Field

from sluice.api.status.common import (
    Count,
    Name,
    Number,
    ShortText,
    StatusModel,
    Text,
    Time,
    head,
)

MOST_WORST: Final = 10
"""Streams of a scope that a status names because they are behind most."""


class CutoverState(StatusModel):
    """How far the end of a copy is that follows its source."""

    state: ShortText = Field(
        description="Draining while the rest is followed, Sealed once the source takes no more "
        "events, Done once the target has all."
    )
    time: Time | None = Field(default=None, description="When this state began.")


class CutoverStatus(CutoverState):
    """How far the end of a copy of a stream is that follows its source, and where it ends."""

    source_cut: Text | None = Field(
        default=None,
        description="Where the copy ends in the source, as the text of a StreamCut. Absent if it "
        "is not known any more, or longer than 4096 characters.",
    )
    target_cut: Text | None = Field(
        default=None,
        description="The same position in the target, for ranges of copies and for clients.",
    )


class ScopeCutoverStatus(CutoverState):
    """How far the end of a copy of a scope is that follows its streams."""

    state: ShortText = Field(
        description="Draining while the rest of the streams is followed, Sealed once one of the "
        "sources takes no more events, Done once each target has all."
    )


class FollowStatus(StatusModel):
    """How far a copy is that follows its source, as the operator measures it in the stores.

    Attributes:
        news: the fields whose changes are written at once.
    """

    news: ClassVar[tuple[str, ...]] = ("segments", "ended")

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


class StreamLagStatus(StatusModel):
    """How far the target of one stream of a scope is behind."""

    stream: Name = Field(description="The stream's name in the source's scope.")
    lag_bytes: Count = Field(
        default=0, description="Bytes that the stream has and its target has not."
    )
    lag_seconds: Count = Field(
        default=0,
        description="For how long at least the target has lacked the oldest of these bytes.",
    )


class ScopeFollowStatus(FollowStatus):
    """How far the streams of a scope are followed: all together, and those that are behind most."""

    news: ClassVar[tuple[str, ...]] = ("streams", "coming", "joined", "failed", "gone")

    streams: Number = Field(default=0, description="Streams that are followed.")
    coming: Number = Field(
        default=0,
        description="Streams that are copied first: what they had when they were found is not all "
        "in their targets yet.",
    )
    joined: Number = Field(
        default=0, description="Streams that the scope has got since the copy was planned."
    )
    failed: Number = Field(
        default=0,
        description="Streams that are followed no more, since they have failed. "
        "status.failedStreams names them.",
    )
    gone: Number = Field(
        default=0,
        description="Streams that are followed no more, since the source's scope has them no "
        "more. Their targets stay. status.failedStreams names them, too.",
    )
    worst: Annotated[
        tuple[StreamLagStatus, ...],
        Field(max_length=MOST_WORST),
        BeforeValidator(partial(head, MOST_WORST)),
    ] = Field(
        default=(),
        description=f"The {MOST_WORST} streams that are behind most, without those whose targets "
        "have all.",
    )


class GroupStatus(StatusModel):
    """A reader group of spec.readerGroups, once the target is complete."""

    name: Name = Field(description="The group's name in the source's scope.")
    made: Name = Field(description="The name of its group in the target's scope.")
    state: ShortText = Field(
        description="Waiting until its position in the source is known, then Made."
    )
    why: Text | None = Field(default=None, description="Why it waits.")
