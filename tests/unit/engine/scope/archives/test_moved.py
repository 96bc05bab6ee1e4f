from collections.abc import Callable
from contextlib import suppress
from functools import partial
from typing import Any

import pytest

from sluice.archive.runs.verify import verify_archive
from sluice.core.copy.steps import DeleteSource, DrainSource, RecordRun, Step
from sluice.core.scope.request import Selector
from sluice.core.scope.scope import StreamState
from sluice.core.workloads.answers import ScopeEnded
from sluice.engine.copy.query import How
from sluice.engine.tasks.limits import Limits
from sluice.engine.tasks.work import Work
from sluice.errors import InvalidSpec
from support.archiving.scope_roots import BACK, TO, At, Env, root_in
from support.engine.scope_drivers import SharedStore, put_scope, source_name
from support.engine.scope_requests import states_of
from support.engine.sources import events_of
from support.model import CREATION_TIME, Fate, World, segment_name
from support.model.gated_objects import GatedObjects

MOVE = TO.model_copy(update={"move": True})
NAMES = ["s000", "s001"]
COPIED = dict.fromkeys(NAMES, StreamState.COPIED.value)
ONE = Limits(parallelism=1)


def moving_env(*, sealed: bool = False) -> Env:
    """Return a scope of two streams, sealed or not."""
    world = World()
    put_scope(world, [[9, 30, 1], [1]], [[5]])
    world.scopes.add("out")
    env = Env(world)
    for number in range(2 if sealed else 0):
        env.store.seal_stream(source_name(number))
    return env


def test_a_scope_that_is_moved_is_archived_to_its_end_and_deleted() -> None:
    """Bytes that are written before each stream's seal are archived, too."""
    env = moving_env()

    def write() -> None:
        env.world.segments[segment_name(source_name(0), 0)].data += events_of([20, 3])

    listener = At(DrainSource, write)
    before = env.content("in")
    report = env.run(MOVE, listener=listener)
    assert states_of(report) == COPIED
    assert report.kept is None
    assert "in" not in env.world.scopes
    assert [len(env.manifests(name)) for name in NAMES] == [2, 2]
    assert env.manifests("s000")[-1].sealed
    size = sum(map(len, before["s000"])) + 8 * 2 + 23
    told = {one.stream: (one.bytes, one.events) for one in report.results}
    assert told == {"s000": (size, 6), "s001": (13, 1)}
    env.run(BACK)
    first, *others = before["s000"]
    assert env.content("out") == before | {"s000": [first + events_of([20, 3]), *others]}
    found = env.resolved(MOVE, again=True)
    assert isinstance(found, ScopeEnded)
    assert states_of(found) == COPIED
    env.abandon(MOVE)
    found = env.resolved(MOVE, ask=True)
    assert isinstance(found, ScopeEnded)
    assert states_of(found) == COPIED


def test_a_stream_that_was_sealed_before_is_moved_in_one_run() -> None:
    """No byte can follow. Its run is marked whole, for later questions as well."""
    env = moving_env(sealed=True)
    before = env.content("in")
    report = env.run(MOVE)
    assert states_of(report) == COPIED
    assert report.kept is None
    told = {one.stream: (one.bytes, one.events) for one in report.results}
    assert told == {"s000": (73, 4), "s001": (13, 1)}
    assert [len(env.manifests(name)) for name in NAMES] == [1, 1]
    for _ in range(2):
        found = env.resolved(MOVE, ask=True)
        assert isinstance(found, ScopeEnded)
        assert states_of(found) == COPIED
        env.abandon(MOVE)
    env.run(BACK)
    assert env.content("out") == before


def test_a_sealed_stream_that_has_more_than_its_archive_is_not_deleted() -> None:
    """Its only run is compared with the stream before the deletion."""
    env = moving_env(sealed=True)

    def write() -> None:
        env.world.segments[segment_name(source_name(0), 0)].data += events_of([20, 3])

    report = env.run(MOVE, listener=At(DeleteSource, write))
    assert states_of(report) == COPIED | {"s000": "SourceKept"}
    assert [*env.content("in")] == ["s000"]


def test_a_stream_that_is_gone_is_not_moved_by_the_run_of_one_that_was_written_to() -> None:
    """Another client deleted the stream before its seal, so its last bytes are unknown."""
    env = moving_env()
    env.run(TO.model_copy(update={"scope_id": MOVE.scope_id}))
    env.abandon(MOVE)
    del env.world.streams[source_name(0)]
    report = env.run(MOVE)
    assert "s000" not in states_of(report)
    assert report.kept is None


@pytest.mark.parametrize("sealed", [False, True], ids=["written to", "sealed before"])
@pytest.mark.parametrize(
    "step", [29, pytest.param(1, marks=pytest.mark.exhaustive)], ids=["some calls", "every call"]
)
def test_a_move_that_is_killed_anywhere_is_gone_on_with(step: int, *, sealed: bool) -> None:
    """At any call, no stream is deleted that is not archived to its end."""
    expected = moving_env().content("in")
    for at in range(0, 2000, step):
        env, left = moving_env(sealed=sealed), [at]

        def gate(_: str, left: list[int] = left) -> Fate:
            left[0] -= 1
            if left[0] < 0:
                raise KeyboardInterrupt
            return Fate.DONE

        store, root = SharedStore(env.world, gate), root_in(GatedObjects(env.objects, gate))
        with suppress(KeyboardInterrupt):
            env.run(MOVE, store=store, root=root, limits=ONE)
        for name in set(NAMES) - set(env.content("in")):
            last = env.manifests(name)[-1]
            assert last.sealed
            assert verify_archive(env.archive(name)).problems == []
            assert last.bytes == sum(map(len, expected[name]))
        if left[0] >= 0:
            break
        found = env.resolved(MOVE)
        report = found if isinstance(found, ScopeEnded) else env.run(MOVE, limits=ONE)
        assert states_of(report) == COPIED
        assert env.content("in") == {}
        env.run(BACK)
        assert env.content("out") == expected
    assert at > 100


class AtTheRest(At):
    """A listener like `At`, which only acts in the run of the bytes up to the seal."""

    def step(self, copy: Work[Any, Any], step: Step) -> None:
        """See Listener."""
        if copy.plan.parent is not None:
            super().step(copy, step)


@pytest.mark.parametrize("when", [partial(At, DrainSource), partial(AtTheRest, RecordRun)])
def test_a_run_that_somebody_adds_to_the_archive_of_a_move_is_no_trouble(
    when: Callable[[Callable[[], object]], At],
) -> None:
    """The archive is the move's own, so `onExists: Fail` does not apply."""
    env = moving_env()
    only = (Selector(type="Exact", value="s000"),)
    other = TO.model_copy(update={"scope_id": "cc" * 16, "on_exists": "Append", "include": only})
    report = env.run(MOVE, listener=when(lambda: env.run(other)))
    assert states_of(report) == COPIED
    assert [len(env.manifests(name)) for name in NAMES] == [3, 2]
    assert env.content("in") == {}


def test_a_stream_that_is_made_again_is_not_sealed() -> None:
    """The new stream of the name is named and does not change. The scope stays, too."""
    env = moving_env()

    def replace() -> None:
        for number in range(2):
            there = env.world.segments[segment_name(source_name(0), number)]
            there.attributes[CREATION_TIME] = 5000 + number

    report = env.run(MOVE, listener=At(DrainSource, replace))
    assert states_of(report) == COPIED | {"s000": "SourceReplaced"}
    assert not env.world.streams[source_name(0)].sealed
    assert "in" in env.world.scopes


def test_a_stream_that_is_not_as_it_was_archived_is_not_deleted() -> None:
    """A user has to check, and its archive stays."""
    env = moving_env()

    def write() -> None:
        env.world.segments[segment_name(source_name(0), 0)].data += events_of([20, 3])

    report = env.run(MOVE, listener=At(DeleteSource, write))
    assert states_of(report) == COPIED | {"s000": "SourceKept"}
    assert [*env.content("in")] == ["s000"]
    assert len(env.manifests("s000")) == 2


def test_a_stream_that_was_deleted_before_it_was_sealed_is_named() -> None:
    """Its last bytes are unknown."""
    env = moving_env()

    def delete() -> None:
        del env.world.streams[source_name(0)]

    report = env.run(MOVE, listener=At(DrainSource, delete))
    assert states_of(report) == COPIED | {"s000": "SourceNotFound"}


def test_a_move_that_is_abandoned_says_what_is_sealed() -> None:
    """Streams stay sealed, and archives stay."""
    env = moving_env()

    class Stopped(BaseException):
        """The driver's end."""

    def gate(what: str) -> Fate:
        if what.startswith("put_new") and env.world.streams[source_name(0)].sealed:
            raise Stopped
        return Fate.DONE

    with pytest.raises(Stopped):
        env.run(MOVE, root=root_in(GatedObjects(env.objects, gate)), limits=ONE)
    assert How.SEALED in env.abandon(MOVE)
    assert not [name for name in env.objects.held if "/work/" in name]
    assert states_of(env.run(MOVE)) == COPIED


def test_nothing_is_moved_that_is_not_read_back() -> None:
    """An unverified stream would be deleted unseen."""
    env = moving_env()
    with pytest.raises(InvalidSpec, match="not moved without verification"):
        env.plan(MOVE.model_copy(update={"verify": False}))
