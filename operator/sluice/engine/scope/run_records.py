"""Record the runs of a scope in the folder of its archives, and find the run to restore.

A record is made under the number after the last one, by a put that fails if that record exists. So
of two clients that record a run at once, each gets a number of its own.
"""

from __future__ import annotations

from bisect import bisect_right
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
from sluice.errors import (
    ArchiveDamaged,
    ArchiveNotFound,
    ArchiveUnsupported,
    InvalidSpec,
    StoreBusy,
)
from sluice.stores.allowance import held

if TYPE_CHECKING:
    from collections.abc import Iterator

    from sluice.archive.runs.archive_root import ArchiveRoot
    from sluice.core.archive.retention import Retention
    from sluice.core.scope.request import RestoreFrom, ScopeRequest
    from sluice.core.workloads.answers import ScopeEnded

_LAST: Final = 8
"""Records among which a run's own is looked for. That many copies into one folder end at once at
most: with more, a run may be recorded twice, which does no harm."""

_TRIES: Final = 20
"""Most times that another client may take the next number, before it is tried again later."""

_MOST_DROPPED: Final = 100
"""Most records that are deleted at once; the next run deletes more."""

_MOST_READ: Final = 64
"""Most records that are read to find one. Other clients may write records without end."""

_SHOWN: Final = 10
"""Most runs that a message lists."""

_NAME_A_RUN: Final = "Name a run in source.archive.run: the streams that it archived are restored."


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
                self._drop(numbers, retention, request.series)
                return known.number
            number = self._next(numbers)
            if number >= MOST_RUNS:
                name = scope_run_name(number - 1)
                raise ArchiveDamaged(f"no run can follow {self._folder}/{name}", name=name)
            run = _run_of(request, ended, number, gone=self._gone(request, ended, numbers))
            self._objects.put_new(scope_run_name(number), encode(run))
        raise StoreBusy(f"other clients keep recording runs of the scope in {self._folder}")

    def chosen(self, wanted: RestoreFrom, *, pinned: int | None = None) -> ScopeRun | None:
        """Return the run of the scope to restore; None if the folder has no runs of a scope.

        Args:
            wanted: the choice.
            pinned: the number of the run that an earlier plan has chosen, which holds then.

        Raises:
            ArchiveNotFound: no run fits, or the earlier plan's run has no record any more.
            InvalidSpec: runs of several resources fit.
            ArchiveDamaged, ArchiveUnsupported: a record cannot be read.
        """
        numbers = self.numbers()
        if pinned is not None or wanted.run is not None:
            return self._numbered(numbers, wanted, pinned)
        if not numbers:
            return None
        fits = self._fitting(numbers, wanted.until)
        if len(fits) > 1:
            raise self._several(fits)
        if fits:
            return fits[0]
        which = "" if wanted.until is None else " that ends by that time"
        among = f" among the last {_MOST_READ} looked at" if len(numbers) > _MOST_READ else ""
        raise ArchiveNotFound(
            f"the folder {self._folder!r} has no complete run of the scope{which}{among}; "
            f"{_list(numbers)}",
            field=self._run_field if wanted.until is None else self._of_source("until"),
            remedy=f"{_NAME_A_RUN} Or restore single streams by StreamCopies.",
        )

    def last_complete(self, series: str) -> ScopeRun | None:
        """Return the last complete run of a resource; None if it has none.

        Raises:
            StoreBusy: it is not among the last records, and there are too many to read them all.
        """
        numbers = self.numbers()
        for run in self._from_newest(numbers):
            if run.series == series and run.is_complete:
                return run
        if len(numbers) > _MOST_READ:
            raise StoreBusy(
                f"the last {_MOST_READ} runs of a scope in {self._folder} have no complete one of "
                "this resource, and older ones are not looked at"
            )
        return None

    @property
    def _run_field(self) -> str:
        return self._of_source("run")

    def _of_source(self, name: str) -> str:
        """Return the field of a name beside that of the path."""
        return f"{self._field.removesuffix('.path')}.{name}"

    def _numbered(self, numbers: list[int], wanted: RestoreFrom, pinned: int | None) -> ScopeRun:
        """Return the run of a number.

        Raises:
            ArchiveNotFound: it has no record.
            ArchiveDamaged, ArchiveUnsupported: its record cannot be read.
        """
        number = wanted.run if pinned is None else pinned
        if number is not None and number in numbers:
            return self.read(number)
        if pinned is not None:
            raise ArchiveNotFound(
                f"this restore is of run {pinned} of the scope, whose record is not in the folder "
                f"{self._folder!r} any more; {_list(numbers)}",
                field=self._field,
                remedy="Restore another run by a new ScopeCopy, into a scope of its own.",
            )
        raise ArchiveNotFound(
            f"the folder {self._folder!r} has no run {number} of a scope; {_list(numbers)}",
            field=self._run_field,
            remedy="Name one of these, or leave run out.",
        )

    def _fitting(self, numbers: list[int], until: int | None) -> list[ScopeRun]:
        """Return the last complete run up to a time of each resource, the newest first.

        Raises:
            ArchiveDamaged, ArchiveUnsupported: a record cannot be read. It may be of the last run.
        """
        found: dict[str | None, ScopeRun] = {}
        try:
            if until is not None and len(numbers) > _MOST_READ:
                # Runs that are made at once may be recorded in another order than that of their
                # ends.
                place = bisect_right(numbers, until, key=lambda one: self.read(one).end)
                numbers = numbers[: place + _LAST]
            for number in numbers[: -_MOST_READ - 1 : -1]:
                run = self.read(number)
                if run.is_complete and (until is None or run.end <= until):
                    found.setdefault(run.series, run)
        except (ArchiveDamaged, ArchiveUnsupported) as error:
            error.field, error.remedy = self._run_field, f"{_NAME_A_RUN} {error.remedy}"
            raise
        return list(found.values())

    def _several(self, fits: list[ScopeRun]) -> InvalidSpec:
        """Return the error that runs of several resources fit."""
        names = [
            f"run {run.number} of {'an unknown maker' if run.maker is None else run.maker.name}"
            for run in fits[:_SHOWN]
        ]
        more = f" and {len(fits) - _SHOWN} more" if len(fits) > _SHOWN else ""
        return InvalidSpec(
            f"several resources archive into the folder {self._folder!r}, and their last complete "
            f"runs are {', '.join(names)}{more}",
            field=self._run_field,
            remedy=_NAME_A_RUN,
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
        for run in self._from_newest(numbers):
            if run.work == request.scope_id or not run.is_complete:
                continue
            if run.series is not None and run.series == request.series:
                return tuple(one.stream for one in run.streams if one.stream not in now)
        return ()

    def _readable(self, number: int) -> ScopeRun | None:
        """Return the record of a run; None if it cannot be read. It keeps no later run away."""
        try:
            return self.read(number)
        except (ArchiveDamaged, ArchiveUnsupported):
            return None

    def read(self, number: int) -> ScopeRun:
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

    def _from_newest(self, numbers: list[int], most: int = _MOST_READ) -> Iterator[ScopeRun]:
        """Yield the records that can be read, of so many numbers at most, the newest first."""
        for number in numbers[: -most - 1 : -1]:
            run = self._readable(number)
            if run is not None:
                yield run

    def _drop(self, numbers: list[int], retention: Retention, series: str | None) -> None:
        """Delete old records of a resource that no rule keeps.

        Its last one stays, and its last complete one. So do records of other resources, and those
        that cannot be read. If there are too many of these, nothing is deleted.
        """
        if not retention.has_rule:
            return
        kept, complete = self._kept(numbers, retention.keep_last or 1, series)
        if not kept:
            return
        old = [one for one in numbers if one < kept[-1].number]
        # By their age, the oldest ones go; by their number, those before the last one that is kept.
        since, look = 0, old[: -_MOST_DROPPED - 1 : -1]
        if retention.keep_seconds is not None:
            since, look = kept[0].end - retention.keep_seconds * 1000, old[:_MOST_DROPPED]
        gone: list[int] = []
        for run in filter(None, map(self._readable, look)):
            if run.series != series:
                continue
            if retention.keep_seconds is not None and run.end >= since:
                break
            if not run.is_complete or complete not in {None, run.number}:
                gone.append(run.number)
        self._objects.delete([scope_run_name(number) for number in gone])

    def _kept(
        self, numbers: list[int], least: int, series: str | None
    ) -> tuple[list[ScopeRun], int | None]:
        """Return the last records of a resource, and the number of its last complete one.

        Returns:
            The records, the newest first; nothing if so many were not found. The number is None if
            there is none among the records that were read.
        """
        kept: list[ScopeRun] = []
        complete: int | None = None
        for run in self._from_newest(numbers, least + _MOST_READ):
            if run.series != series:
                continue
            if len(kept) < least:
                kept.append(run)
            if run.is_complete and complete is None:
                complete = run.number
            if len(kept) == least and complete is not None:
                break
        return (kept if len(kept) == least else []), complete


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
