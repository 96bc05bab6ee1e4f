"""Define the status of a StreamCopy."""

from __future__ import annotations

from functools import partial
from typing import Annotated

from pydantic import BeforeValidator, ConfigDict, Field

from sluice.api.fields.continuous import MOST_GROUPS
from sluice.api.rules import following
from sluice.api.status.common import (
    Gaps,
    HookedStatus,
    ObjectRef,
    Text,
    VerificationStatus,
    head,
)
from sluice.api.status.follow_status import CutoverStatus, FollowStatus, GroupStatus


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
