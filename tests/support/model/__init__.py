"""A stream store in memory.

Every call first asks a gate what becomes of it, so that a test can lose requests and replies, and
can let others act in between. What the model does is what the contract tests show of the real
store.
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
