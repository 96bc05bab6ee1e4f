"""Archives of sources, their restores and a listing, on a warm Spark application."""

from __future__ import annotations

import time
from dataclasses import dataclass, replace
from enum import StrEnum
from typing import TYPE_CHECKING, Final
from uuid import uuid4

from bench.lab import BUCKET, SCOPE
from bench.model import EVENT_HEADER, BenchError, Run, Source
from bench.ours import PATIENCE, timed
from bench.usage import own_cpu_seconds
from sluice.config import Settings
from sluice.core.archive.names import Format
from sluice.core.archive.request import ArchiveRequest
from sluice.core.copy.planner import ArchiveChoice, CopyRequest, SourceRequest
from sluice.core.values.archive_layout import EVENTS
from sluice.core.values.model import StoreAddress, StreamName
from sluice.engine.access.connect import archives
from sluice.engine.archive.report import ArchiveReport
from sluice.engine.copy.report import Outcome, StreamReport
from sluice.engine.tasks.limits import Limits
from sluice.pipelines.programs.jobs import Job
from sluice.pipelines.programs.run import Tasks, run_plan
from sluice.pipelines.programs.stores import Stores

if TYPE_CHECKING:
    from bench.lab import Lab
    from bench.ours import Spark, Stopwatch
    from sluice.archive.runs.archive import Archive
    from sluice.core.archive.manifest import Manifest

WARM_UP: Final = Source.of_orders(48e6, segments=4)
"""The source that is archived before each run. A smaller one would be archived without Spark."""

_LOGIN: Final = "keys"
"""The name of the Secret with the gateway's keys."""


class Where(StrEnum):
    """The kind of place that holds an archive."""

    DIRECTORY = "directory"
    BUCKET = "bucket"


@dataclass(frozen=True, slots=True, kw_only=True)
class Archiving:
    """An archive of a whole source.

    Attributes:
        name: the side's name within its phase.
        source: the source to archive.
        spark: the Spark application.
        form: the archive's format.
        where: the archive's kind of place.
        slots: tasks at once.
        fresh: whether each run gets new Python workers, so that it alone accounts for their memory.
    """

    name: str
    source: Source
    spark: Spark
    form: Format = Format.SEGMENTS
    where: Where = Where.DIRECTORY
    slots: int = 2
    fresh: bool = False

    def prepare(self, lab: Lab) -> None:
        """Start Spark and its workers, and let them open their connections."""
        lab.source(self.source)
        self.spark.context(self.slots, fresh=self.fresh)
        with lab.target(WARM_UP) as target:
            warm = replace(self, source=WARM_UP, form=Format.SEGMENTS)
            warm.make(lab, target)

    def run(self, lab: Lab, target: str) -> Run:
        """Archive, from planning to the deletion of the last note."""
        run = timed(self.spark, lambda watch: self.make(lab, target, watch))
        manifest = _last(_archive(lab, self.where, target))
        return replace(run, stored=sum(one.size for one in manifest.objects))

    def make(self, lab: Lab, path: str, watch: Stopwatch | None = None) -> int:
        """Archive the source at a path and return its bytes."""
        address = StoreAddress(uri=lab.uri)
        request = ArchiveRequest(
            archive_id=uuid4().hex,
            source=StreamName(scope=SCOPE, stream=lab.source(self.source)),
            store=lab.uri,
            path=path,
            format=self.form,
        )
        job = Job(
            name=path,
            request=request,
            sources=(address,),
            target=_address(lab, self.where),
            limits=Limits(),
        )
        with Stores(_settings(lab)) as stores:
            plan = job.plan(stores).plan
            if plan is None:
                raise BenchError(f"{path} was archived before")
            report = run_plan(
                plan,
                stores,
                Tasks(spark=lambda: self.spark.current, settings=_settings(lab)),
                limits=lambda: job.limits,
                listener=watch,
                patience=PATIENCE,
            )
        if not isinstance(report, ArchiveReport):
            raise BenchError(f"a run of an archive has a {type(report).__name__}")
        if report.outcome is not Outcome.ARCHIVED or report.bytes != self.source.bytes:
            raise BenchError(f"no archive of {self.source}: {report.error or report.outcome}")
        if report.events != self.source.events:
            raise BenchError(f"{report.events} events of {self.source} were archived")
        return report.bytes


@dataclass(frozen=True, slots=True, kw_only=True)
class Restoring:
    """A restore of an archive. The archive is made once for each server.

    Attributes:
        name: the side's name within its phase.
        archive: the side that makes the archive.
    """

    name: str
    archive: Archiving

    @property
    def source(self) -> Source:
        """The source that is restored."""
        return self.archive.source

    def prepare(self, lab: Lab) -> None:
        """Make the archive, and let Spark's workers open their connections."""
        self.archive.prepare(lab)
        _made(lab, self.archive)

    def run(self, lab: Lab, target: str) -> Run:
        """Restore, from planning to the target's last configuration."""
        return timed(self.archive.spark, lambda watch: self._restore(lab, target, watch))

    def _restore(self, lab: Lab, target: str, watch: Stopwatch) -> int:
        place = _address(lab, self.archive.where)
        path = _made(lab, self.archive)
        wanted = SourceRequest(
            stream=StreamName(scope=place.uri, stream=path), archive=ArchiveChoice(path=path)
        )
        request = CopyRequest(
            copy_id=uuid4().hex,
            sources=(wanted,),
            target=StreamName(scope=SCOPE, stream=target),
            tasks=self.archive.slots,
        )
        job = Job(
            name=target,
            request=request,
            sources=(place,),
            target=StoreAddress(uri=lab.uri),
            limits=Limits(),
        )
        with Stores(_settings(lab)) as stores:
            plan = job.plan(stores).plan
            if plan is None:
                raise BenchError(f"{target} was there before")
            report = run_plan(
                plan,
                stores,
                Tasks(spark=lambda: self.archive.spark.current, settings=_settings(lab)),
                limits=lambda: job.limits,
                listener=watch,
                patience=PATIENCE,
            )
        if not isinstance(report, StreamReport):
            raise BenchError(f"a restore has a {type(report).__name__}")
        if report.outcome is not Outcome.COPIED or report.bytes != self.source.bytes:
            raise BenchError(f"no restore of {self.source}: {report.error or report.outcome}")
        return report.bytes


@dataclass(frozen=True, slots=True, kw_only=True)
class Listing:
    """A listing of consecutive events of an archive that holds more.

    Attributes:
        name: the side's name within its phase.
        archive: the side that makes the archive, of one segment.
        skipped: number of events before the first listed event.
        listed: number of listed events.
    """

    name: str
    archive: Archiving
    skipped: int
    listed: int

    @property
    def source(self) -> Source:
        """The source that was archived."""
        return self.archive.source

    def prepare(self, lab: Lab) -> None:
        """Make the archive."""
        if self.archive not in lab.kept:
            self.archive.prepare(lab)
        _made(lab, self.archive)

    def run(self, lab: Lab, target: str) -> Run:
        """List the events and check their names."""
        del target
        archive = _archive(lab, self.archive.where, _made(lab, self.archive))
        (segment,) = _last(archive).segments
        folder = f"{EVENTS}{segment.epoch:08x}/{segment.id:016x}/"
        frame = self.source.size + EVENT_HEADER
        cpu, begin = own_cpu_seconds(), time.monotonic()
        found = archive.objects.list(EVENTS, after=f"{folder}{self.skipped * frame:016x}")
        names = [one.name for one, _ in zip(found, range(self.listed), strict=False)]
        end = time.monotonic()
        places = range(self.skipped * frame, (self.skipped + self.listed) * frame, frame)
        if names != [f"{folder}{place:016x}-{self.source.size:08x}" for place in places]:
            raise BenchError(f"{len(names)} other names were listed")
        return Run(seconds=end - begin, bytes=self.listed * frame, cpu=own_cpu_seconds() - cpu)


def _made(lab: Lab, archive: Archiving) -> str:
    """Return the path of an archive that is kept as long as the server. Make it if needed."""
    if archive not in lab.kept:
        path = f"kept-{len(lab.kept)}"
        archive.make(lab, path)
        lab.kept[archive] = path
    return lab.kept[archive]


def _archive(lab: Lab, where: Where, path: str) -> Archive:
    return archives(_address(lab, where), _settings(lab)).archive(path)


def _last(archive: Archive) -> Manifest:
    head = archive.head()
    if head is None:
        raise BenchError("the archive has no run")
    return archive.manifest(head.runs[-1])


def _address(lab: Lab, where: Where) -> StoreAddress:
    if where is Where.DIRECTORY:
        return StoreAddress(backend="volume", uri=lab.folder.as_uri())
    return StoreAddress(
        backend="s3", uri=f"s3://{BUCKET}", endpoint=lab.gateway.endpoint, secret=_LOGIN
    )


def _settings(lab: Lab) -> Settings:
    """Return the settings of a process that has the gateway's keys."""
    keys = lab.folder / "credentials" / _LOGIN
    if not keys.is_dir():
        keys.mkdir(parents=True)
        (keys / "accessKeyId").write_text(lab.gateway.access)
        (keys / "secretAccessKey").write_text(lab.gateway.secret)
    return Settings(credentials_dir=keys.parent)
