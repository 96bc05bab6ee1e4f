"""A decision about a resource of any kind, as the loop carries it out."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Protocol

if TYPE_CHECKING:
    from collections.abc import Sequence

    from sluice.api.status.common import ResourceStatus


class Decided(Protocol):
    """Decision about a resource, see `core.reconcile`."""

    @property
    def status(self) -> ResourceStatus:
        """The status to write before the actions."""
        ...

    @property
    def actions(self) -> Sequence[Any]:
        """The actions, in order."""
        ...

    @property
    def again(self) -> float | None:
        """Seconds until the next look in any case; None to wait for an event."""
        ...
