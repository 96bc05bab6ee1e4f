"""Move a stream into an archive: archive it, seal it, archive the rest, and delete it.

The first run is made while writers still write, so that the stream is sealed for a short time only.
A last run archives what came until the sealing, even if that is nothing. Once the stream is gone,
this run of the sealed stream tells that the archive is complete. A stream that was sealed when its
first run began needs no last run.

A store seals and deletes streams by name. So the identity of the stream is checked directly before.
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
    from sluice.engine.tasks.limits import Limits
    from sluice.engine.tasks.slices import Slice, SliceResult
    from sluice.errors import SluiceError

_REST: Final = "rest"
"""The key of a move's last run, which archives what came until the stream was sealed."""


def rest_of(copy_id: str) -> str:
    """Return the identity of a move's last run, given the identity of its first run."""
    return run_id(copy_id, _REST)


def last_of(archive: Archive, head: Head | None, copy_id: str) -> RunEntry | None:
    """Return a move's run that holds all bytes of the sealed stream; None if it is not recorded.

    This is the move's last run, or its first run if the stream was already sealed then.

    Args:
        archive: the archive.
        head: the archive's present head.
        copy_id: the identity of the move's first run.

    Raises:
        ArchiveDamaged: the first run's manifest is missing, or is not the recorded manifest.
    """
    for one in reversed(head.runs if head else ()):
        if one.work == rest_of(copy_id):
            return one
        if one.work == copy_id and _is_sealed(archive.manifest(one)):
            return one
    return None


def _is_sealed(manifest: Manifest) -> bool:
    """Tell whether the stream and all its segments were sealed when the run took its bounds."""
    return manifest.sealed and all(one.sealed for one in manifest.segments)


class ArchiveMove:
    """A stream that is moved into an archive; see `engine.tasks.work.Work`.

    Args:
        first: the move's first run.

    Attributes:
        plan: the plan of the present run, the first or the last.
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

    @property
    def moving(self) -> int:
        """The bytes of the present run."""
        return self._run.moving

    def begin(self, *, permit: Callable[[], None] | None) -> ArchiveReport | None:
        """Start or resume the move.

        Returns:
            The report, if the stream is already moved; otherwise None.
        """
        if self._source.configuration(self.plan.source) is None:
            entry = self._entry()
            if entry is not None:
                return ArchiveReport.recorded(self.plan, entry)
        self._first = self._run.begin(permit=permit)
        return None

    def look(self) -> Step:
        """Observe the archive and the source, and decide the next step."""
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
        """Return the next slices of a step that moves bytes."""
        return self._run.slices(step, limits, slots)

    def absorb(self, step: Transfer | Verify, results: Sequence[SliceResult]) -> None:
        """Note results of slices in the archive."""
        self._run.absorb(step, results)

    def finished(self, digest: str) -> ArchiveReport:
        """Return the report of a moved stream, over all of the move's runs.

        Args:
            digest: SHA-256 of the last run's manifest.
        """
        first, last, head = self._first, self._last, self._archive.head()
        runs = head.runs if head else ()
        entry = next((one for one in runs if one.sha256 == digest), None)
        if head is None or entry is None or first is None or last is None:
            raise StoreUnavailable(f"the run {digest} was not seen")
        added, events = head.added(first.run or entry.run, entry)
        changes = {"added": added, "new_events": events, "lost": first.lost + last.lost}
        return last.model_copy(update=changes | {"outcome": first.outcome})

    def give_up(self) -> None:
        """Delete the notes of the present run."""
        self._run.give_up()

    def failed(self, error: SluiceError, *, cleaned: bool) -> ArchiveReport:
        """Return the report of a move that failed for good."""
        return self._run.failed(error, cleaned=cleaned)

    def let_go(self) -> None:
        """Release the lease, so that others may sweep while no driver works on the move."""
        self._run.let_go()

    def _drain(self) -> None:
        """Seal the stream, and begin the run of what came until then. Safe to repeat.

        Raises:
            SourceNotFound: the stream is gone.
            SourceReplaced: the stream is not the archived one. It was not sealed.
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
        self._last = run.begin(permit=None)
        self._run, self._draining = run, True

    def _leave(self) -> None:
        """Delete the stream. The decision rests on what the stores hold now, not on memory.

        Raises:
            SourceKept: the archive lacks the last run, or the stream has more bytes than that has.
                The stream is not deleted.
            SourceReplaced: the stream is not the archived one any more.
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
        """Raise SourceReplaced if the stream is not the one that the run archived."""
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
        """Return the move's last run, if it is recorded and was read back."""
        entry = last_of(self._archive, self._archive.head(), self._request.archive_id)
        return entry if entry is not None and entry.verified else None

    def _kept(self, why: str) -> SourceKept:
        return SourceKept(
            f"{self.plan.source} was archived and is not deleted: {why}",
            remedy="Look with `sluice archive inspect` what the archive holds of it, then delete "
            "it yourself.",
        )
