"""The workload of a StreamArchive."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from sluice.core.workloads.answers import Planned
from sluice.core.workloads.plan import ArchiveRunPlan
from sluice.core.workloads.unplanned import UnplannedArchiveRun
from sluice.engine.access.source_runs import live, root
from sluice.engine.archive.erase import erase_archive
from sluice.engine.archive.planning import PATH_FIELD, begun, resolve_archive
from sluice.engine.archive.query import ArchiveWatch, abandon_archive, ask_archive, told_of
from sluice.engine.archive.report import ArchiveReport
from sluice.engine.workloads.workload import Found, Unseen, is_volume, located_live

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from sluice.archive.runs.archive import Archive
    from sluice.core.archive.recorded import Recorded
    from sluice.core.archive.request import ArchiveRequest
    from sluice.core.values.model import StoreAddress
    from sluice.core.workloads.answers import Answer
    from sluice.core.workloads.plan import Plan
    from sluice.engine.access.source_runs import Place
    from sluice.engine.archive.erase import Erased
    from sluice.engine.workloads.workload import Located, Measures

_MOST_GAPS: Final = 10
"""Most gaps in a termination message, which has little room."""


@dataclass(frozen=True, slots=True)
class ArchiveWorkload:
    """The workload of one run of a StreamArchive."""

    request: ArchiveRequest

    @property
    def moves(self) -> bool:
        """Return False: the source of an archive stays."""
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
        """Ask the stores about the run. If the archive is in a volume, use what its driver told."""
        (source,) = sources
        request = self._of(source[0])
        if target[0].claim is not None:
            plan = UnplannedArchiveRun(sources=(source[0],), target=target[0], archiving=request)
            return told or Planned(plan=plan)
        return ask_archive(
            request, source=located_live(source), target=(target[0], root(target[1]))
        )

    def plan(
        self,
        sources: Sequence[Located],
        target: Located,
        *,
        run: int | None = None,  # noqa: ARG002 - another run has another key
    ) -> Found[ArchiveRunPlan, ArchiveReport]:
        """Plan the run."""
        (source,) = sources
        request = self._of(source[0])
        found = resolve_archive(request, live(source[1]), self._archive(target[1]))
        if found.plan is None:
            entry = found.entry
            return Found(report=None if entry is None else ArchiveReport.recorded(request, entry))
        plan = ArchiveRunPlan(sources=(source[0],), target=target[0], archive=found.plan)
        return Found(plan, recorded=found.noted)

    def tell(self, target: Place) -> Recorded | None:
        """Return what to report of the archive and the run; None if the run is not recorded."""
        archive = self._archive(target)
        entry = begun(self.request, archive).entry
        return None if entry is None else told_of(archive, entry, most_gaps=_MOST_GAPS)

    def watch(
        self,
        plan: Plan,
        target: Place,
        sources: Sequence[Place] = (),  # noqa: ARG002 - an archive follows no source
    ) -> Measures:
        """Return what measures the run's progress; it shows none if only the driver can plan."""
        if isinstance(plan, ArchiveRunPlan):
            return ArchiveWatch(plan.archive, root(target))
        return Unseen()

    def abort(self, sources: Callable[[], Sequence[Place]], target: Place) -> str:  # noqa: ARG002 - nothing of a run is there
        """Delete the notes and leases of an unfinished run, and return in words what was done."""
        return f"deleted {abandon_archive(self.request, root(target))}"

    def abandon(
        self,
        sources: Sequence[Place] | None,  # noqa: ARG002 - nothing of a run is there
        target: Place,
        *,
        known: Plan | None,  # noqa: ARG002 - the archive has it
    ) -> str:
        """Delete the notes and leases of an unfinished run, and return in words what was done.

        The operator cannot look into volumes. There, the sweep of a later run deletes the notes.
        """
        return "nothing" if is_volume(target) else abandon_archive(self.request, root(target))

    def erase(self, target: Place) -> Erased:
        """Delete the archive, as far as one call's time allows."""
        return erase_archive(self.request, root(target))

    def _of(self, source: StoreAddress) -> ArchiveRequest:
        """Return the request with the address of the stream's store."""
        return self.request.model_copy(update={"store": source.uri})

    def _archive(self, place: Place) -> Archive:
        return root(place).archive(self.request.path, field=PATH_FIELD)
