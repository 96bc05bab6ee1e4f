from collections.abc import Callable
from contextlib import suppress
from functools import partial
from typing import Any

import pytest

from sluice.archive.verify import verify_archive
from sluice.core.reconcile.world import ScopeEnded
from sluice.core.scope import StreamState
from sluice.core.scope_request import Selector
from sluice.core.steps import Drain, Leave, Record, Step
from sluice.engine.limits import Limits
from sluice.engine.run import Undertaking
from sluice.engine.settle import How
from sluice.errors import InvalidSpec
from support.gated_objects import GatedObjects
from support.model import CREATION_TIME, Fate, World, segment_name
from support.scope_drivers import SharedStore, put_scope, source_name
from support.scope_requests import states_of
from support.scope_shelves import BACK, TO, At, Lab, shelf_in
from support.sources import events_of

MOVE = TO.model_copy(update={"move": True})
NAMES = ["s000", "s001"]
COPIED = dict.fromkeys(NAMES, StreamState.COPIED.value)
ONE = Limits(parallelism=1)


def moving_lab(*, sealed: bool = False) -> Lab:
    """A scope of two streams, which were sealed before or are not."""
    world = World()
    put_scope(world, [[9, 30, 1], [1]], [[5]])
    world.scopes.add("out")
    lab = Lab(world)
    for number in range(2 if sealed else 0):
        lab.store.seal_stream(source_name(number))
    return lab


def test_a_scope_that_is_moved_is_archived_to_its_end_and_deleted() -> None:
    """What is written until each stream is sealed as well."""
    lab = moving_lab()

    def write() -> None:
        lab.world.segments[segment_name(source_name(0), 0)].data += events_of([20, 3])

    listener = At(Drain, write)
    before = lab.content("in")
    report = lab.run(MOVE, listener=listener)
    assert states_of(report) == COPIED
    assert report.kept is None
    assert "in" not in lab.world.scopes
    assert [len(lab.manifests(name)) for name in NAMES] == [2, 2]
    assert lab.manifests("s000")[-1].sealed
    size = sum(map(len, before["s000"])) + 8 * 2 + 23
    told = {one.stream: (one.bytes, one.events) for one in report.results}
    assert told == {"s000": (size, 6), "s001": (13, 1)}
    lab.run(BACK)
    first, *others = before["s000"]
    assert lab.content("out") == before | {"s000": [first + events_of([20, 3]), *others]}
    found = lab.resolved(MOVE, again=True)
    assert isinstance(found, ScopeEnded)
    assert states_of(found) == COPIED
    lab.abandon(MOVE)
    found = lab.resolved(MOVE, ask=True)
    assert isinstance(found, ScopeEnded)
    assert states_of(found) == COPIED


def test_a_stream_that_was_sealed_before_is_moved_in_one_run() -> None:
    """Nothing can have come since. Its run says that it is whole, to whoever asks later as well."""
    lab = moving_lab(sealed=True)
    before = lab.content("in")
    report = lab.run(MOVE)
    assert states_of(report) == COPIED
    assert report.kept is None
    told = {one.stream: (one.bytes, one.events) for one in report.results}
    assert told == {"s000": (73, 4), "s001": (13, 1)}
    assert [len(lab.manifests(name)) for name in NAMES] == [1, 1]
    for _ in range(2):
        found = lab.resolved(MOVE, ask=True)
        assert isinstance(found, ScopeEnded)
        assert states_of(found) == COPIED
        lab.abandon(MOVE)
    lab.run(BACK)
    assert lab.content("out") == before


def test_a_sealed_stream_that_has_more_than_its_archive_is_not_deleted() -> None:
    """What its only run holds is compared as well, before it is deleted."""
    lab = moving_lab(sealed=True)

    def write() -> None:
        lab.world.segments[segment_name(source_name(0), 0)].data += events_of([20, 3])

    report = lab.run(MOVE, listener=At(Leave, write))
    assert states_of(report) == COPIED | {"s000": "SourceKept"}
    assert [*lab.content("in")] == ["s000"]


def test_a_stream_that_is_gone_is_not_moved_by_the_run_of_one_that_was_written_to() -> None:
    """Somebody has deleted it before it was sealed, and nobody knows what else it had."""
    lab = moving_lab()
    lab.run(TO.model_copy(update={"scope_id": MOVE.scope_id}))
    lab.abandon(MOVE)
    del lab.world.streams[source_name(0)]
    report = lab.run(MOVE)
    assert "s000" not in states_of(report)
    assert report.kept is None


@pytest.mark.parametrize("sealed", [False, True], ids=["written to", "sealed before"])
@pytest.mark.parametrize(
    "step", [13, pytest.param(1, marks=pytest.mark.exhaustive)], ids=["some calls", "every call"]
)
def test_a_move_that_is_killed_anywhere_is_gone_on_with(step: int, *, sealed: bool) -> None:
    """At any call: no stream is gone that is not archived to its end."""
    expected = moving_lab().content("in")
    for at in range(0, 2000, step):
        lab, left = moving_lab(sealed=sealed), [at]

        def gate(_: str, left: list[int] = left) -> Fate:
            left[0] -= 1
            if left[0] < 0:
                raise KeyboardInterrupt
            return Fate.DONE

        store, shelf = SharedStore(lab.world, gate), shelf_in(GatedObjects(lab.objects, gate))
        with suppress(KeyboardInterrupt):
            lab.run(MOVE, store=store, shelf=shelf, limits=ONE)
        for name in set(NAMES) - set(lab.content("in")):
            last = lab.manifests(name)[-1]
            assert last.sealed
            assert verify_archive(lab.archive(name)).problems == []
            assert last.bytes == sum(map(len, expected[name]))
        if left[0] >= 0:
            break
        found = lab.resolved(MOVE)
        report = found if isinstance(found, ScopeEnded) else lab.run(MOVE, limits=ONE)
        assert states_of(report) == COPIED
        assert lab.content("in") == {}
        lab.run(BACK)
        assert lab.content("out") == expected
    assert at > 100


class AtTheRest(At):
    """The same for the run of what came until the stream was sealed."""

    def step(self, copy: Undertaking[Any, Any], step: Step) -> None:
        """See Listener."""
        if copy.plan.parent is not None:
            super().step(copy, step)


@pytest.mark.parametrize("when", [partial(At, Drain), partial(AtTheRest, Record)])
def test_a_run_that_somebody_adds_to_the_archive_of_a_move_is_no_trouble(
    when: Callable[[Callable[[], object]], At],
) -> None:
    """The archive is the move's own, so `onExists: Fail` has nothing against it."""
    lab = moving_lab()
    only = (Selector(type="Exact", value="s000"),)
    other = TO.model_copy(update={"scope_id": "cc" * 16, "on_exists": "Append", "include": only})
    report = lab.run(MOVE, listener=when(lambda: lab.run(other)))
    assert states_of(report) == COPIED
    assert [len(lab.manifests(name)) for name in NAMES] == [3, 2]
    assert lab.content("in") == {}


def test_a_stream_that_is_made_again_is_not_sealed() -> None:
    """Another one of its name stays as it is, and is named; the scope stays, too."""
    lab = moving_lab()

    def replace() -> None:
        for number in range(2):
            there = lab.world.segments[segment_name(source_name(0), number)]
            there.attributes[CREATION_TIME] = 5000 + number

    report = lab.run(MOVE, listener=At(Drain, replace))
    assert states_of(report) == COPIED | {"s000": "SourceReplaced"}
    assert not lab.world.streams[source_name(0)].sealed
    assert "in" in lab.world.scopes


def test_a_stream_that_is_not_as_it_was_archived_is_not_deleted() -> None:
    """Somebody has to look; its archive stays."""
    lab = moving_lab()

    def write() -> None:
        lab.world.segments[segment_name(source_name(0), 0)].data += events_of([20, 3])

    report = lab.run(MOVE, listener=At(Leave, write))
    assert states_of(report) == COPIED | {"s000": "SourceKept"}
    assert [*lab.content("in")] == ["s000"]
    assert len(lab.manifests("s000")) == 2


def test_a_stream_that_was_deleted_before_it_was_sealed_is_named() -> None:
    """Nobody knows what else it had."""
    lab = moving_lab()

    def delete() -> None:
        del lab.world.streams[source_name(0)]

    report = lab.run(MOVE, listener=At(Drain, delete))
    assert states_of(report) == COPIED | {"s000": "SourceNotFound"}


def test_a_move_that_is_abandoned_says_what_is_sealed() -> None:
    """It stays so, and what is archived stays."""
    lab = moving_lab()

    class Stopped(BaseException):
        """The driver's end."""

    def gate(what: str) -> Fate:
        if what.startswith("put_new") and lab.world.streams[source_name(0)].sealed:
            raise Stopped
        return Fate.DONE

    with pytest.raises(Stopped):
        lab.run(MOVE, shelf=shelf_in(GatedObjects(lab.objects, gate)), limits=ONE)
    assert How.SEALED in lab.abandon(MOVE)
    assert not [name for name in lab.objects.held if "/work/" in name]
    assert states_of(lab.run(MOVE)) == COPIED


def test_nothing_is_moved_that_is_not_read_back() -> None:
    """It would be deleted unseen."""
    lab = moving_lab()
    with pytest.raises(InvalidSpec, match="not moved without verification"):
        lab.plan(MOVE.model_copy(update={"verify": False}))
