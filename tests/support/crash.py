"""Steps of the protocols, told by frames that go over the wire, or by calls to the store."""

from __future__ import annotations

from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING

from support.proxy import (
    APPEND_BLOCK_END,
    CONDITIONAL_BLOCK_END,
    CREATE_SEGMENT,
    DELETE_SEGMENT,
    MERGE_SEGMENTS,
    READ_SEGMENT,
    SEAL_SEGMENT,
    STAGING,
    UPDATE_ATTRIBUTE,
    Frame,
    FrameProxy,
)

if TYPE_CHECKING:
    from collections.abc import Callable


class Nth:
    """True from the nth matching frame on; frames come from several threads, each counted once."""

    def __init__(self, matches: Callable[[Frame], bool], number: int = 1) -> None:
        self._matches = matches
        self._left = number

    def __call__(self, frame: Frame) -> bool:
        """Whether to hold this frame up."""
        if self._matches(frame):
            self._left -= 1
            return self._left <= 0
        return False


def is_append(frame: Frame) -> bool:
    """Bytes for a staging segment."""
    return frame.type == APPEND_BLOCK_END and STAGING in frame.segment


def is_stitch(frame: Frame) -> bool:
    """A part merged into its segment's first one."""
    return frame.type == MERGE_SEGMENTS and STAGING in frame.segment


def is_publish(frame: Frame) -> bool:
    """A staged segment merged into the target's."""
    return frame.type == MERGE_SEGMENTS and STAGING not in frame.segment and bool(frame.source)


def is_mark(frame: Frame) -> bool:
    """An attribute of a staging segment: set once it is verified."""
    return frame.type == UPDATE_ATTRIBUTE and STAGING in frame.segment


def is_verifying_read(frame: Frame) -> bool:
    """A read of a staging segment in the midst of the verification."""
    return frame.type == READ_SEGMENT and STAGING in frame.segment


def is_of(kind: int, frame: Frame) -> bool:
    """A frame of this type about a staging segment or the journal."""
    return frame.type == kind and STAGING in frame.segment


def is_of_epoch(kind: int, epoch: int, frame: Frame) -> bool:
    """A frame of this type about a segment that readers see, made by a scale event.

    The controller sends some of them, when it is told to scale.
    """
    return (
        frame.type == kind
        and frame.segment.startswith("out/")
        and frame.segment.endswith(f".#epoch.{epoch}")
    )


@dataclass(frozen=True)
class Step:
    """A step of the protocol.

    Attributes:
        name: what people call it.
        condition: makes what holds up the frame, given the proxy and the bytes to copy.
        published: whether readers may see something of the target at this step.
    """

    name: str
    condition: Callable[[FrameProxy, int], Callable[[Frame], bool]]
    published: bool = False


STEPS = [
    Step("before the plan is recorded", lambda *_: partial(is_of, CONDITIONAL_BLOCK_END)),
    Step("before the first append", lambda *_: is_append),
    Step(
        "midway",
        lambda proxy, total: lambda frame: is_append(frame) and proxy.staged > total // 2,
    ),
    Step("before the first merge of parts", lambda *_: is_stitch),
    Step("between two merges of parts", lambda *_: Nth(is_stitch, 2)),
    Step("after verification, before its mark", lambda *_: is_mark),
    Step(
        "before the first seal of a whole segment", lambda *_: Nth(partial(is_of, SEAL_SEGMENT), 5)
    ),
    Step("between seal and merge", lambda *_: is_publish),
    Step("between two merges into the target", lambda *_: Nth(is_publish, 3), published=True),
    Step("before cleanup", lambda *_: partial(is_of, DELETE_SEGMENT), published=True),
]


SCALING = [
    Step(
        "before the scale event makes segments",
        lambda *_: partial(is_of_epoch, CREATE_SEGMENT, 1),
        published=True,
    ),
    Step(
        "before the scale event ends segments",
        lambda *_: partial(is_of_epoch, SEAL_SEGMENT, 0),
        published=True,
    ),
    Step(
        "before the first merge after a scale event",
        lambda *_: partial(is_of_epoch, MERGE_SEGMENTS, 1),
        published=True,
    ),
    Step(
        "before the last merge",
        lambda *_: partial(is_of_epoch, MERGE_SEGMENTS, 2),
        published=True,
    ),
]
"""Steps that only the copy of a scaled source takes."""


@dataclass(frozen=True)
class Cut:
    """A point of the protocol: right before a call to the target's store.

    Attributes:
        name: what people call it.
        call: the call, as `stores.base` names it.
        number: which of these calls of a driver it is, counted from 1.
        decided: whether the copy is to be finished from here on, and cannot be aborted.
    """

    name: str
    call: str
    number: int = 1
    decided: bool = False


APPENDING = [
    Cut("before the plan is recorded", "append_at", 1),
    Cut("before it is written down where to stage", "append_at", 2),
    Cut("before the first staging segment", "create", 2),
    Cut("before the first bytes", "appender", 1),
    Cut("before the first mark", "set_attribute", 1),
    Cut("before the turn is taken", "append_at", 4),
    Cut("before the layout is written down", "append_at", 5),
    Cut("before the policy is loosened", "update_stream", 1),
    Cut("before the target is scaled", "scale", 1),
    Cut("before the first transaction", "open_transaction", 1),
    Cut("before the first transaction is written down", "append_at", 6),
    Cut("before the target is scaled again", "scale", 2),
    Cut("before the last transaction is written down", "append_at", 8),
    Cut("before the target is scaled back", "scale", 4),
    Cut("before the policy is given back", "update_stream", 2),
    Cut("before the turn is given back", "append_at", 9),
    Cut("before the first merge", "merge", 1),
    Cut("between two merges", "merge", 3),
    Cut("before the decision", "append_at", 10),
    Cut("before the first commit", "commit_transaction", 1, decided=True),
    Cut("between two commits", "commit_transaction", 2, decided=True),
    Cut("before the commits are noted", "append_at", 11, decided=True),
    Cut("before the receipt", "append_at", 12, decided=True),
    Cut("before the journal is deleted", "delete", 1, decided=True),
]
"""Steps of an append of three generations to a target whose policy wants more segments than they
have, by the calls of a driver that nobody disturbs."""
