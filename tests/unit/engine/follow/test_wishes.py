"""The requests in a journal that drivers and other clients write to as well."""

from __future__ import annotations

import pytest

from sluice.core.copy import follow_progress
from sluice.core.copy.journal import target_record
from sluice.core.follow.ending import is_sealing, may_seal
from sluice.core.values.wish import Wish
from sluice.engine.follow import perform, wishes
from sluice.engine.journal.copy_journal import CopyJournal
from sluice.errors import SourceReplaced
from support.engine.plans import COPY, SOURCE, TARGET, segment_plan, stream_plan
from support.engine.sources import put_source
from support.model import ModelStore, World

PLAN = stream_plan(segment_plan(100)).model_copy(update={"follow": True})
SEAL = Wish(cutover="SealAndDrain")
KEY = "key"


def begun(world: World) -> CopyJournal:
    """Return a journal whose plan and target are recorded."""
    log = CopyJournal(ModelStore(world), COPY, TARGET, PLAN)
    log.load()
    log.begin(PLAN)
    log.write([target_record((0,))])
    return log


def other(world: World) -> CopyJournal:
    """Return the same journal for another process."""
    return CopyJournal(ModelStore(world), COPY, TARGET, PLAN)


def test_a_wish_is_written_once() -> None:
    """The same request adds nothing, and another request does."""
    world = World()
    log = begun(world)
    drain = Wish(cutover="Drain")
    assert wishes.write(drain, other(world))
    size = len(world.segments[log.name].data)
    assert wishes.write(drain, other(world))
    assert len(world.segments[log.name].data) == size
    assert wishes.write(Wish(), other(world))
    found = log.load()
    assert found is not None
    assert (found.trail.wish, found.trail.wishes) == (Wish(), 2)


def test_a_copy_that_has_not_begun_or_has_ended_takes_no_wish() -> None:
    """The caller learns that, and may try again."""
    world = World()
    assert not wishes.write(SEAL, other(world), key=KEY)
    assert world.segments == {}
    early = CopyJournal(ModelStore(world), COPY, TARGET, PLAN)
    early.load()
    early.begin(PLAN)
    assert not wishes.write(SEAL, other(world), key=KEY)
    early.write([target_record((0,)), follow_progress.stop_record("x")])
    assert not wishes.write(SEAL, other(world), key=KEY)


@pytest.mark.parametrize(
    "end", [follow_progress.stop_record("Time", 1), follow_progress.leave_record()]
)
def test_a_copy_that_has_ended_seals_nothing(end: dict[str, object]) -> None:
    """This holds even if a late driver decided it before."""
    world = World()
    put_source(world, [20])
    log = begun(world)
    assert wishes.write(SEAL, log, key=KEY)
    log.write([follow_progress.sealing_record()])
    decided = log.loaded
    assert decided is not None
    log.write([end])
    store = ModelStore(world)
    perform.seal_source(decided, other(world), store, KEY)
    assert not world.streams[SOURCE].sealed
    assert not wishes.write(Wish(), other(world))


def test_a_source_that_was_made_again_is_not_sealed() -> None:
    """The new source belongs to another client."""
    world = World()
    put_source(world, [20])
    log = begun(world)
    wishes.write(SEAL, log, key=KEY)
    decided = log.loaded
    assert decided is not None
    put_source(world, [20], seed=5)
    with pytest.raises(SourceReplaced, match="is not sealed"):
        perform.seal_source(decided, log, ModelStore(world), KEY)
    assert not world.streams[SOURCE].sealed


def test_a_copy_that_does_not_follow_takes_no_wish() -> None:
    """Its journal stays readable."""
    world = World()
    plan = PLAN.model_copy(update={"follow": False})
    log = CopyJournal(ModelStore(world), COPY, TARGET, plan)
    log.load()
    log.begin(plan)
    log.write([target_record((0,))])
    assert not wishes.write(SEAL, CopyJournal(ModelStore(world), COPY, TARGET), key=KEY)
    assert log.load() is not None


def test_only_a_wish_with_the_right_key_may_seal() -> None:
    """The owner's request replaces that of another client, though both are equal."""
    world = World()
    log = begun(world)
    log.write([follow_progress.wish_record(0, SEAL, "f" * 64), follow_progress.sealing_record()])
    forged = log.loaded
    assert forged is not None
    assert forged.trail.wish == SEAL
    assert not may_seal(forged, KEY)
    assert not is_sealing(forged, KEY)
    assert wishes.write(SEAL, other(world), key=KEY)
    found = log.load()
    assert found is not None
    assert found.trail.wishes == 2
    assert may_seal(found, KEY)
    assert not may_seal(found, "other")
    assert not may_seal(found, "")
    log.write([follow_progress.sealing_record()])
    assert log.loaded is not None
    assert is_sealing(log.loaded, KEY)


def test_a_consent_is_not_used_twice() -> None:
    """Another client repeats the record of a request that its owner has withdrawn."""
    world = World()
    log = begun(world)
    wishes.write(SEAL, log, key=KEY)
    assert log.loaded is not None
    consent = log.loaded.trail.consent
    assert consent is not None
    wishes.write(Wish(), log, key=KEY)
    log.write([follow_progress.wish_record(2, SEAL, consent.proof)])
    assert log.loaded is not None
    assert log.loaded.trail.wish == SEAL
    assert not may_seal(log.loaded, KEY)
