"""Who hears what becomes of the streams of a scope."""

from __future__ import annotations

from typing import TYPE_CHECKING, Protocol

from sluice.engine.rounds.work import Listener, Silent

if TYPE_CHECKING:
    from sluice.core.scope.scope import StreamResult


class ScopeListener(Listener, Protocol):
    """Hears what becomes of the streams of a scope. Called from many threads at once."""

    def ended(self, result: StreamResult) -> None:
        """A stream is whole, or failed; also if it is given up only for now."""


class SilentScope(Silent):
    """A listener to a scope's copy that does not care."""

    def ended(self, result: StreamResult) -> None:
        """See ScopeListener."""
