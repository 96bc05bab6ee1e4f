"""What a copy has the engine do: the same few calls, whatever it is of.

Whoever looks after copies and archives knows no more of what tells them apart. All calls block.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Protocol

from sluice.api.kinds.scopecopy import ScopeCopy
from sluice.api.kinds.streamarchive import StreamArchive
from sluice.archive.runs.shelf import Shelf
from sluice.core.scope.progress import Progress
from sluice.core.values import identity
from sluice.core.values.model import VOLUME
from sluice.core.workloads.answers import Planned
from sluice.core.workloads.plan import Plan
from sluice.core.workloads.request import archive_id, archive_request, copy_request, scope_request
from sluice.core.workloads.unplanned import Unplanned
from sluice.engine.access.source_runs import live, shelf
from sluice.engine.archive.erase import Erased, erase_archive
from sluice.engine.archive.query import ArchiveWatch, abandon_archive, ask_archive
from sluice.engine.copy.planning import begun
from sluice.engine.copy.progress import Watch
from sluice.engine.copy.query import abandon, ask
from sluice.engine.scope.progress import ScopeWatch, UnplannedScopeWatch
from sluice.engine.scope.query import abandon_scope, ask_scope

if TYPE_CHECKING:
    from collections.abc import Sequence

    from sluice.core.archive.recorded import Recorded
    from sluice.core.archive.request import ArchiveRequest
    from sluice.core.copy.planner import CopyRequest
    from sluice.core.scope.request import ScopeRequest
    from sluice.core.values.model import StoreAddress
    from sluice.core.workloads.answers import Answer
    from sluice.engine.access.source_runs import Place
    from sluice.kube.api.objects import Copy
    from sluice.stores.base import Store

    Located = tuple[StoreAddress, Place]


class Measures(Protocol):
    """Measures the progress of a plan."""

    def measure(self) -> Progress:
        """The progress now."""
        ...


class Errand(Protocol):
    """What a copy has the engine do."""

    @property
    def moves(self) -> bool:
        """Whether the source is deleted at the end."""
        ...

    def ask(
        self,
        sources: Sequence[Located],
        target: Located,
        *,
        known: Plan | None,
        again: bool,
        told: Recorded | None = None,
    ) -> Answer:
        """What the stores say about the copy; nothing is changed.

        Args:
            sources: the stores to read from, as the plan numbers them.
            target: the store to write to.
            known: the plan that was written down.
            again: whether what ended with failures is to be planned once more.
            told: what the driver has said of an archive, if it has.
        """
        ...

    def watch(self, plan: Plan, target: Place) -> Measures:
        """What measures the progress of a plan."""
        ...

    def abandon(self, sources: Sequence[Place] | None, target: Place, *, known: Plan | None) -> str:
        """Leave nothing unpublished; what was done, for people.

        Args:
            sources: the stores to read from, if they can be reached.
            target: the store to write to.
            known: the plan that was written down.
        """
        ...

    def erase(self, target: Place) -> Erased:
        """Delete what stays otherwise: of an archive, all of it. StoreBusy: there is more."""
        ...


@dataclass(frozen=True, slots=True)
class StreamErrand:
    """Of a StreamCopy."""

    request: CopyRequest

    @property
    def moves(self) -> bool:
        """See Errand."""
        return self.request.move

    def ask(
        self,
        sources: Sequence[Located],
        target: Located,
        *,
        known: Plan | None,
        again: bool,  # noqa: ARG002 - a stream is whole or is not
        told: Recorded | None = None,  # noqa: ARG002 - the target's store says more
    ) -> Answer:
        """See Errand."""
        if _unseen(sources) and begun(self.request, live(target[1])).is_new:
            addresses = tuple(address for address, _ in sources)
            plan = Unplanned(sources=addresses, target=target[0], copying=self.request)
            return Planned(plan=plan)
        stream = known.streams[0] if known is not None and known.streams else None
        return ask(self.request, sources=sources, target=_live(target), known=stream)

    def watch(self, plan: Plan, target: Place) -> Measures:
        """See Errand."""
        if isinstance(plan, Unplanned):
            return UnplannedWatch(self.request, plan, live(target))
        return Watch(plan, live(target))

    def abandon(
        self,
        sources: Sequence[Place] | None,
        target: Place,
        *,
        known: Plan | None,  # noqa: ARG002 - a stream's journal has it
    ) -> str:
        """See Errand."""
        seen = None if any(map(_is_unseen, sources or ())) else sources
        return abandon(self.request, sources=seen, target=live(target))

    def erase(self, target: Place) -> Erased:  # noqa: ARG002 - nothing is deleted
        """See Errand: a copy's target is no part of the resource."""
        return Erased()


@dataclass(frozen=True, slots=True)
class ScopeErrand:
    """Of a ScopeCopy, which has one store to read from; either one may be of archives."""

    request: ScopeRequest

    @property
    def moves(self) -> bool:
        """See Errand."""
        return self.request.move

    def ask(
        self,
        sources: Sequence[Located],
        target: Located,
        *,
        known: Plan | None,
        again: bool,
        told: Recorded | None = None,  # noqa: ARG002 - the target's store says more
    ) -> Answer:
        """See Errand."""
        (source,) = sources
        return ask_scope(
            self.request,
            source=(source[0], self._source(source[1])),
            target=(target[0], self._target(target[1])),
            known=known,
            again=again,
            unseen=_unseen(sources),
        )

    def watch(self, plan: Plan, target: Place) -> Measures:
        """See Errand."""
        if isinstance(plan, Unplanned):
            return UnplannedScopeWatch(self.request, plan, self._target(target))
        return ScopeWatch(plan, self._target(target))

    def abandon(self, sources: Sequence[Place] | None, target: Place, *, known: Plan | None) -> str:
        """See Errand."""
        seen = sources is not None and not _is_unseen(sources[0])
        source = self._source(sources[0]) if sources is not None and seen else None
        return abandon_scope(self.request, source=source, target=self._target(target), known=known)

    def erase(self, target: Place) -> Erased:  # noqa: ARG002 - nothing is deleted
        """See Errand: what was copied is no part of the resource, and neither are archives."""
        return Erased()

    def _source(self, place: Place) -> Place:
        return live(place) if self.request.restore is None else shelf(place)

    def _target(self, place: Place) -> Place:
        return live(place) if self.request.archive is None else shelf(place)


@dataclass(frozen=True, slots=True)
class ArchiveErrand:
    """Of a StreamArchive: one run of it."""

    request: ArchiveRequest

    @property
    def moves(self) -> bool:
        """See Errand."""
        return False

    def ask(
        self,
        sources: Sequence[Located],
        target: Located,
        *,
        known: Plan | None,  # noqa: ARG002 - the archive has it
        again: bool,  # noqa: ARG002 - another run has another key
        told: Recorded | None = None,
    ) -> Answer:
        """See Errand. What is in a volume only the driver can tell."""
        (source,) = sources
        request = self.request.model_copy(update={"store": source[0].uri})
        if target[0].claim is not None:
            plan = Unplanned(sources=(source[0],), target=target[0], archiving=request)
            return told or Planned(plan=plan)
        return ask_archive(request, source=_live(source), target=(target[0], shelf(target[1])))

    def watch(self, plan: Plan, target: Place) -> Measures:
        """See Errand."""
        if plan.archive is None:
            return Unseen()
        return ArchiveWatch(plan.archive, shelf(target))

    def abandon(
        self,
        sources: Sequence[Place] | None,  # noqa: ARG002 - nothing of a run is there
        target: Place,
        *,
        known: Plan | None,  # noqa: ARG002 - the archive has it
    ) -> str:
        """See Errand. What a run has noted in a volume, the sweep of a later one deletes."""
        return "nothing" if _is_unseen(target) else abandon_archive(self.request, shelf(target))

    def erase(self, target: Place) -> Erased:
        """See Errand."""
        return erase_archive(self.request, shelf(target))


class Unseen:
    """Measures what only the driver can see."""

    def measure(self) -> Progress:
        """See Measures."""
        return Progress(bytes=0, total=0, published=False)


class UnplannedWatch:
    """Measures a copy that its driver plans: nothing before that, then as any other.

    Args:
        request: the copy.
        plan: what was written down in place of its plan.
        target: the store to write to.
    """

    def __init__(self, request: CopyRequest, plan: Plan, target: Store) -> None:
        self._request = request
        self._plan = plan
        self._target = target
        self._watch: Measures = Unseen()

    def measure(self) -> Progress:
        """See Measures."""
        if isinstance(self._watch, Unseen):
            found = begun(self._request, self._target).plan
            if found is not None:
                plan = Plan(sources=self._plan.sources, target=self._plan.target, streams=(found,))
                self._watch = Watch(plan, self._target)
        return self._watch.measure()


def made_by_driver(watch: Measures) -> Plan | None:
    """The plan of a scope that was left to its driver, which has written it down by now."""
    return watch.plan if isinstance(watch, UnplannedScopeWatch) else None


def _unseen(sources: Sequence[Located]) -> bool:
    """Whether a source is in a volume."""
    return any(address.claim is not None for address, _ in sources)


def _is_unseen(place: Place) -> bool:
    return isinstance(place, Shelf) and place.uri.startswith(VOLUME)


def _live(located: Located) -> tuple[StoreAddress, Store]:
    return located[0], live(located[1])


def identity_of(resource: Copy, *, cluster: str) -> str:
    """A resource's identity in stores."""
    if isinstance(resource, StreamArchive):
        return archive_id(resource, cluster=cluster)
    return identity.copy_id(
        cluster=cluster,
        namespace=resource.metadata.namespace,
        name=resource.metadata.name,
        identity=resource.spec.identity(),
    )


def errand_of(resource: Copy, *, cluster: str, tasks: int, run_key: str | None = None) -> Errand:
    """What a resource has the engine do.

    Args:
        resource: the resource.
        cluster: tells clusters apart that share a store.
        tasks: how many will run at once.
        run_key: of an archive, which run it is about.
    """
    if isinstance(resource, StreamArchive):
        return ArchiveErrand(archive_request(resource, cluster=cluster, run_key=run_key))
    if isinstance(resource, ScopeCopy):
        return ScopeErrand(scope_request(resource, cluster=cluster, tasks=tasks))
    return StreamErrand(copy_request(resource, cluster=cluster, tasks=tasks))
