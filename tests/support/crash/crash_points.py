"""The points of the copy protocol at which a process is killed, each with the sign that marks it.

They come in the order of docs/protocol.md: those of a copy to a new stream, of an append, and of a
copy that follows its source. The first two have one source. The source of `support.crash.crash_env`
was truncated and scaled, so that its target takes every step. Those that follow have a source each:
`support.crash.followed_source`.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal

from support.crash.call_proxy import Call
from support.crash.proxy import (
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
)
from support.crash.request_proxy import Request

if TYPE_CHECKING:
    from support.crash.breakpoint import Sign

Place = Literal["journal", "staging", "transaction", "target"]
Victim = Literal["driver", "executor", "operator", "controller", "segment store", "gateway"]


def place_of(segment: str) -> Place:
    """Return the kind of a segment, by its name.

    The journal, and the remains of an append, lie beside the first segment that a stream of this
    name ever has. Here nothing is staged beside that segment, since the target takes another shape
    before. The store itself numbers its transactions, from the epoch on.
    """
    base, _, key = segment.partition(STAGING)
    if not key:
        return "target"
    if key.startswith("0000000"):
        return "transaction"
    return "journal" if base.endswith("/0.#epoch.0") else "staging"


@dataclass(frozen=True)
class Frames:
    """Frames of a type. The controller sends some of them.

    Attributes:
        kind: the type.
        place: the kind of their segment.
        of: ending of the target segment's name, for frames about it or about staging beside it.
        said: bytes that a conditional append contains.
        halts: whether they halt a position: then it is another number, below -1.
    """

    kind: int
    place: Place
    of: str = ""
    said: bytes = b""
    halts: bool = False

    def __call__(self, sign: Sign) -> bool:
        """Tell whether a sign is such a frame."""
        return (
            isinstance(sign, Frame)
            and sign.type == self.kind
            and place_of(sign.segment) == self.place
            and sign.segment.partition(STAGING)[0].endswith(self.of)
            and self.said in sign.said
            and (not self.halts or (sign.value is not None and sign.value < -1))
        )


@dataclass(frozen=True)
class Calls:
    """Calls of one of the controller's methods."""

    method: str

    def __call__(self, sign: Sign) -> bool:
        """Tell whether a sign is such a call."""
        return isinstance(sign, Call) and sign.method == self.method


@dataclass(frozen=True)
class Requests:
    """Requests to an S3 gateway that are about an archive.

    Attributes:
        method: the HTTP method; deletions are POST.
        folder: folder of the archive in which the objects lie.
        said: bytes that the body contains.
    """

    method: str
    folder: str
    said: bytes = b""

    def __call__(self, sign: Sign) -> bool:
        """Tell whether a sign is such a request."""
        return (
            isinstance(sign, Request)
            and sign.method == self.method
            and self.said in sign.body
            and any(f"/{self.folder}/" in name for name in sign.names)
        )


@dataclass(frozen=True)
class Point:
    """A point of the protocol: right before the effect of a frame, a call or a request.

    Attributes:
        step: the protocol's word for the step in work.
        name: the effect that would come next.
        told_by: the signs about the target that would have the effect.
        number: the sign's number among these, counted from 1.
        in_task: whether a task of Spark does it.
        appends: whether the target exists before, with events of its own.
        follows: whether the copy follows its source, until it cuts over.
    """

    step: str
    name: str
    told_by: Frames | Calls | Requests
    number: int = 1
    in_task: bool = False
    appends: bool = False
    follows: bool = False

    @property
    def hidden(self) -> bool:
        """Tell whether the target exists while no reader may find anything in it."""
        return self.step in _HIDDEN


_HIDDEN = {"Bind", "Stage", "Transfer", "Stitch", "Verify"}
RECORD = Frames(CONDITIONAL_BLOCK_END, "journal")
APPEND = Frames(APPEND_BLOCK_END, "staging")
MADE, FIRST, SPLIT, MERGED = (f".#epoch.{number}" for number in range(4))
"""Epochs of the target: its creation, its first generation, and the scale events after it."""


def _record(kind: bytes) -> Frames:
    """Return the sign that a record of this kind is written into the journal."""
    return Frames(CONDITIONAL_BLOCK_END, "journal", said=b'"record":"' + kind + b'"')


HALT = Frames(UPDATE_ATTRIBUTE, "target", halts=True)

MIDWAY = Point(
    "Transfer",
    "the tenth block is appended",
    APPEND,
    10,
    in_task=True,
)
POINTS = (
    Point("plan", "the plan is recorded", RECORD),
    Point("MakeTarget", "the target is made", Calls("createStream")),
    Point(
        "Shape", "the first generation gets its segments", Frames(CREATE_SEGMENT, "target", FIRST)
    ),
    Point(
        "Shape", "what the target was made with is dropped", Frames(DELETE_SEGMENT, "target", MADE)
    ),
    Point("Bind", "the target's segments are recorded", RECORD, 2),
    Point("Stage", "the fourth staging segment is made", Frames(CREATE_SEGMENT, "staging"), 4),
    Point("Transfer", "the first bytes are appended", APPEND, in_task=True),
    MIDWAY,
    Point(
        "Stitch",
        "the second part is merged",
        Frames(MERGE_SEGMENTS, "staging"),
        2,
    ),
    Point(
        "Verify",
        "staged bytes are read, the tenth time",
        Frames(READ_SEGMENT, "staging"),
        10,
        in_task=True,
    ),
    Point("Verify", "the first segment is marked", Frames(UPDATE_ATTRIBUTE, "staging")),
    Point(
        "Publish",
        "the first segment, sealed, is merged",
        Frames(MERGE_SEGMENTS, "target", FIRST),
    ),
    Point(
        "Publish",
        "the second segment is sealed",
        Frames(SEAL_SEGMENT, "staging", "/3" + FIRST),
    ),
    Point("Scale", "a scale event makes its segments", Frames(CREATE_SEGMENT, "target", SPLIT)),
    Point(
        "Scale",
        "a scale event ends segments",
        Frames(SEAL_SEGMENT, "target", FIRST),
    ),
    Point(
        "Publish",
        "the first segment after a scale event is merged",
        Frames(MERGE_SEGMENTS, "target", SPLIT),
    ),
    Point(
        "FixSegmentCount",
        "the number of segments is fixed again",
        Calls("updateStream"),
        2,
    ),
    Point("Publish", "the last segment is merged", Frames(MERGE_SEGMENTS, "target", MERGED)),
    Point("ConfigureTarget", "the target is said to be whole", Calls("updateStream"), 3),
    Point("DeleteJournal", "the journal is deleted", Frames(DELETE_SEGMENT, "journal")),
    Point("Reshape", "an append scales the target", Calls("scale"), appends=True),
    Point("Open", "the second transaction is opened", Calls("createTransaction"), 2, appends=True),
    Point("RestoreLayout", "the target gets its key ranges back", Calls("scale"), 4, appends=True),
    Point(
        "MergeIntoTransaction",
        "the first segment is merged into its transaction",
        Frames(MERGE_SEGMENTS, "transaction"),
        appends=True,
    ),
    Point(
        "Commit",
        "the second transaction is committed",
        Calls("commitTransaction"),
        2,
        appends=True,
    ),
    Point(
        "WriteReceipt", "the receipt is made", Frames(CREATE_SEGMENT, "journal"), 3, appends=True
    ),
    Point("Live", "the target gets the source's tags", Calls("updateStream"), follows=True),
    Point("Skip", "a segment is halted", HALT, follows=True),
    Point("Skip", "the loss is recorded", _record(b"skip"), follows=True),
    Point(
        "Follow",
        "bytes are appended to the target",
        Frames(APPEND_BLOCK_END, "target"),
        follows=True,
    ),
    Point("Prove", "a comparison is recorded", _record(b"proved"), follows=True),
    Point("Grow", "a scale event is recorded", _record(b"grow"), follows=True),
    Point(
        "SealSource", "it is recorded that the source is sealed", _record(b"sealing"), follows=True
    ),
    Point("SealSource", "the source is sealed", Calls("sealStream"), follows=True),
    Point("Stop", "the end is recorded", _record(b"stop"), follows=True),
    Point("Halt", "the first segment is halted", HALT, follows=True),
    Point("Halt", "the second segment is halted", HALT, 2, follows=True),
    Point("Translate", "a reader group is made", Calls("createReaderGroup"), follows=True),
    Point(
        "Translate",
        "the group gets its position",
        Frames(CONDITIONAL_BLOCK_END, "target"),
        follows=True,
    ),
    Point("CatchUp", "it is recorded that bytes are staged", _record(b"catch-up"), follows=True),
    Point("CatchUp", "the first of these bytes are staged", APPEND, follows=True),
    Point(
        "CatchUp",
        "the first segment of them is merged",
        Frames(MERGE_SEGMENTS, "target"),
        follows=True,
    ),
    Point("CatchUp", "it is recorded that this is over", _record(b"caught-up"), follows=True),
)
