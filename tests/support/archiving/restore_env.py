"""An archive in memory, and restores from it into the model store."""

from __future__ import annotations

from typing import TYPE_CHECKING

from sluice.archive.runs.archive import Archive
from sluice.archive.runs.archive_root import ArchiveRoot
from sluice.core.archive.names import Format
from sluice.core.copy.plan import StreamPlan, pinned
from sluice.core.copy.planner import ArchiveChoice, CopyRequest, SourceRequest
from sluice.core.values.model import RetentionType, StreamConfig, StreamRetention
from sluice.core.workloads.plan import StreamCopyPlan
from sluice.engine.copy.planning import resolve
from sluice.engine.tasks.executor import InlineExecutor
from support.archiving.archives import START, Source, take
from support.engine.plans import ADDRESS, COPY, SOURCE, TARGET
from support.engine.runners import copy_runner
from support.engine.sources import ManualClock
from support.model import ModelStore, World
from support.model.memory_objects import MemoryObjects

if TYPE_CHECKING:
    from sluice.engine.copy.report import StreamReport
    from sluice.engine.tasks.runner import Runner

PATH = "team/orders"


SIZES = [200, 0, 3000, 17] * 5


BLOCK = 1 << 20


class Env:
    """An archive in memory, its source stream, and a world to restore it into.

    Args:
        form: the archive's format.
    """

    def __init__(self, form: Format = Format.SEGMENTS) -> None:
        self.form = form
        self.now = START / 1000
        self.objects = MemoryObjects(clock=lambda: self.now)
        self.archive = Archive(self.objects)
        self.source = Source()
        self.world = World()
        self.then: list[list[bytes]] = []

    @property
    def root(self) -> ArchiveRoot:
        """The root with the archive at PATH, and nothing else."""
        return ArchiveRoot(
            "s3://it", lambda path: self.objects if path == PATH else MemoryObjects()
        )

    def take(self, sizes: list[int] | None = None, *, split: bool = False) -> None:
        """Write to the stream and record a run, after a split if `split` is set."""
        if split:
            self.source.split()
        self.source.write(SIZES if sizes is None else sizes)
        config = StreamConfig(
            tags=("team=a", f"run={len(self.then)}"),
            retention=StreamRetention(type=RetentionType.TIME, minimum=10**9),
        )
        take(self.archive, self.form, self.source, config=config)
        self.then.append([bytes(one.data[one.start :]) for one in self.source.segments])

    def three(self) -> Env:
        """Record three runs, the last two after a split each."""
        self.take()
        self.take(split=True)
        self.take(split=True)
        return self

    def request(self, **changes: object) -> CopyRequest:
        """Return a restore of the last run, with fields of the choice or the request changed."""
        choice = {name: changes.pop(name) for name in ("run", "until", "path") if name in changes}
        source = SourceRequest(
            stream=SOURCE, archive=ArchiveChoice.model_validate({"path": PATH, **choice})
        )
        request = CopyRequest(copy_id=COPY, sources=(source,), target=TARGET)
        return request.model_copy(update=changes)

    def plan(self, store: ModelStore, request: CopyRequest) -> StreamPlan:
        """Return the plan that a driver of this copy works on."""
        found = resolve(request, [self.root], store).plan
        assert found is not None
        return found

    def runner(
        self, store: ModelStore, plan: StreamPlan, *, patience: float = 0
    ) -> Runner[StreamPlan, StreamReport]:
        """Return a driver."""
        addresses = pinned(plan, [ADDRESS])
        assert addresses[0].archive is not None
        sources = [self.root.run(addresses[0].archive)]
        return copy_runner(
            StreamCopyPlan(sources=addresses, target=ADDRESS, streams=(plan,)),
            sources=sources,
            target=store,
            executor=InlineExecutor(sources, store),
            clock=ManualClock(),
            patience=patience,
        )

    def restore(self, request: CopyRequest | None = None) -> StreamReport:
        """Restore to the end."""
        store = ModelStore(self.world, block=BLOCK)
        (report,) = self.runner(store, self.plan(store, request or self.request())).run()
        return report

    @property
    def restored(self) -> list[bytes]:
        """The bytes of each segment of the target."""
        return self.world.bytes_of(TARGET)

    def assert_nothing_is_there(self) -> None:
        """Check that the world has neither a target nor segments of the copy."""
        assert TARGET not in self.world.streams
        assert self.world.segments == {}
