"""Plan a scope's restore: each archive in a folder is the source of one stream."""

from __future__ import annotations

from functools import cached_property
from typing import TYPE_CHECKING, Final

from sluice.archive.runs.archive import find_run
from sluice.core.archive.head import RunEntry
from sluice.core.copy.planner import part_size
from sluice.core.scope import selection
from sluice.core.scope.scope import StreamResult, Why
from sluice.core.values.archive_layout import below
from sluice.engine.access import parallel
from sluice.engine.access.source_runs import open_run, pin
from sluice.engine.copy.planning import make_plan
from sluice.engine.scope.planners.base import failed, is_for_all, refuse_too_many
from sluice.engine.scope.planners.copies import ToScope
from sluice.engine.scope.run_records import RunRecords
from sluice.errors import ArchiveNotFound, InvalidSpec, SluiceError

if TYPE_CHECKING:
    from collections.abc import Collection, Mapping, Sequence

    from sluice.archive.runs.archive_root import ArchiveRoot
    from sluice.core.archive.head import Head
    from sluice.core.copy.plan import StreamPlan
    from sluice.core.scope.request import RestoreFrom, ScopeRequest
    from sluice.core.scope.scope import ScopePlan
    from sluice.core.scope.selection import Choice
    from sluice.engine.scope.planners.base import Fresh
    from sluice.stores.base import Store

    _Found = RunEntry | Why | SluiceError
    """The run of an archive to read, why it has none to read, or why that is not known."""


FOLDER_FIELD: Final = "spec.source.archive.path"

_OTHER_RUN: Final = (
    "Restore another run of the scope, by spec.source.archive.run, or restore without this stream."
)
_REMEDY: Final = "Take a later spec.source.archive.until, or restore without this stream."


class RestorePlanner(ToScope):
    """A planner for the restore of archives in a folder to a scope.

    Args:
        request: the copy to plan.
        wanted: which runs to read.
        source: the place that holds the folder.
        target: the store to write to.
        earlier: the plan of the run before, which has chosen; None to choose.
    """

    def __init__(
        self,
        request: ScopeRequest,
        wanted: RestoreFrom,
        source: ArchiveRoot,
        target: Store,
        *,
        earlier: ScopePlan | None = None,
    ) -> None:
        super().__init__(request)
        self._earlier = earlier
        self.restored = None if earlier is None else earlier.restored
        self.target = target
        self._wanted = wanted
        self._root = source
        self._found: dict[str, _Found] = {}
        self._records = RunRecords(source, request.source, field=FOLDER_FIELD)

    @cached_property
    def _run(self) -> Mapping[str, str] | None:
        """The SHA-256 of the run of each archive, in the run of the scope that is restored.

        None if the folder has no runs of a scope, or had none when the restore was planned first.
        """
        if self._earlier is not None and self.restored is None:
            return None  # a run that was recorded since has other streams, and other bytes
        run = self._records.chosen(self._wanted, pinned=self.restored)
        if run is None:
            return None
        self.restored = run.number
        return {one.stream: one.sha256 for one in run.streams}

    def choose(self, *, one_store: bool) -> Choice:
        """Choose the archives of the folder that the request selects. Ignore other content.

        Raises:
            ArchiveNotFound: there are no archives in the folder.
            InvalidSpec, PlanTooLarge: see ScopePlanner.
        """
        request = self.request
        names = self._archives()
        tagged = {tag: self._tagged(tag) for tag in selection.tags_of(request)}
        wanted = selection.selected(names, tagged=tagged, request=request)
        left = {name: found for name in wanted if isinstance(found := self._found[name], Why)}
        refuse_too_many(len(wanted) - len(left))
        return selection.choose(
            names, tagged=tagged, left=left, request=request, one_store=one_store
        )

    def look_at(self, streams: Sequence[str]) -> None:
        """Find the run to read of each of these archives.

        If the scope's run that an earlier plan has chosen cannot be read, each of them fails.
        """
        try:
            _ = self._run
        except SluiceError as error:
            if is_for_all(error):
                raise
            self._found |= dict.fromkeys(streams, error)
            return
        found = parallel.each_once("look", self._look, streams, key=str)
        gone = ArchiveNotFound("the archive is not there any more")
        self._found |= {
            name: gone if one is None else one for name, one in zip(streams, found, strict=True)
        }

    def tables(self) -> list[str]:
        """Return no tables, since archives have none."""
        return []

    def bind(self, fresh: Sequence[Fresh]) -> None:
        """Plan the copies of streams. Their bounds are those that each run was recorded with."""
        ready: list[tuple[Fresh, RunEntry]] = []
        for one in fresh:
            match self._found[one.chosen.stream]:
                case RunEntry() as entry:
                    ready.append((one, entry))
                case SluiceError() as error:
                    self.fail(one.chosen, error)
                case why:
                    self.fail(one.chosen, _none(self._path(one.chosen.stream), why))
        total = sum(entry.bytes for _, entry in ready)
        size = part_size(total, self.request.tasks, self.request.part_bytes)
        self._take()
        for found in parallel.each(lambda pair: self._plan(*pair, size), ready):
            if isinstance(found, StreamResult):
                self.settled.append(found)
            else:
                self.plans.append(found)
        self._take()

    def _archives(self) -> list[str]:
        """Return the names of the archives in the folder, and note the run to read of each.

        Raises:
            ArchiveNotFound: there are no archives in the folder.
            InvalidSpec: the folder is an archive itself.
        """
        folder = self.request.source
        if self._root.archive(folder, field=FOLDER_FIELD).head() is not None:
            raise InvalidSpec(
                f"{folder or 'the place'} is an archive, and not a folder of archives",
                field=FOLDER_FIELD,
                remedy="Restore it with a StreamCopy, or name the folder that it lies in.",
            )
        names = sorted({*self._root.names(folder), *(self._run or ())})
        found = dict(zip(names, parallel.each(self._look, names), strict=True))
        self._found = {name: one for name, one in found.items() if one is not None}
        if not self._found:
            raise ArchiveNotFound(
                f"there are no archives in the folder {folder!r} of {self._root.uri}",
                field=FOLDER_FIELD,
            )
        return list(self._found)

    def _look(self, name: str) -> _Found | None:
        """Find the run of an archive to read. Return None if there is no archive of the name."""
        archive, until = self._root.archive(self._path(name)), self._wanted.until
        try:
            head = archive.head()
            if self._run is not None:
                return _of_run(head, self._run.get(name), self._path(name))
            if head is None:
                return None
            if until is None or head.runs[0].time <= until:
                return find_run(head, until=until)
            begin = archive.manifest(head.runs[0]).begin.time
        except SluiceError as error:
            if is_for_all(error):
                raise
            return error
        return Why.LATER if until < begin else _let_go(self._path(name))

    def _tagged(self, tag: str) -> Collection[str]:
        """Return the archives whose stream had a tag.

        An archive whose tags cannot be read is among them, so that it is reported as failed.
        """
        return {
            name
            for name, tags in zip(
                self._found, parallel.each(self._tags, [*self._found.items()]), strict=True
            )
            if tags is None or tag in tags
        }

    def _tags(self, found: tuple[str, _Found]) -> tuple[str, ...] | None:
        """Return the tags of an archive's stream; None if they cannot be read."""
        name, entry = found
        if not isinstance(entry, RunEntry):
            return None if isinstance(entry, SluiceError) else ()
        try:
            return open_run(self._root, self._path(name), entry).manifest.config.tags
        except SluiceError as error:
            if is_for_all(error):
                raise
            return None

    def _plan(self, one: Fresh, entry: RunEntry, part_bytes: int) -> StreamPlan | StreamResult:
        """Return the plan of a stream, or the failed result if it cannot be restored."""
        wanted = self.request.of(*one.chosen)
        (source,) = wanted.sources
        try:
            run = open_run(self._root, self._path(one.chosen.stream), entry)
            pinned = pin(source, run, wanted.on_truncation)
            changes = {"sources": (pinned,), "part_bytes": part_bytes, "tasks": 1}
            return make_plan(wanted.model_copy(update=changes), [run], append=one.append)
        except SluiceError as error:
            if is_for_all(error):
                raise
            return failed(*one.chosen, error)

    def _path(self, name: str) -> str:
        return below(self.request.source, name)


def _of_run(head: Head | None, sha256: str | None, path: str) -> _Found | None:
    """Find the run of an archive that a run of the scope has recorded.

    Args:
        head: the archive's head.
        sha256: the SHA-256 of the run; None if the run of the scope did not add to the archive.
        path: the archive's path.
    """
    if sha256 is None:
        return None if head is None else Why.NOT_IN_RUN
    if head is None:
        return ArchiveNotFound(f"there is no archive at {path} any more", remedy=_OTHER_RUN)
    found = next((one for one in head.runs if one.sha256 == sha256), None)
    if found is not None:
        return found
    what = f"the run of the archive at {path} that the run of the scope had made was let go"
    return ArchiveNotFound(what, remedy=_OTHER_RUN)


def _none(path: str, why: Why) -> ArchiveNotFound:
    """Return the error that an archive begins after the wanted time, or got no run then."""
    if why is Why.NOT_IN_RUN:
        what = f"the run of the scope that is restored did not add to the archive at {path}"
        return ArchiveNotFound(what, remedy=_OTHER_RUN)
    return ArchiveNotFound(f"the archive at {path} begins after that time", remedy=_REMEDY)


def _let_go(path: str) -> ArchiveNotFound:
    """Return the error that an archive's runs up to the wanted time were let go."""
    what = f"the runs of the archive at {path} up to that time were let go"
    return ArchiveNotFound(what, remedy=_REMEDY)
