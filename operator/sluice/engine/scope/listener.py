"""Listeners to the results of a scope's streams."""

from __future__ import annotations

from typing import TYPE_CHECKING, Protocol

from sluice.engine.tasks.work import Listener, Silent

if TYPE_CHECKING:
    from collections.abc import Sequence

    from sluice.core.scope.scope import StreamResult


class ScopeListener(Listener, Protocol):
    """A listener to the streams of a scope. Called from many threads at once."""

    def ended(self, result: StreamResult) -> None:
        """Hear that a stream is complete, has failed, or is given up for this attempt."""

    def joined(self, streams: Sequence[str]) -> None:
        """Hear that streams join a copy that follows its sources."""


class SilentScope(Silent):
    """A listener to a scope's copy that does nothing."""

    def ended(self, result: StreamResult) -> None:
        """Do nothing."""

    def joined(self, streams: Sequence[str]) -> None:
        """Do nothing."""
