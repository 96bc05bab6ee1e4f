"""Record the runs of a scope in the folder of its archives, and find the run to restore.

A record is made under the number after the last one, by a put that fails if that record exists. So
of two clients that record a run at once, each gets a number of its own.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from sluice.core.archive.documents import MOST_SHORT, decode, encode
from sluice.core.scope.runs import (
    MOST_RUNS,
    ScopeRun,
    ScopeRunStream,
    scope_run_name,
    scope_run_number,
)
from sluice.core.scope.scope import StreamState
from sluice.core.values.archive_layout import RUNS
from sluice.core.values.weight import weight_of_json
from sluice.engine.access.source_runs import root
from sluice.errors import ArchiveDamaged, ArchiveNotFound, ArchiveUnsupported, StoreBusy
from sluice.stores.allowance import held

if TYPE_CHECKING:
    from sluice.archive.runs.archive_root import ArchiveRoot
    from sluice.core.archive.retention import Retention
    from sluice.core.scope.request import RestoreFrom, ScopeRequest
    from sluice.core.workloads.answers import ScopeEnded
    from sluice.engine.access.source_runs import Place

_LAST: Final = 8
"""Records among which a run's own is looked for. That many copies into one folder end at once at
most: with more, a run may be recorded twice, which does no harm."""

_TRIES: Final = 20
"""Most times that another client may take the next number, before it is tried again later."""

_MOST_DROPPED: Final = 100
"""Most records that are deleted at once; the next run deletes more."""

_SHOWN: Final = 10
"""Most runs that a message lists."""


class RunRecords:
    """The records of a scope's runs in a folder of archives.

    Args:
        root: the place that holds the folder.
        folder: the folder's path.
        field: the field of the spec that has the path, for errors.
    """

    def __init__(self, root: ArchiveRoot, folder: str, *, field: str) -> None:
        self._objects = root.archive(folder, field=field).objects
        self._folder = folder
        self._field = field

    def numbers(self) -> list[int]:
        """Return the numbers of the recorded runs, in order."""
        found = (scope_run_number(one.name) for one in self._objects.list(RUNS))
        return sorted(one for one in found if one is not None)

    def next_key(self) -> str:
        """Return the key of the next run for a client that has no key: the number it will get.

        A run that was cut off has no record. So its next attempt gets the same key.
        """
        return f"run:{self._next(self.numbers())}"

    def find(self, request: ScopeRequest, ended: ScopeEnded) -> ScopeRun | None:
        """Return the record of this result of a run; None if it is not recorded.

        A run that was recorded with failed streams may be resumed, and archive them after all.
        """
        return self._find(_run_of(request, ended, 1), self.numbers())

    def record(self, request: ScopeRequest, ended: ScopeEnded, retention: Retention) -> int:
        """Record a run that is over, and delete the records that no rule keeps.

        Recording the same result again changes nothing.

        Args:
            request: the run.
            ended: its result; each archived stream has the SHA-256 of its run.
            retention: which runs are kept.

        Returns:
            The run's number.

        Raises:
            StoreBusy: other clients keep recording runs.
            ArchiveDamaged: another client has used up the numbers.
        """
        for _ in range(_TRIES):
            numbers = self.numbers()
            known = self._find(_run_of(request, ended, 1), numbers)
            if known is not None:
                self._drop(numbers, retention)
                return known.number
            number = self._next(numbers)
            if number >= MOST_RUNS:
                name = scope_run_name(number - 1)
                raise ArchiveDamaged(f"no run can follow {self._folder}/{name}", name=name)
            run = _run_of(request, ended, number, gone=self._gone(request, ended, numbers))
            self._objects.put_new(scope_run_name(number), encode(run))
        raise StoreBusy(f"other clients keep recording runs of the scope in {self._folder}")

    def chosen(self, wanted: RestoreFrom) -> ScopeRun | None:
        """Return the run of the scope to restore; None if the folder has no runs of a scope.

        Raises:
            ArchiveNotFound: no run fits.
            ArchiveDamaged, ArchiveUnsupported: its record cannot be read.
        """
        numbers = self.numbers()
        if wanted.run is not None:
            if wanted.run in numbers:
                return self._read(wanted.run)
            raise ArchiveNotFound(
                f"the folder {self._folder!r} has no run {wanted.run} of a scope; {_list(numbers)}",
                field=self._field.replace(".path", ".run"),
                remedy="Name one of these, or leave run out.",
            )
        for number in reversed(numbers):
            run = self._read(number)
            if run.is_complete and (wanted.until is None or run.end <= wanted.until):
                return run
        if not numbers:
            return None
        which = "" if wanted.until is None else " that ends by that time"
        raise ArchiveNotFound(
            f"the folder {self._folder!r} has no complete run of the scope{which}; "
            f"{_list(numbers)}",
            field=self._field if wanted.until is None else self._field.replace(".path", ".until"),
            remedy="Name a run in source.archive.run: the streams that it archived are restored. "
            "Or restore single streams by StreamCopies.",
        )

    def _next(self, numbers: list[int]) -> int:
        return numbers[-1] + 1 if numbers else 1

    def _find(self, wanted: ScopeRun, numbers: list[int]) -> ScopeRun | None:
        """Return the record of the same work and result; None if there is none."""
        for number in numbers[: -_LAST - 1 : -1]:
            run = self._readable(number)
            if run is not None and run.work == wanted.work:
                same = (run.streams, run.failed) == (wanted.streams, wanted.failed)
                return run if same else None
        return None

    def _gone(
        self, request: ScopeRequest, ended: ScopeEnded, numbers: list[int]
    ) -> tuple[str, ...]:
        """Return the streams of the last complete run before that this run has not any more."""
        now = {one.target for one in ended.results}
        for number in numbers[: -_LAST - 1 : -1]:
            run = self._readable(number)
            if run is None or run.work == request.scope_id or not run.is_complete:
                continue
            if run.maker is not None and run.maker.id == request.series:
                return tuple(one.stream for one in run.streams if one.stream not in now)
        return ()

    def _readable(self, number: int) -> ScopeRun | None:
        """Return the record of a run; None if it cannot be read. It keeps no later run away."""
        try:
            return self._read(number)
        except (ArchiveDamaged, ArchiveUnsupported):
            return None

    def _read(self, number: int) -> ScopeRun:
        """Return the record of a run.

        Raises:
            ArchiveDamaged: it is missing, too long or no record, or has another number.
            ArchiveUnsupported: a later version wrote it.
        """
        name = scope_run_name(number)
        data = self._objects.get(name, 0, MOST_SHORT + 1)
        if data is None or len(data) > MOST_SHORT:
            state = "missing" if data is None else "too long for a record"
            raise ArchiveDamaged(f"{self._folder}/{name} is {state}", name=name)
        with held(2 * weight_of_json(data)):
            run = decode(ScopeRun, data, name=name)
        if run.number != number:
            raise ArchiveDamaged(f"{self._folder}/{name} is of run {run.number}", name=name)
        return run

    def _drop(self, numbers: list[int], retention: Retention) -> None:
        """Delete the oldest records that no rule keeps.

        The last one stays, since the next run counts from it; so does the last complete one.
        """
        if not retention.has_rule:
            return
        old = numbers[: -max(1, retention.keep_last or 1)]
        last = self._readable(numbers[-1])
        if last is None:
            return
        since = None if retention.keep_seconds is None else last.end - retention.keep_seconds * 1000
        gone: list[ScopeRun] = []
        for number in old[:_MOST_DROPPED]:
            run = self._readable(number)
            if run is None or (since is not None and run.end >= since):
                break
            gone.append(run)
        complete = [run.number for run in gone if run.is_complete]
        if complete and not self._has_complete(numbers[len(gone) :]):
            gone = [run for run in gone if run.number != complete[-1]]
        self._objects.delete([scope_run_name(run.number) for run in gone])

    def _has_complete(self, numbers: list[int]) -> bool:
        runs = map(self._readable, reversed(numbers))
        return any(run is not None and run.is_complete for run in runs)


def restored_runs(request: ScopeRequest, source: Place) -> dict[str, str]:
    """Return the runs that a run of the scope has chosen for a restore.

    Returns:
        The SHA-256 of each run's manifest by the name of its stream. Nothing if the request
        restores no run of a scope.
    """
    if request.restore is None:
        return {}
    records = RunRecords(root(source), request.source, field="spec.source.archive.path")
    run = records.chosen(request.restore)
    return {} if run is None else {one.stream: one.sha256 for one in run.streams}


def records_of(request: ScopeRequest, target: Place) -> RunRecords:
    """Return the records of the scope's runs in the folder that a request archives to."""
    return RunRecords(root(target), request.target, field="spec.target.archive.path")


def _run_of(
    request: ScopeRequest, ended: ScopeEnded, number: int, *, gone: tuple[str, ...] = ()
) -> ScopeRun:
    """Return the record of a run that is over."""
    scope, results = ended.plan.scope, sorted(ended.results, key=lambda one: one.target)
    return ScopeRun(
        number=number,
        work=request.scope_id,
        maker=None if request.archive is None else request.archive.maker,
        begin=scope.begin,
        end=scope.end,
        gone=gone,
        streams=tuple(
            ScopeRunStream(stream=one.target, sha256=one.digest)
            for one in results
            if one.state is StreamState.COPIED and one.digest is not None
        ),
        failed=tuple(one.target for one in results if one.state is not StreamState.COPIED),
    )


def _list(numbers: list[int]) -> str:
    """List the last runs, for a message."""
    if not numbers:
        return "it has none"
    more = "..., " if len(numbers) > _SHOWN else ""
    return f"it has {more}{', '.join(map(str, numbers[-_SHOWN:]))}"
