"""The planning of a large scope in several looks."""

from __future__ import annotations

import asyncio
from concurrent.futures import ThreadPoolExecutor
from typing import TYPE_CHECKING

import pytest

from sluice.core.workloads.answers import Planned
from sluice.engine.access import parallel
from sluice.engine.scope.planning import resolve_scope
from sluice.errors import StoreTimeout, TargetExists
from sluice.kube.copies.memory import CopyMemory
from sluice.kube.loop.memory import Blocking
from support.engine.plans import ADDRESS
from support.engine.scope_requests import REQUEST, put, put_others
from support.model import ModelStore, World

if TYPE_CHECKING:
    from sluice.core.values.model import StreamName
    from sluice.core.workloads.answers import Answer
    from sluice.stores.reading import Stream

_STREAMS = [f"s{number:02}" for number in range(40)]


class Slow(ModelStore):
    """A store that describes some streams, and refuses all later calls as too late."""

    def __init__(self, world: World, described: int) -> None:
        super().__init__(world)
        self.left = described
        self.described: list[str] = []

    def describe(self, name: StreamName) -> Stream | None:
        """See Catalog."""
        if not self.left:
            raise StoreTimeout("too late")
        self.left -= 1
        self.described.append(name.stream)
        return super().describe(name)


class Looks:
    """Looks at a ScopeCopy, one after another."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setattr(parallel, "AT_ONCE", 1)
        self.world = World()
        put(self.world, *_STREAMS)
        self.memory = CopyMemory()
        self.described: list[str] = []

    def look(self, *, described: int = 15, asked: object = REQUEST) -> Answer:
        """Look once. The store describes `described` streams before it refuses."""
        source, target = Slow(self.world, described), ModelStore(self.world)

        def ask() -> Answer:
            return resolve_scope(REQUEST, source=(ADDRESS, source), target=(ADDRESS, target))

        async def surveyed() -> Answer:
            with ThreadPoolExecutor(1) as threads:
                return await self.memory.surveyed(Blocking(threads), asked, ask)

        try:
            return asyncio.run(surveyed())
        finally:
            self.described += source.described


def test_a_scope_is_planned_in_as_many_looks_as_it_takes(monkeypatch: pytest.MonkeyPatch) -> None:
    """No stream is described twice, and the plan is that of one look."""
    looks = Looks(monkeypatch)
    for _ in range(2):
        with pytest.raises(StoreTimeout):
            looks.look()
    planned = looks.look()
    assert isinstance(planned, Planned)
    assert [plan.target_name for plan in planned.plan.streams] == _STREAMS
    assert sorted(looks.described) == _STREAMS


def test_what_was_found_counts_for_the_same_question_only(monkeypatch: pytest.MonkeyPatch) -> None:
    """Another spec or another store is planned from the beginning."""
    looks = Looks(monkeypatch)
    with pytest.raises(StoreTimeout):
        looks.look()
    assert isinstance(looks.look(described=40, asked="another"), Planned)
    assert len(looks.described) == 55


def test_what_was_found_is_forgotten_when_the_store_is_away(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """The length of the outage is unknown, and streams may change meanwhile."""
    looks = Looks(monkeypatch)
    for described in (15, 0):
        with pytest.raises(StoreTimeout):
            looks.look(described=described)
    assert isinstance(looks.look(described=40), Planned)
    assert len(looks.described) == 55


def test_what_was_found_is_forgotten_with_an_answer(monkeypatch: pytest.MonkeyPatch) -> None:
    """An error is an answer, too, and its cause is checked again."""
    looks = Looks(monkeypatch)
    put_others(looks.world, "s07")
    with pytest.raises(TargetExists):
        looks.look(described=40)
    with pytest.raises(TargetExists):
        looks.look(described=40)
    assert len(looks.described) == 80
