"""What a copy has the engine do: the same few calls, whether it is of one stream or of a scope.

Whoever looks after copies knows no more of what tells the two kinds apart. All calls block.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Protocol

from sluice.api.scopecopy import ScopeCopy
from sluice.core.request import copy_request, scope_request
from sluice.engine.progress import Watch
from sluice.engine.scope_settle import abandon_scope, ask_scope
from sluice.engine.scope_watch import ScopeWatch
from sluice.engine.settle import abandon, ask

if TYPE_CHECKING:
    from collections.abc import Sequence

    from sluice.core.model import StoreAddress
    from sluice.core.plan import Plan
    from sluice.core.planner import CopyRequest
    from sluice.core.progress import Progress
    from sluice.core.reconcile.world import Answer
    from sluice.core.scope_request import ScopeRequest
    from sluice.kube.objects import Copy
    from sluice.stores.base import Store

    Place = tuple[StoreAddress, Store]


class Measures(Protocol):
    """Measures the progress of a plan."""

    def measure(self) -> Progress:
        """The progress now."""
        ...


class Errand(Protocol):
    """What a copy has the engine do."""

    @property
    def copy_id(self) -> str:
        """The copy's identity in stores."""
        ...

    @property
    def moves(self) -> bool:
        """Whether the source is deleted at the end."""
        ...

    def ask(
        self, sources: Sequence[Place], target: Place, *, known: Plan | None, again: bool
    ) -> Answer:
        """What the stores say about the copy; nothing is changed.

        Args:
            sources: the stores to read from, as the plan numbers them.
            target: the store to write to.
            known: the plan that was written down.
            again: whether what ended with failures is to be planned once more.
        """
        ...

    def watch(self, plan: Plan, target: Store) -> Measures:
        """What measures the progress of a plan."""
        ...

    def abandon(self, sources: Sequence[Store] | None, target: Store, *, known: Plan | None) -> str:
        """Leave nothing unpublished; what was done, for people.

        Args:
            sources: the stores to read from, if they can be reached.
            target: the store to write to.
            known: the plan that was written down.
        """
        ...


@dataclass(frozen=True, slots=True)
class StreamErrand:
    """Of a StreamCopy."""

    request: CopyRequest

    @property
    def copy_id(self) -> str:
        """See Errand."""
        return self.request.copy_id

    @property
    def moves(self) -> bool:
        """See Errand."""
        return self.request.move

    def ask(
        self,
        sources: Sequence[Place],
        target: Place,
        *,
        known: Plan | None,
        again: bool,  # noqa: ARG002 - a stream is whole or is not
    ) -> Answer:
        """See Errand."""
        stream = None if known is None else known.streams[0]
        return ask(self.request, sources=sources, target=target, known=stream)

    def watch(self, plan: Plan, target: Store) -> Measures:
        """See Errand."""
        return Watch(plan, target)

    def abandon(
        self,
        sources: Sequence[Store] | None,
        target: Store,
        *,
        known: Plan | None,  # noqa: ARG002 - a stream's journal has it
    ) -> str:
        """See Errand."""
        return abandon(self.request, sources=sources, target=target)


@dataclass(frozen=True, slots=True)
class ScopeErrand:
    """Of a ScopeCopy, which has one store to read from."""

    request: ScopeRequest

    @property
    def copy_id(self) -> str:
        """See Errand."""
        return self.request.scope_id

    @property
    def moves(self) -> bool:
        """See Errand."""
        return self.request.move

    def ask(
        self, sources: Sequence[Place], target: Place, *, known: Plan | None, again: bool
    ) -> Answer:
        """See Errand."""
        (source,) = sources
        return ask_scope(self.request, source=source, target=target, known=known, again=again)

    def watch(self, plan: Plan, target: Store) -> Measures:
        """See Errand."""
        return ScopeWatch(plan, target)

    def abandon(self, sources: Sequence[Store] | None, target: Store, *, known: Plan | None) -> str:
        """See Errand."""
        source = None if sources is None else sources[0]
        return abandon_scope(self.request, source=source, target=target, known=known)


def errand_of(resource: Copy, *, cluster: str, tasks: int) -> Errand:
    """What a resource has the engine do.

    Args:
        resource: the resource.
        cluster: tells clusters apart that share a store.
        tasks: how many will run at once.
    """
    if isinstance(resource, ScopeCopy):
        return ScopeErrand(scope_request(resource, cluster=cluster, tasks=tasks))
    return StreamErrand(copy_request(resource, cluster=cluster, tasks=tasks))
