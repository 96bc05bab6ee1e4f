"""Scopes of a model store that are archived into folders of archives, and restored from them."""

from __future__ import annotations

from dataclasses import dataclass, field
from functools import partial
from typing import TYPE_CHECKING, Any

from sluice.archive.runs.archive_root import ArchiveRoot
from sluice.core.scope.request import ArchiveTo, RestoreFrom, ScopeRequest
from sluice.core.values.model import StoreAddress
from sluice.core.workloads.answers import Planned, ScopeEnded
from sluice.engine.scope.listener import SilentScope
from sluice.engine.scope.planning import resolve_scope
from sluice.engine.scope.query import abandon_scope, ask_scope
from sluice.engine.scope.runner import ScopeRunner
from sluice.engine.tasks.executor import InlineExecutor
from sluice.engine.tasks.limits import Limits
from support.engine.plans import ADDRESS
from support.engine.scope_drivers import SharedStore
from support.model.memory_objects import MemoryObjects

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence

    from sluice.archive.objects.objects import Buffer, ObjectInfo, Objects
    from sluice.archive.runs.archive import Archive
    from sluice.core.archive.manifest import Manifest
    from sluice.core.copy.steps import Step
    from sluice.core.workloads.plan import Plan
    from sluice.engine.access.source_runs import Place
    from sluice.engine.scope.listener import ScopeListener
    from sluice.engine.scope.report import ScopeReport
    from sluice.engine.tasks.work import Work
    from support.model import World

BUCKET = StoreAddress(backend="s3", uri="s3://backups/team")
FOLDER = "shop"
TO = ScopeRequest(scope_id="a0" * 16, source="in", target=FOLDER, archive=ArchiveTo())
BACK = ScopeRequest(scope_id="b0" * 16, source=FOLDER, target="out", restore=RestoreFrom())


class Below:
    """`Objects` below a path of others.

    Args:
        there: all objects.
        path: folder before all names; empty for none.
    """

    def __init__(self, there: MemoryObjects, path: str) -> None:
        self._there = there
        self._prefix = f"{path}/" if path else ""

    def put(self, name: str, data: Buffer) -> None:
        """Make an object, or replace it."""
        self._there.put(self._prefix + name, data)

    def put_new(self, name: str, data: Buffer) -> bool:
        """Make an object. Return False if one of that name exists."""
        return self._there.put_new(self._prefix + name, data)

    def put_many(self, items: Iterable[tuple[str, Buffer]]) -> None:
        """Make or replace many small objects."""
        self._there.put_many((self._prefix + name, data) for name, data in items)

    def look(self, name: str) -> ObjectInfo | None:
        """Return an object's size and time; None if it does not exist."""
        found = self._there.look(self._prefix + name)
        return None if found is None else found._replace(name=name)

    def get(self, name: str, start: int = 0, end: int | None = None) -> bytes | None:
        """Return the bytes [start, end) of an object; None if it does not exist."""
        return self._there.get(self._prefix + name, start, end)

    def get_many(self, names: Sequence[str]) -> list[bytes | None]:
        """Return many small objects, in the order of `names`."""
        return [self.get(name) for name in names]

    def list(self, prefix: str = "", after: str = "") -> Iterator[ObjectInfo]:
        """Yield the objects in a folder and below it, in the order of their names."""
        behind = self._prefix + after if after else ""
        for found in self._there.list(self._prefix + prefix, behind):
            yield found._replace(name=found.name.removeprefix(self._prefix))

    def folders(self, prefix: str = "") -> tuple[str, ...]:
        """Return the folders directly in a folder."""
        found = self._there.folders(self._prefix + prefix)
        return tuple(one.removeprefix(self._prefix) for one in found)

    def delete(self, names: Sequence[str]) -> None:
        """Delete objects. Missing ones are no error."""
        self._there.delete([self._prefix + name for name in names])


def root_in(objects: MemoryObjects) -> ArchiveRoot:
    """Return a root of archives with these objects."""
    return ArchiveRoot(BUCKET.uri, partial(_below, objects))


def _below(objects: MemoryObjects, path: str) -> Objects:
    return Below(objects, path)


class At(SilentScope):
    """A listener that acts once, right before a step of the first stream.

    Args:
        step: the step.
        action: the action.
    """

    def __init__(self, step: type[Step], action: Any) -> None:
        self._step: type[Step] = step
        self._action = action
        self.done = False

    def step(self, copy: Work[Any, Any], step: Step) -> None:
        """See Listener."""
        if isinstance(step, self._step) and copy.plan.name == "s000" and not self.done:
            self.done = True
            self._action()


@dataclass
class Env:
    """A store with scopes, and a root of archives.

    Attributes:
        world: the contents of the store.
        objects: the contents of the root.
        store: the store.
    """

    world: World
    objects: MemoryObjects = field(default_factory=MemoryObjects)

    @property
    def store(self) -> SharedStore:
        """The store."""
        return SharedStore(self.world)

    @property
    def root(self) -> ArchiveRoot:
        """The root of archives."""
        return root_in(self.objects)

    def archive(self, name: str) -> Archive:
        """Return the archive of a stream."""
        return self.root.archive(f"{FOLDER}/{name}")

    def manifests(self, name: str) -> list[Manifest]:
        """Return the manifests of all runs of a stream's archive."""
        head = self.archive(name).head()
        return [] if head is None else [self.archive(name).manifest(one) for one in head.runs]

    def resolved(
        self,
        request: ScopeRequest,
        *,
        store: SharedStore | None = None,
        root: ArchiveRoot | None = None,
        ask: bool = False,
        **given: Any,
    ) -> Planned | ScopeEnded:
        """Return the answer to a request."""
        sites: dict[str, Any] = sites_of(request, store or self.store, root or self.root)
        return (ask_scope if ask or "known" in given else resolve_scope)(request, **sites, **given)

    def plan(self, request: ScopeRequest, **given: Any) -> Plan:
        """Return the plan in the answer to a request."""
        found = self.resolved(request, **given)
        assert isinstance(found, Planned)
        return found.plan

    def run(
        self,
        request: ScopeRequest,
        *,
        store: SharedStore | None = None,
        root: ArchiveRoot | None = None,
        listener: ScopeListener | None = None,
        limits: Limits | None = None,
        patience: float | None = 0.2,
        **given: Any,
    ) -> ScopeReport:
        """Plan and run a copy as drivers do. The report includes streams that were done before."""
        store, root = store or self.store, root or self.root
        plan = self.plan(request, store=store, root=root, **given)
        return run_plan(request, plan, store, root, listener, limits, patience)

    def abandon(self, request: ScopeRequest, known: Plan | None = None) -> str:
        """Abandon the copy and return the outcome."""
        places = sites_of(request, self.store, self.root)
        source, target = places["source"][1], places["target"][1]
        return abandon_scope(request, source=source, target=target, known=known)

    def content(self, scope: str) -> dict[str, list[bytes]]:
        """Return the bytes of each segment of a scope's streams, without internal streams."""
        return {
            name.stream: self.world.bytes_of(name)
            for name in self.world.streams
            if name.scope == scope and not name.stream.startswith("_")
        }


def run_plan(
    request: ScopeRequest,
    plan: Plan,
    store: SharedStore,
    root: ArchiveRoot,
    listener: ScopeListener | None = None,
    limits: Limits | None = None,
    patience: float | None = 0.2,
) -> ScopeReport:
    """Run a plan in this process."""
    places = sites_of(request, store, root)
    target = places["target"][1]
    runner = ScopeRunner(
        plan,
        sources=[places["source"][1]],
        target=target,
        executor=InlineExecutor([store], target),
        limits=lambda: limits or Limits(),
        listener=listener,
        patience=patience,
    )
    return runner.run()


def sites_of(
    request: ScopeRequest, store: SharedStore, root: ArchiveRoot
) -> dict[str, tuple[StoreAddress, Place]]:
    """Return the places where a request reads and writes."""
    live, bucket = (ADDRESS, store), (BUCKET, root)
    return {
        "source": live if request.restore is None else bucket,
        "target": live if request.archive is None else bucket,
    }
