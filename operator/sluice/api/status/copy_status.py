"""Define the status of a StreamCopy."""

from __future__ import annotations

from functools import partial
from typing import Annotated

from pydantic import BeforeValidator, ConfigDict, Field

from sluice.api.fields.rules import following
from sluice.api.status.common import (
    MOST_GAPS,
    GapStatus,
    HookedStatus,
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
        default=None, description="Where the copy ends in the source: `segment=offset,...`."
    )
    target_cut: Text | None = Field(
        default=None, description="The same position in the target: `segment=offset,...`."
    )
    time: Time | None = Field(default=None, description="When this state began.")


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
        default=None, description="Where the copy ends in the source: `segment=offset,...`."
    )
    verification: VerificationStatus | None = Field(
        default=None, description="Which bytes were compared before they were published."
    )
    position_map_ref: ObjectRef | None = Field(
        default=None,
        description="The ConfigMap that maps positions of the source to positions of the target, "
        "once the copy is done.",
    )
    gaps: (
        Annotated[
            tuple[GapStatus, ...],
            Field(max_length=MOST_GAPS),
            BeforeValidator(partial(head, MOST_GAPS)),
        ]
        | None
    ) = Field(
        default=None,
        description="Bytes that the sources had lost before they were read, the first 100 gaps. "
        "Only with onTruncation: Record.",
    )
    cutover: CutoverStatus | None = Field(
        default=None,
        description="The end of a copy that follows its source, once it is asked for.",
    )
