"""Moving a stream into an archive: archived, sealed, archived to its end, and then deleted.

What is there is archived first, while writers still write, so that the stream is sealed for as
short as possible. What came until then is another run, and be it nothing: a run of the sealed
stream is what tells everybody, once the stream is gone, that its archive has all of it. One that
was sealed when its first run began needs no other. A store seals and deletes streams by name, so it
is looked directly before whether the stream is the one that was archived.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from sluice.core.archive.request import run_id
from sluice.core.copy.steps import DeleteSource, Done, DrainSource
from sluice.engine.access.source_runs import writable
from sluice.engine.archive.archive_run import ArchiveCopy
from sluice.engine.archive.planning import begun, make_archive_plan, request_of
from sluice.engine.archive.report import ArchiveReport
from sluice.errors import SourceKept, SourceNotFound, SourceReplaced, StoreUnavailable

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from sluice.archive.runs.archive import Archive
    from sluice.core.archive.head import Head, RunEntry
    from sluice.core.archive.manifest import Manifest
    from sluice.core.copy.steps import Step, Transfer, Verify
    from sluice.engine.rounds.limits import Limits
    from sluice.engine.rounds.slices import Slice, SliceResult
    from sluice.errors import SluiceError

_REST: Final = "rest"
"""The key of the run that follows on a move's first one: what came until the stream was sealed."""


def rest_of(copy_id: str) -> str:
    """The identity of the last run of a move, by that of its first one."""
    return run_id(copy_id, _REST)


def last_of(archive: Archive, head: Head | None, copy_id: str) -> RunEntry | None:
    """The run of a move that holds all that the stream will ever have, if it is recorded.

    That is the one of what came until it was sealed, or the first one of one that was sealed then.

    Args:
        archive: where.
        head: of that, as it is now.
        copy_id: the identity of the move's first run.

    Raises:
        ArchiveDamaged: the first run is there, and its manifest is not what was recorded.
    """
    for one in reversed(head.runs if head else ()):
        if one.work == rest_of(copy_id):
            return one
        if one.work == copy_id and _is_sealed(archive.manifest(one)):
            return one
    return None


def _is_sealed(manifest: Manifest) -> bool:
    """Whether nothing can have come behind what a run has of the stream."""
    return manifest.sealed and all(one.sealed for one in manifest.segments)


class ArchiveMove:
    """A stream that is moved into an archive; see `engine.rounds.work.Work`.

    Args:
        first: its first run.

    Attributes:
        plan: what is archived now.
        number, sources: see ArchiveCopy.
    """

    def __init__(self, first: ArchiveCopy) -> None:
        self.plan = first.plan
        self.number = first.number
        self.sources = first.sources
        self._source = writable(first.sources[first.plan.store])
        self._archive = first.archive
        self._request = request_of(first.plan).model_copy(update={"run_key": _REST})
        self._run = first
        self._draining = False
        self._first: ArchiveReport | None = None
        self._last: ArchiveReport | None = None

    def begin(self, *, late: bool, permit: Callable[[], None] | None) -> ArchiveReport | None:
        """Take up the move where it is.

        Returns:
            The report of a stream that is moved already.
        """
        if self._source.configuration(self.plan.source) is None:
            entry = self._entry()
            if entry is not None:
                return ArchiveReport.recorded(self.plan, entry)
        self._first = self._run.begin(late=late, permit=permit)
        return None

    def look(self) -> Step:
        """Observe, and decide the next step."""
        if self._last is None and (self._draining or self._first is None):
            step = self._run.look()
            self.plan = self._run.plan
            if not isinstance(step, Done):
                return step
            report = self._run.finished(step.digest)
            if self._draining:
                self._last = report
            else:
                self._first = report
        if self._last is None:
            return DrainSource()
        if self._source.configuration(self.plan.source) is not None:
            return DeleteSource()
        return Done(self._last.digest or "")

    def perform(self, step: Step) -> None:
        """Carry out a step that moves no bytes."""
        match step:
            case DrainSource():
                self._drain()
            case DeleteSource():
                self._leave()
            case _:
                self._run.perform(step)

    def slices(self, step: Transfer | Verify, limits: Limits, slots: int) -> list[Slice]:
        """The slices of a step that moves bytes, for one round."""
        return self._run.slices(step, limits, slots)

    def absorb(self, step: Transfer | Verify, results: Sequence[SliceResult]) -> None:
        """Write down what a round has brought."""
        self._run.absorb(step, results)

    def finished(self, digest: str) -> ArchiveReport:
        """The report of a stream that is moved, whose last run has that digest: of all runs."""
        first, last, head = self._first, self._last, self._archive.head()
        runs = head.runs if head else ()
        entry = next((one for one in runs if one.sha256 == digest), None)
        if head is None or entry is None or first is None or last is None:
            raise StoreUnavailable(f"the run {digest} was not seen")
        added, events = head.added(first.run or entry.run, entry)
        changes = {"added": added, "new_events": events, "lost": first.lost + last.lost}
        return last.model_copy(update=changes | {"outcome": first.outcome})

    def give_up(self) -> None:
        """Forget what the run has got so far that is made now."""
        self._run.give_up()

    def failed(self, error: SluiceError, *, cleaned: bool) -> ArchiveReport:
        """The report of what failed for good."""
        return self._run.failed(error, cleaned=cleaned)

    def let_go(self) -> None:
        """Let others sweep while nobody goes on with it."""
        self._run.let_go()

    def _drain(self) -> None:
        """Seal the stream, and begin with what came until then. Safe to repeat.

        Raises:
            SourceNotFound, SourceReplaced: it is not there, or another one. It was not sealed then.
        """
        name = self.plan.source
        if self._source.describe(name) is None:
            raise SourceNotFound(f"{name} is gone: it was deleted before it was moved")
        head = self._archive.head()
        if head is None:
            raise StoreUnavailable(f"the run of {self.plan.path} was not seen")
        self._check_same(self._archive.manifest(head.runs[-1]))
        self._source.seal_stream(name)
        noted = begun(self._request, self._archive).plan
        entry = None if noted else self._entry()
        if entry is not None:
            self._last = ArchiveReport.recorded(self._request, entry)
            return
        plan = noted or make_archive_plan(self._request, self._source, self._archive)
        run = ArchiveCopy(plan, self.sources, self._archive, self.number)
        self._last = run.begin(late=True, permit=None)
        self._run, self._draining = run, True

    def _leave(self) -> None:
        """Delete the stream. What the stores hold decides, and nothing that a driver remembers.

        Raises:
            SourceKept: the archive lacks something, or the stream has more; it is not deleted.
            SourceReplaced: it is another one by now.
        """
        name, source = self.plan.source, self._source
        entry = self._entry()
        if entry is None:
            raise self._kept("its last run is not in the archive any more")
        manifest = self._archive.manifest(entry)
        stream = source.describe(name)
        if stream is None:
            return
        self._check_same(manifest)
        known = {segment.id: segment for segment in manifest.segments}
        made = [one.id for segments in source.generations(name) for one in segments]
        if not (stream.sealed and manifest.sealed and known.keys() >= set(made)):
            raise self._kept("it was written to after it was sealed")
        names = [source.segment_name(name, one) for one in known]
        for segment, info in zip(known.values(), source.infos(names), strict=True):
            if info is not None and not (info.sealed and info.length == segment.end):
                what = f"segment {segment.id} ends at {info.length}, not at {segment.end}"
                raise self._kept(what)
        source.delete_stream(name)

    def _check_same(self, manifest: Manifest) -> None:
        """Refuse a stream that is not the one of a run. SourceReplaced."""
        name, source = self.plan.source, self._source
        known = {segment.id: segment.created for segment in manifest.segments}
        last = [one.segment for one in manifest.end.offsets]
        asked = [(source.segment_name(name, one), source.creation_time) for one in last]
        found = [
            when == known[one]
            for one, when in zip(last, source.attributes(asked), strict=True)
            if when is not None
        ]
        if not (all(found) if found else source.had(name, last[0])):
            raise SourceReplaced(f"{name} was deleted and made again, and is left as it is")

    def _entry(self) -> RunEntry | None:
        """The last run, if it is recorded and was read back."""
        entry = last_of(self._archive, self._archive.head(), self._request.archive_id)
        return entry if entry is not None and entry.verified else None

    def _kept(self, why: str) -> SourceKept:
        return SourceKept(
            f"{self.plan.source} was archived and is not deleted: {why}",
            remedy="Look with `sluice archive inspect` what the archive holds of it, then delete "
            "it yourself.",
        )
