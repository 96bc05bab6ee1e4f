"""The points of the copy protocol at which something is killed, each told by a frame or a call.

They come in the order of docs/protocol.md, all in the copy of one stream: `support.crash_lab` has
a source that was truncated and scaled, so that its target takes every step.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal

from support.call_proxy import Call
from support.proxy import (
    APPEND_BLOCK_END,
    CONDITIONAL_BLOCK_END,
    CREATE_SEGMENT,
    DELETE_SEGMENT,
    MERGE_SEGMENTS,
    READ_SEGMENT,
    SEAL_SEGMENT,
    SETUP_APPEND,
    STAGING,
    UPDATE_ATTRIBUTE,
    Frame,
)

if TYPE_CHECKING:
    from collections.abc import Callable

    from support.hold import Sign

Place = Literal["journal", "staging", "target"]


@dataclass(frozen=True)
class Point:
    """A point of the protocol: right before something that a frame or a call does.

    Attributes:
        step: the protocol's word for what is being done.
        name: what would happen next.
        told_by: whether a frame or a call about the target is what would do it.
        number: which of these it is, counted from 1.
        in_task: whether a task of Spark's does it.
        hidden: whether the target is there, and no reader may find anything in it.
    """

    step: str
    name: str
    told_by: Callable[[Sign], bool]
    number: int = 1
    in_task: bool = False
    hidden: bool = False


def place_of(segment: str) -> Place:
    """What a segment's name says that it is.

    The journal lies beside the first segment that a stream of this name ever has. That one is
    never staged for, since the target takes the shape of a truncated source before.
    """
    if "/0.#epoch.0" + STAGING in segment:
        return "journal"
    return "staging" if STAGING in segment else "target"


def frame(kind: int, place: Place, epoch: int | None = None) -> Callable[[Sign], bool]:
    """Tells frames of a type, about segments made in an epoch. The controller sends some of them."""

    def told(sign: Sign) -> bool:
        return (
            isinstance(sign, Frame)
            and sign.type == kind
            and place_of(sign.segment) == place
            and (epoch is None or sign.segment.endswith(f".#epoch.{epoch}"))
        )

    return told


def call(method: str) -> Callable[[Sign], bool]:
    """Tells calls of one of the controller's methods."""
    return lambda sign: isinstance(sign, Call) and sign.method == method


RECORD = frame(CONDITIONAL_BLOCK_END, "journal")
STITCH = frame(MERGE_SEGMENTS, "staging")
FIRST, SPLIT, MERGED = 1, 2, 3
"""Epochs of the target: that of its first generation, and those of the scale events after it."""

POINTS = (
    Point("plan", "the plan is recorded", RECORD),
    Point("Claim", "the controller is told to make the target", call("createStream")),
    Point("Claim", "the target's segments are made", frame(CREATE_SEGMENT, "target", 0)),
    Point("Shape", "the first generation's segments are made", frame(CREATE_SEGMENT, "target", FIRST)),
    Point("Shape", "what the target was made with is dropped", frame(DELETE_SEGMENT, "target", 0)),
    Point("Bind", "the target's segments are recorded", RECORD, 2, hidden=True),
    Point("Stage", "the fourth staging segment is made", frame(CREATE_SEGMENT, "staging"), 4, hidden=True),
    Point("Transfer", "the fence is asked where to go on", frame(SETUP_APPEND, "staging"), in_task=True, hidden=True),
    Point("Transfer", "the first bytes are appended", frame(APPEND_BLOCK_END, "staging"), in_task=True, hidden=True),
    Point("Transfer", "the tenth block is appended", frame(APPEND_BLOCK_END, "staging"), 10, in_task=True, hidden=True),
    Point("Transfer", "digests are recorded", RECORD, 3, hidden=True),
    Point("Stitch", "the first part is merged", STITCH, hidden=True),
    Point("Stitch", "the second part is merged", STITCH, 2, hidden=True),
    Point("Verify", "staged bytes are read, the tenth time", frame(READ_SEGMENT, "staging"), 10, in_task=True, hidden=True),
    Point("Verify", "the first segment is marked", frame(UPDATE_ATTRIBUTE, "staging"), hidden=True),
    Point("Verify", "the last segment is marked", frame(UPDATE_ATTRIBUTE, "staging"), 5, hidden=True),
    Point("Publish", "the first staged segment is sealed", frame(SEAL_SEGMENT, "staging"), 3, hidden=True),
    Point("Publish", "the first segment is merged", frame(MERGE_SEGMENTS, "target", FIRST), hidden=True),
    Point("Publish", "the second segment is merged", frame(MERGE_SEGMENTS, "target", FIRST), 2),
    Point("Scale", "a scale event makes its segments", frame(CREATE_SEGMENT, "target", SPLIT)),
    Point("Scale", "a scale event ends segments", frame(SEAL_SEGMENT, "target", FIRST)),
    Point("Publish", "the first segment after a scale event is merged", frame(MERGE_SEGMENTS, "target", SPLIT)),
    Point("Scale", "the target may have fewer segments", call("updateStream")),
    Point("Scale", "the controller is told to merge segments", call("scale"), 3),
    Point("Settle", "the number of segments is fixed again", call("updateStream"), 2),
    Point("Publish", "the last segment is merged", frame(MERGE_SEGMENTS, "target", MERGED)),
    Point("Configure", "the target is said to be whole", call("updateStream"), 3),
    Point("Forget", "the journal is deleted", frame(DELETE_SEGMENT, "journal")),
)
