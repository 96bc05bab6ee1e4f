"""A copy that follows a scope, as a user runs it: a process with a file."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from support.command.follow_command import following
from support.command.scope_command import ScopeCopy

if TYPE_CHECKING:
    from contextlib import AbstractContextManager

    from support.command.follow_command import Process


@dataclass
class FollowedScope(ScopeCopy):
    """A ScopeCopy in a file that follows the streams of its scope.

    Args:
        ends: the fields that say how it ends.
    """

    log_level = "warning"

    ends: dict[str, Any] = field(default_factory=dict)

    def _resources(self) -> list[dict[str, Any]]:
        made = super()._resources()
        made[-1]["spec"] |= {"mode": "Continuous", **self.ends}
        return made

    def following(self, *options: str) -> AbstractContextManager[Process]:
        """Return a block with a process that follows the scope."""
        return following(self, *options)
