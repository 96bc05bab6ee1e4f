"""A writer's last event number is an attribute of the segment, for appends and merges alike.

A copy that follows a live source relies on this. One number is the position of a target segment,
and a client that sets it fences off all others (`AppendProcessor.storeAppend` of Pravega 0.13.0).
"""

from __future__ import annotations

from typing import TYPE_CHECKING
from uuid import uuid4

import pytest

from sluice.core.values.model import SegmentInfo, StreamName
from sluice.errors import ConditionFailed, InvalidEventNumber
from sluice.stores.writing import CompareAndSet
from support.store.blocks import MIB, content, write

if TYPE_CHECKING:
    from sluice.stores.pravega.store import PravegaStore


def staged(store: PravegaStore, stream: StreamName, data: bytes) -> str:
    """Return a sealed staging segment with these bytes."""
    name = store.staging_name(stream, 0, uuid4().hex)
    assert store.create(name)
    write(store, name, data)
    store.seal(name)
    return name


def test_an_appender_goes_on_where_a_merge_has_set_its_number(
    store: PravegaStore, stream: StreamName, segment: str
) -> None:
    """An appender continues after the number that a merge has set."""
    writer = uuid4()
    store.merge(
        segment,
        staged(store, stream, b"merged "),
        CompareAndSet(uuid4(), None, 1),
        events=1,
        notes=((writer, 1000),),
    )
    with store.appender(segment, writer=writer, window=MIB) as appender:
        assert appender.last == 1000
        appender.append(b"appended", event_number=1100, events=2)
        appender.flush()
        assert appender.offset == 15
    assert store.attributes([(segment, writer), (segment, store.event_count)]) == [1100, 3]


@pytest.mark.parametrize("by", ["note", "condition", "set_attribute"])
def test_who_sets_the_number_fences_an_open_appender_off(
    store: PravegaStore, stream: StreamName, segment: str, by: str
) -> None:
    """A client that sets the number, by any call, fences off an open appender."""
    writer = uuid4()
    with store.appender(segment, writer=writer, window=MIB) as appender:
        appender.append(b"mine ", event_number=1100)
        appender.flush()
        change = CompareAndSet(writer, 1100, 1600)
        if by == "set_attribute":
            assert store.set_attribute(segment, change)
        elif by == "condition":
            store.merge(segment, staged(store, stream, b"theirs"), change)
        else:
            other = CompareAndSet(uuid4(), None, 1)
            staging = staged(store, stream, b"theirs")
            store.merge(segment, staging, other, notes=((writer, 1600),))

        def go_on() -> None:
            appender.append(b"late", event_number=1700)
            appender.flush()

        with pytest.raises(InvalidEventNumber, match=str(writer)):
            go_on()
    expected = b"mine " if by == "set_attribute" else b"mine theirs"
    assert store.infos([segment]) == [SegmentInfo(start=0, length=len(expected), sealed=False)]
    assert content(store, segment, 0, len(expected)) == expected
    with store.appender(segment, writer=writer, window=MIB) as appender:
        assert appender.last == 1600


def test_an_appender_fences_a_merge_off(
    store: PravegaStore, stream: StreamName, segment: str
) -> None:
    """A merge whose condition is an older number changes nothing."""
    writer = uuid4()
    with store.appender(segment, writer=writer, window=MIB) as appender:
        appender.append(b"first", event_number=100)
        appender.append(b"second", event_number=200)
        appender.flush()
        with pytest.raises(ConditionFailed, match=str(writer)):
            store.merge(segment, staged(store, stream, b"x"), CompareAndSet(writer, 100, 300))
        appender.append(b"third", event_number=300)
        appender.flush()
    assert content(store, segment, 0, 16) == b"firstsecondthird"


def test_a_number_of_zero_is_told_to_who_sets_an_append_up(
    store: PravegaStore, segment: str
) -> None:
    """A number of zero differs from no number, even for a segment without bytes."""
    writer = uuid4()
    with store.appender(segment, writer=writer, window=MIB) as appender:
        assert appender.last is None
    assert store.set_attribute(segment, CompareAndSet(writer, None, 0))
    with store.appender(segment, writer=writer, window=MIB) as appender:
        assert appender.last == 0
        assert appender.offset is None
        appender.append(b"abc", event_number=3)
        appender.flush()
    assert not store.set_attribute(segment, CompareAndSet(writer, None, 0))
