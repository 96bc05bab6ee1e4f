"""Drivers that change a live target's policy while others scale it, on a real store."""

from __future__ import annotations

import threading
from concurrent.futures import ThreadPoolExecutor
from typing import TYPE_CHECKING, Any, cast

import pytest

from sluice.core.values.model import StoreAddress, StreamName
from sluice.engine.copy.report import Outcome
from sluice.engine.follow import changes
from sluice.engine.journal.copy_journal import CopyJournal
from sluice.pipelines.programs.stores import Stores
from support.engine.plans import COPY
from support.following.follower import SETTINGS, follow
from support.until import PATIENCE, until
from support.witness.foreign_witness import assert_equal

if TYPE_CHECKING:
    from collections.abc import Iterator

    from localstore import ForeignClient, Standalone
    from sluice.core.copy.follow_progress import Trail
    from sluice.engine.copy.report import StreamReport
    from sluice.stores.base import Store

KEYS = 16
HALVES = [(0.5, 0.75), (0.75, 1.0)]
"""The keys of the two segments that take over those of segment 1."""


class Gone(Exception):
    """The death of a driver during a call."""


class HeldUp:
    """A store that delays its first change of a policy until a test releases it.

    Args:
        store: the store.
        arrives: whether the change arrives in the end. If not, its driver dies.
    """

    def __init__(self, store: Store, *, arrives: bool) -> None:
        self._store = store
        self._arrives = arrives
        self.under_way = threading.Event()
        self.due = threading.Event()

    def __getattr__(self, name: str) -> Any:
        """Return an attribute of the store."""
        return getattr(self._store, name)

    def update_stream(self, *args: Any, **how: Any) -> None:
        """Change the policy, the first time only after `due` is set."""
        if not self.under_way.is_set():
            self.under_way.set()
            assert self.due.wait(PATIENCE)
            if not self._arrives:
                raise Gone
        self._store.update_stream(*args, **how)


class Scene:
    """A source of two segments, its followers in threads, and their journal."""

    def __init__(self, server: Standalone, scope: str, foreign: ForeignClient) -> None:
        self.server = server.segment_store
        self.uri = server.controller_uri
        self.source, self.target = (scope, "source"), (scope, "target")
        self.foreign = foreign
        self.held: HeldUp
        self.pool = ThreadPoolExecutor()

    def follow(self) -> StreamReport | None:
        """Follow to the source's sealed end."""
        return follow(self.uri, stream(self.source), stream(self.target))

    def follow_late(self, *, arrives: bool) -> StreamReport | None:
        """Follow the source with a store that delays the first change of the target's policy."""

        def seen_as(store: Store) -> Store:
            self.held = HeldUp(store, arrives=arrives)
            return cast("Store", self.held)

        return follow(self.uri, stream(self.source), stream(self.target), seen_as=seen_as)

    def trail(self) -> Trail:
        """Return the trail of the journal."""
        with Stores(SETTINGS) as stores:
            store = stores[StoreAddress(uri=self.uri)]
            found = CopyJournal(store, COPY, stream(self.target)).load()
        assert found is not None
        return found.trail

    def segments(self, of: tuple[str, str]) -> list[int]:
        """Return the ids of a stream's segments, present and past."""
        return [one.id for one in self.foreign.info(*of).segments]


def stream(name: tuple[str, str]) -> StreamName:
    """Return a stream's name."""
    return StreamName(scope=name[0], stream=name[1])


@pytest.fixture
def scene(standalone: Standalone, scope: str, foreign: ForeignClient) -> Iterator[Scene]:
    """Yield a source with events."""
    made = Scene(standalone, scope, foreign)
    foreign.create(*made.source, segments=2)
    foreign.write(*made.source, events=500, keys=KEYS)
    with made.pool:
        yield made
        foreign.seal(*made.source)  # ends the followers, even after a failure


@pytest.mark.exhaustive
def test_a_change_that_is_under_way_is_waited_for(scene: Scene) -> None:
    """The target is scaled only after the change, so the store does not scale it back."""
    late = scene.pool.submit(scene.follow_late, arrives=True)
    until("it is held up", lambda: hasattr(scene, "held") and scene.held.under_way.is_set())
    other = scene.pool.submit(scene.follow)
    assert scene.foreign.scale(*scene.source, segments=[1], ranges=HALVES)
    scene.foreign.write(*scene.source, events=500, keys=KEYS, first=500)
    until("the target is to be scaled", lambda: scene.trail().scaled)
    assert scene.trail().changes
    assert scene.segments(scene.target) == [0, 1]
    scene.held.due.set()
    until("the target is scaled", lambda: len(scene.segments(scene.target)) > 2)
    assert scene.foreign.seal(*scene.source)
    reports = [late.result(PATIENCE), other.result(PATIENCE)]
    assert {one.outcome for one in reports if one is not None} <= {
        Outcome.COPIED,
        Outcome.ALREADY_COMPLETE,
    }
    assert scene.segments(scene.target) == scene.segments(scene.source)
    assert_equal(scene.server, scene.foreign, scene.source, scene.target)


@pytest.mark.exhaustive
def test_a_change_of_a_dead_driver_is_waited_for_and_given_up(
    scene: Scene, monkeypatch: pytest.MonkeyPatch
) -> None:
    """After some time, the announced change of a dead driver no longer holds up scaling."""
    monkeypatch.setattr(changes, "LATE_SECONDS", 3.0)
    late = scene.pool.submit(scene.follow_late, arrives=False)
    until("it is held up", lambda: hasattr(scene, "held") and scene.held.under_way.is_set())
    scene.held.due.set()
    with pytest.raises(Gone):
        late.result(PATIENCE)
    (left,) = scene.trail().changes
    other = scene.pool.submit(scene.follow)
    assert scene.foreign.scale(*scene.source, segments=[1], ranges=HALVES)
    until("the target is scaled", lambda: len(scene.segments(scene.target)) > 2)
    assert left not in scene.trail().changes
    scene.foreign.write(*scene.source, events=500, keys=KEYS, first=500)
    assert scene.foreign.seal(*scene.source)
    report = other.result(PATIENCE)
    assert report is not None
    assert report.outcome is Outcome.COPIED
    assert_equal(scene.server, scene.foreign, scene.source, scene.target)


def test_a_store_scales_a_stream_to_the_number_that_a_late_change_names(scene: Scene) -> None:
    """The store scales to a late policy without a condition. So drivers announce changes."""
    name = stream(scene.source)
    with Stores(SETTINGS) as stores:
        store = stores[StoreAddress(uri=scene.uri)]
        found = store.describe(name)
        assert found is not None
        assert scene.foreign.scale(*scene.source, segments=[1], ranges=HALVES)
        store.update_stream(name, found.config)
        now = store.describe(name)
    assert now is not None
    assert len(now.tail) == 2
    assert not {0, 1} & {one.id for one in now.tail}, "the store made no new segments"
