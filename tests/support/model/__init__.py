"""A stream store in memory.

Every call first asks a gate for its fate. So a test can lose requests and replies, and can let
other actors act in between. The contract tests show that the model behaves as the real store.
"""

from support.model.store import ModelStore
from support.model.world import (
    CREATION_TIME,
    EVENT_COUNT,
    Fate,
    ModelGroup,
    ModelSegment,
    ModelStream,
    ModelTransaction,
    World,
    segment_name,
)

__all__ = [
    "CREATION_TIME",
    "EVENT_COUNT",
    "Fate",
    "ModelGroup",
    "ModelSegment",
    "ModelStore",
    "ModelStream",
    "ModelTransaction",
    "World",
    "segment_name",
]
