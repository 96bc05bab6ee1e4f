"""The look of a driver whose step another driver may have done in part."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from sluice.core.copy.steps import (
    Bind,
    ConfigureTarget,
    DeleteJournal,
    Done,
    MakeTarget,
    Publish,
    Stage,
    Transfer,
    Verify,
    WriteReceipt,
)
from sluice.core.values import identity
from sluice.engine.append import receipts
from sluice.engine.append.receipts import Receipt
from sluice.engine.copy.stream_copy import StreamCopyWork
from sluice.engine.tasks.executor import InlineExecutor
from sluice.engine.tasks.limits import Limits
from sluice.errors import CopyAborted, TargetReplaced
from support.engine.appends import APPEND, driven, put_target
from support.engine.plans import COPY, SOURCE, TARGET
from support.engine.sources import REQUEST, begun, drive, go, put_source
from support.model import (
    CREATION_TIME,
    EVENT_COUNT,
    Fate,
    ModelSegment,
    ModelStore,
    World,
    segment_name,
)

if TYPE_CHECKING:
    from sluice.core.copy.planner import CopyRequest

RECORD = REQUEST.model_copy(update={"on_truncation": "Record"})


def rival(world: World, copy: StreamCopyWork) -> StreamCopyWork:
    """Make another driver of the copy."""
    store = ModelStore(world)
    other = StreamCopyWork(copy.plan, 0, [store], store)
    assert other.begin(permit=None) is None
    return other


@pytest.mark.parametrize("request_", [REQUEST, APPEND], ids=["a new target", "an append"])
def test_bytes_that_another_driver_has_staged_are_seen(request_: CopyRequest) -> None:
    """A driver whose staging segments existed already does not assume that they are empty."""
    world = World()
    put_source(world, [40, 40], [9])
    if request_.append:
        put_target(world, 2)
    copy = begun(world, request_)
    step = go(copy, world, Stage)
    go(rival(world, copy), world, Verify)
    copy.perform(step)
    assert isinstance(copy.look(), Verify)


@pytest.mark.parametrize("made", [True, False], ids=["by this driver", "by an earlier one"])
def test_a_target_that_was_bound_meanwhile_is_looked_at(made: bool) -> None:  # noqa: FBT001
    """A driver that was too late to record the target's segments sees the copy's progress."""
    world = World()
    put_source(world, [40, 40], [9])
    copy = begun(world, REQUEST)
    step = go(copy, world, Bind)
    if not made:
        copy = rival(world, copy)
        assert copy.look() == step
    other = rival(world, copy)
    go(other, world, ConfigureTarget)
    copy.perform(step)
    assert isinstance(copy.look(), ConfigureTarget)


def test_a_target_that_was_shut_meanwhile_is_not_taken_for_whole() -> None:
    """An abort sets the mark of a segment without bytes before the driver that publishes it."""
    world = World()
    put_source(world, [], [])
    copy = begun(world, REQUEST)
    step = go(copy, world, Publish)
    shut = segment_name(TARGET, world.streams[TARGET].segments[1].id)
    world.segments[shut].attributes[identity.publish_attribute(COPY)] = identity.ABORTED
    copy.perform(step)
    with pytest.raises(CopyAborted):
        copy.look()
    assert identity.completed(world.streams[TARGET].config.tags, COPY) is None


def test_bytes_that_another_driver_has_staged_need_no_source() -> None:
    """The source was truncated after that, so staging the bytes anew would fail."""
    world = World()
    contents = put_source(world, [40, 40], [9])
    copy = begun(world, REQUEST)
    copy.perform(go(copy, world, Stage))
    go(rival(world, copy), world, Verify)
    truncate(world)
    assert isinstance(go(copy, world), Done)
    assert world.bytes_of(TARGET) == contents


def test_a_target_whose_journal_is_lost_is_not_made_again() -> None:
    """A driver that begins its copy anew sees that the target exists."""
    world = World()
    put_source(world, [40, 40], [9])
    old = drive(world, 1)
    assert TARGET in world.streams
    old.journal.discard()
    assert isinstance(rival(world, old).look(), Bind)


def truncate(world: World) -> None:
    """Truncate the source's first event."""
    name = segment_name(SOURCE, 0)
    world.segments[name].start = 48


@pytest.mark.parametrize("when", ["between two steps", "while bytes are copied"])
def test_a_segment_that_another_driver_has_restarted_is_staged_anew(when: str) -> None:
    """The source was truncated, and the journal has the record when this driver goes on."""
    world = World()
    store = ModelStore(world)
    contents = put_source(world, [40, 40], [9])
    copy = begun(world, RECORD, divided=False)
    step = go(copy, world, Stage)
    copy.perform(step)
    results = []
    if when == "while bytes are copied":
        step = copy.look()
        assert isinstance(step, Transfer)
        results = InlineExecutor([store], store).run(copy.slices(step, Limits(), 1))
        for name in world.staging():  # as if the other driver had seen this before it was staged
            if name != copy.journal.name:
                before = world.segments[name].attributes
                kept = {key: before[key] for key in (CREATION_TIME, EVENT_COUNT)}
                world.segments[name] = ModelSegment(attributes=kept)
    truncate(world)
    go(rival(world, copy), world, Stage)
    if results:
        assert isinstance(step, Transfer)
        copy.absorb(step, results)
    assert isinstance(copy.look(), Stage)
    assert copy.plan.segments[0].attempt == 1
    assert isinstance(go(copy, world), Done)
    assert world.bytes_of(TARGET) == [contents[0][48:], contents[1]]


def test_a_target_that_is_deleted_while_a_copy_is_resumed_is_not_made_again() -> None:
    """A driver read the journal before another recorded the target, and sees no target."""
    world = World()
    put_source(world, [40, 40], [9])
    other = drive(world, 0)

    def gate(what: str) -> Fate:
        if what == f"describe {TARGET}" and other.journal.loaded.target is None:
            for expected in (MakeTarget, Bind):
                step = other.look()
                assert isinstance(step, expected)
                other.perform(step)
            ModelStore(world).seal_stream(TARGET)
            ModelStore(world).delete_stream(TARGET)
        return Fate.DONE

    store = ModelStore(world, gate)
    copy = StreamCopyWork(other.plan, 0, [store], store)
    assert copy.begin(permit=None) is None
    with pytest.raises(TargetReplaced):
        copy.look()


def test_the_digest_of_the_receipt_that_counts_is_told() -> None:
    """Another driver has left its receipt before this one does."""
    world = World()
    put_source(world, [40, 40])
    put_target(world, 2)
    copy = driven(world, WriteReceipt)
    step = copy.look()
    segment = world.streams[TARGET].segments[-1].id
    receipts.leave(COPY, TARGET, ModelStore(world), Receipt("ab" * 32, 1, 1, 1, segment))
    copy.perform(step)
    copy.perform(go(copy, world, DeleteJournal))
    assert copy.look() == Done("ab" * 32)


def test_an_append_without_another_driver_tells_its_own_digest() -> None:
    """The digest comes from its own receipt."""
    world = World()
    put_source(world, [40, 40])
    put_target(world, 2)
    copy = driven(world, WriteReceipt)
    digest = copy.digest()
    assert go(begun(world, APPEND), world) == Done(digest)
