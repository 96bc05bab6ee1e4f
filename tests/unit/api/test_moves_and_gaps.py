"""Fields that exclude `sourceOnComplete: Delete` or `onTruncation: Record`."""

from __future__ import annotations

from typing import Any

import pytest
from pydantic import ValidationError

from sluice.api.kinds.streamcopy import StreamCopySpec

SOURCE = {"storeRef": {"name": "a"}, "scope": "in", "stream": "s"}
TARGET = {"storeRef": {"name": "a"}, "scope": "out", "stream": "t"}
MOVE = {"source": SOURCE, "target": TARGET, "sourceOnComplete": "Delete"}
APPEND = {"target": {**TARGET, "onExists": "Append"}}


def test_one_whole_stream_is_moved() -> None:
    """A move to a new stream is accepted, and both fields leave the copy's identity unchanged."""
    moved = StreamCopySpec.model_validate(MOVE | {"onTruncation": "Record"})
    plain = StreamCopySpec.model_validate({"source": SOURCE, "target": TARGET})
    assert (moved.source_on_complete, plain.source_on_complete) == ("Delete", "Retain")
    assert moved.identity() == plain.identity()


@pytest.mark.parametrize(
    "changes",
    [
        {"source": SOURCE | {"ranges": [{"from": {"at": "Head"}}]}},
        {"source": None, "sources": [SOURCE]},
        {"source": SOURCE | {"stream": "_internal"}},
        APPEND,
    ],
    ids=["ranges", "several", "internal", "append"],
)
def test_nothing_else_is_moved(changes: dict[str, Any]) -> None:
    """A move is refused with ranges, several sources, an internal stream or Append.

    The error is at sourceOnComplete.
    """
    with pytest.raises(ValidationError, match="moves one whole stream") as caught:
        StreamCopySpec.model_validate(MOVE | changes)
    assert caught.value.errors()[0]["loc"] == ("sourceOnComplete",)


def test_an_append_records_no_gaps() -> None:
    """`onExists: Append` with `onTruncation: Record` is refused: an append leaves nothing out."""
    spec = {"source": SOURCE, "onTruncation": "Record", **APPEND}
    with pytest.raises(ValidationError, match="appends records no gaps") as caught:
        StreamCopySpec.model_validate(spec)
    assert caught.value.errors()[0]["loc"] == ("onTruncation",)
