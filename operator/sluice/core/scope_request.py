"""What is wanted of a scope's copy, before anything is observed."""

from __future__ import annotations

from typing import Literal

from pydantic import Field

from sluice.core import identity
from sluice.core.model import Frozen, StreamName
from sluice.core.plan import OnTruncation
from sluice.core.planner import PART_BYTES, CopyRequest, SourceRequest

OnExists = Literal["Fail", "Skip", "Append"]
"""What to do about streams whose target is there and is somebody else's."""


class Selector(Frozen):
    """Streams by name, by the beginning of their names, or by a tag that they have."""

    type: Literal["Exact", "Prefix", "Tag"]
    value: str


class Rename(Frozen):
    """What the names of targets begin with in place of what the names of sources do."""

    from_prefix: str
    to_prefix: str


class ScopeRequest(Frozen):
    """What somebody wants copied of a scope, with stores resolved and nothing observed yet.

    Attributes:
        scope_id: the identity of the whole copy, 32 hexadecimal digits.
        source, target: the scopes.
        make_scope: whether the target's scope is made if there is none.
        include: what is copied; everything where it is empty.
        exclude: what is not copied of that.
        ephemeral: whether streams of EphemeralStreams count.
        rename: the first that fits a name holds.
        on_exists: see OnExists.
        move, on_truncation, verify: of each stream, see StreamPlan. The source's scope is deleted
            as well after a move if it is empty then.
        part_bytes, tasks: see CopyRequest.
    """

    scope_id: str
    source: str
    target: str
    make_scope: bool = False
    include: tuple[Selector, ...] = ()
    exclude: tuple[Selector, ...] = ()
    ephemeral: bool = False
    rename: tuple[Rename, ...] = ()
    on_exists: OnExists = "Fail"
    move: bool = False
    on_truncation: OnTruncation = "Fail"
    verify: bool = True
    part_bytes: int = PART_BYTES
    tasks: int = Field(default=1, ge=1)

    def of(self, stream: str, target: str) -> CopyRequest:
        """The copy of one stream: it is what a StreamCopy would ask for.

        Args:
            stream: its name in the source's scope.
            target: the name in the target's scope.
        """
        return CopyRequest(
            copy_id=identity.stream_copy_id(self.scope_id, stream),
            sources=(SourceRequest(stream=StreamName(scope=self.source, stream=stream)),),
            target=StreamName(scope=self.target, stream=target),
            verify=self.verify,
            on_truncation=self.on_truncation,
            move=self.move,
            part_bytes=self.part_bytes,
            append=self.on_exists == "Append",
            tasks=self.tasks,
        )
