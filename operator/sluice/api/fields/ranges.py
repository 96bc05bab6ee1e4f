"""Define ranges of a stream: where a copy begins and ends."""

from __future__ import annotations

from typing import Annotated, Final, Literal, Self

from pydantic import ConfigDict, Field, model_validator

from sluice.api.fields.common import ApiModel
from sluice.api.rules import Rule, rules

MOST_RANGES: Final = 16
MOST_SEGMENTS: Final = 256

MOST: Final = (1 << 53) - 1
"""The largest number that JSON holds exactly."""

_CUT = "streamCut goes with at: StreamCut, which needs it"
_OFFSETS = "offsets go with at: Offsets, which needs them"
_TWICE = "a segment is there twice: remove one"

_ONE_WAY = rules(
    Rule("(self.at == 'StreamCut') == has(self.streamCut)", _CUT, path=".streamCut"),
    Rule("(self.at == 'Offsets') == has(self.offsets)", _OFFSETS, path=".offsets"),
)


class SegmentOffset(ApiModel):
    """A position in one segment."""

    segment_id: Annotated[int, Field(ge=0, le=MOST, strict=True, alias="segmentID")] = Field(
        description="The segment's id in the store."
    )
    offset: Annotated[int, Field(ge=0, le=MOST, strict=True)] = Field(
        description="Bytes from the segment's beginning. An event has to begin there."
    )


_StreamCut = Annotated[str, Field(min_length=1, max_length=16_384)]
_Offsets = Annotated[
    tuple[SegmentOffset, ...],
    Field(
        min_length=1,
        max_length=MOST_SEGMENTS,
        json_schema_extra={
            "x-kubernetes-list-type": "map",
            "x-kubernetes-list-map-keys": ["segmentID"],
        },
    ),
]


class Bound(ApiModel):
    """A position in a stream."""

    model_config = ConfigDict(json_schema_extra=_ONE_WAY)

    at: str
    stream_cut: _StreamCut | None = Field(
        default=None,
        description="A StreamCut of the stream, as the text that the store's clients print.",
    )
    offsets: _Offsets | None = Field(
        default=None,
        description="An offset in each of the segments that together cover all keys, each key "
        "once.",
    )

    @model_validator(mode="after")
    def _one_way(self) -> Self:
        if (self.at == "StreamCut") != (self.stream_cut is not None):
            raise ValueError(_CUT)
        if (self.at == "Offsets") != (self.offsets is not None):
            raise ValueError(_OFFSETS)
        ids = [one.segment_id for one in self.offsets or ()]
        if len(set(ids)) < len(ids):
            raise ValueError(_TWICE)
        return self


class Begin(Bound):
    """Where a range begins."""

    at: Literal["Head", "StreamCut", "Offsets"] = Field(
        description="How the position is given. Head is the oldest byte that is readable when the "
        "bounds are taken."
    )


class End(Bound):
    """Where a range ends."""

    at: Literal["Tail", "StreamCut", "Offsets"] = Field(
        description="How the position is given. Tail is the stream's end when the bounds are taken."
    )


class RangeSpec(ApiModel):
    """A part of a stream, without gaps."""

    from_: Begin = Field(
        default=Begin(at="Head"), alias="from", description="The first position that is copied."
    )
    to: End = Field(default=End(at="Tail"), description="The position behind the last byte.")
