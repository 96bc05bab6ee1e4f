"""Plan how a scope is archived: each stream into an archive of its own, all in one folder."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from sluice.archive.runs.notes import Notes
from sluice.core.scope.scope import StreamResult, StreamState
from sluice.core.values.model import StreamName
from sluice.engine.access import parallel
from sluice.engine.archive.moving import last_of
from sluice.engine.archive.planning import make_archive_plan, noted_plan
from sluice.engine.scope.planners.base import Fresh, Item, LivePlanner, failed, few, is_for_all
from sluice.errors import InvalidSpec, SluiceError, TargetExists

if TYPE_CHECKING:
    from collections.abc import Sequence

    from sluice.archive.runs.archive import Archive
    from sluice.archive.runs.archive_root import ArchiveRoot
    from sluice.core.archive.head import Head, RunEntry
    from sluice.core.archive.plan import ArchivePlan
    from sluice.core.archive.request import ArchiveRequest
    from sluice.core.scope.request import ScopeRequest
    from sluice.core.scope.selection import Chosen
    from sluice.stores.base import Source

FOLDER_FIELD: Final = "spec.target.archive.path"


class ArchivePlanner(LivePlanner):
    """A planner for the archives of a scope's streams.

    Args:
        request: the copy to plan.
        source: the store to read from.
        target: the place that holds the folder.
        uri: the address of the source's store, for people.
    """

    def __init__(
        self, request: ScopeRequest, source: Source, target: ArchiveRoot, uri: str
    ) -> None:
        super().__init__(request, source)
        self._root = target
        self._uri = uri

    def there(self) -> list[str]:
        """List the names in the folder. A folder that does not exist yet holds none.

        Raises:
            InvalidSpec: the folder is an archive itself.
        """
        folder = self.request.target
        if self._root.archive(folder, field=FOLDER_FIELD).head() is not None:
            raise InvalidSpec(
                f"{folder or 'the place'} is an archive, and no archive lies in another",
                field=FOLDER_FIELD,
                remedy="Name a folder of its own for the archives of the scope.",
            )
        return self._root.names(folder)

    def bind(self, fresh: Sequence[Fresh]) -> None:
        """Plan a run of each stream's archive."""
        for found in parallel.each(self._plan, [one for one, _ in self._ready(fresh)]):
            if isinstance(found, StreamResult):
                self.settled.append(found)
            else:
                self.plans.append(found)

    def exist(self, exists: Sequence[Chosen]) -> SluiceError:
        """Return the error that these archives exist, and this copy did not make them."""
        what = "archive is" if len(exists) == 1 else "archives are"
        names = few([one.target for one in exists])
        return TargetExists(
            f"{len(exists)} {what} in the folder {self.request.target} already, and this copy did "
            f"not make them: {names}",
            field="spec.onExists",
            remedy="Take onExists: Skip to leave them out or Append to add a run to each, or "
            "rename.",
        )

    def _stand(self, one: Chosen) -> Item | StreamResult | Fresh | None:
        wanted = self._wanted(one)
        try:
            archive = archive_of(wanted, self._root)
            # Read the notes before the head: a driver deletes them once the head lists the run.
            plan = noted_plan(Notes(archive.objects, wanted.copy_id).read_on(), wanted)
            head = archive.head()
            if plan is not None:
                return plan
            found = done(self.request, one, archive, head, self.source)
        except SluiceError as error:
            if is_for_all(error):
                raise
            return failed(*one, error)
        if found is not None:
            return found
        mine = head is None or any(run.work == wanted.copy_id for run in head.runs)
        return Fresh(one, append=True) if mine or self.request.on_exists == "Append" else None

    def _ours(self, there: Sequence[str]) -> list[str]:
        return [*there]

    def _has_made(self, target: str, stream: str) -> bool:
        wanted = self.request.run_of(stream, target)
        archive = archive_of(wanted, self._root)
        return last_of(archive, archive.head(), wanted.copy_id) is not None

    def _plan(self, one: Fresh) -> ArchivePlan | StreamResult:
        """Return the plan of a stream's run, or the failed result if it cannot be archived."""
        wanted = self._wanted(one.chosen)
        self._take()
        try:
            return make_archive_plan(wanted, self.source, archive_of(wanted, self._root))
        except SluiceError as error:
            if is_for_all(error):
                raise
            return failed(*one.chosen, error)
        finally:
            self._take()

    def _wanted(self, one: Chosen) -> ArchiveRequest:
        return self.request.run_of(*one, store=self._uri)


def archive_of(wanted: ArchiveRequest, root: ArchiveRoot) -> Archive:
    """Return the archive of one stream of a scope."""
    return root.archive(wanted.path, field="spec.rename")


def entry_of(head: Head | None, work: str) -> RunEntry | None:
    """Return the last run in the head that the work of this identity has recorded, if any."""
    runs = head.runs if head else ()
    return next((one for one in reversed(runs) if one.work == work), None)


def done(
    request: ScopeRequest, one: Chosen, archive: Archive, head: Head | None, source: Source | None
) -> StreamResult | None:
    """Return the result of a stream that is archived; None if it is not done.

    A copy is done when its run is recorded. A move is done when its source is gone as well.

    Args:
        request: the scope's copy.
        one: the stream.
        archive: the stream's archive.
        head: the archive's present head.
        source: the store of the stream, if it can be reached.

    Raises:
        ArchiveDamaged: a run's manifest is missing, or is not the recorded manifest.
    """
    wanted = request.run_of(*one)
    first = entry_of(head, wanted.copy_id)
    last = last_of(archive, head, wanted.copy_id) if request.move else first
    if head is None or last is None:
        return None
    name = StreamName(scope=request.source, stream=one.stream)
    if request.move and (source is None or source.configuration(name) is not None):
        return None
    size, events = head.added((first or last).run, last)
    gaps = [gap for segment in archive.manifest(last).segments for gap in segment.gaps]
    mine = {run.run for run in (first, last) if run is not None}
    return StreamResult(
        stream=one.stream,
        target=one.target,
        state=StreamState.COPIED,
        bytes=size,
        events=events,
        digest=last.sha256,
        lost=sum(gap.end - gap.start for gap in gaps if gap.run in mine),
    )
