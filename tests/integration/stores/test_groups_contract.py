"""Reader groups as a store and its Java client keep them."""

from __future__ import annotations

from typing import TYPE_CHECKING
from uuid import UUID, uuid4

import pytest

from localstore import ForeignClientError
from sluice.core.values.groups import DEFAULT_SETTINGS, GroupName, GroupSettings, GroupState
from sluice.core.values.model import StreamName
from sluice.errors import InvalidSpec, ReaderGroupExists, ReaderGroupNotFound, ScopeNotFound
from sluice.stores.pravega.groups import group_state, groups

if TYPE_CHECKING:
    from localstore import ForeignClient
    from sluice.stores.pravega.store import PravegaStore

FRAME = 108
"""Bytes of an event of 100 bytes in its segment."""

SETTINGS = GroupSettings(refresh=500, checkpoints=500)
"""The settings of the foreign client's groups."""


@pytest.fixture
def source(foreign: ForeignClient, scope: str) -> StreamName:
    """Return a stream of one segment with 20 events."""
    name = StreamName(scope=scope, stream=f"s-{uuid4().hex[:12]}")
    foreign.create(scope, name.stream)
    foreign.write(scope, name.stream, events=20)
    return name


@pytest.fixture
def group(scope: str) -> GroupName:
    """Return the name of a group that does not exist."""
    return GroupName(scope, f"g-{uuid4().hex[:12]}")


def _bytes(store: PravegaStore, group: GroupName) -> bytes:
    """Return the bytes in the internal stream of a new group."""
    stream = group_state.stream_of(group)
    (segment,) = store.generations(stream)[0]
    name = store.segment_name(stream, segment.id)
    (info,) = store.infos([name])
    assert info is not None
    return b"".join(bytes(block.data) for block in store.read(name, 0, info.length))


def test_a_group_is_begun_as_the_client_begins_it(
    store: PravegaStore, foreign: ForeignClient, source: StreamName, group: GroupName
) -> None:
    """Sluice's first record of a group equals the client's, except its padding of zeros."""
    start = {source: {0: 3 * FRAME}}
    cut = store.write_cut(*next(iter(start.items())))
    assert foreign.create_group(group.scope, group.name, source.stream, cut=cut)
    theirs = _bytes(store, group)
    made = store._directory.run(
        lambda controller: groups.make(
            controller, group, start, settings=DEFAULT_SETTINGS, identity=uuid4()
        )
    )
    assert (made.start, made.settings, made.generation, made.endless) == (start, SETTINGS, 0, True)
    ours = group_state.first_record(start, settings=SETTINGS, identity=made.identity)
    assert theirs[8 : len(ours)] == ours[8:]
    assert not any(theirs[len(ours) :])


def test_the_client_reads_on_where_a_group_of_ours_begins(
    store: PravegaStore, foreign: ForeignClient, source: StreamName, group: GroupName
) -> None:
    """The client reads each event of Sluice's group once, and Sluice reads its new position."""
    start = {source: {0: 3 * FRAME}}
    assert store.create_reader_group(group, start, settings=SETTINGS, identity=uuid4())
    cuts = foreign.group_cuts(*group)
    assert {name: store.read_cut(text) for name, text in cuts.items()} == {
        str(source): (source, start[source])
    }
    read = foreign.read_group(*group, events=7)
    assert (read.events, read.clean, read.keys_from_zero) == (7, True, 0)
    assert store.group_state(group) == GroupState((), {source: {0: 10 * FRAME}}, {})
    read = foreign.read_group(*group, quiet_ms=2000)
    assert (read.events, read.clean) == (10, True)


def test_a_group_is_made_once(
    store: PravegaStore, foreign: ForeignClient, source: StreamName, group: GroupName
) -> None:
    """A group with the same start exists already, even after reads. Another start is refused.

    After its deletion, a new group of the name has its own identity and start.
    """
    identity = UUID(int=5)
    start = {source: {0: 3 * FRAME}}
    assert store.create_reader_group(group, start, settings=SETTINGS, identity=identity)
    foreign.read_group(*group, events=7)
    assert not store.create_reader_group(group, start, settings=SETTINGS, identity=identity)
    elsewhere = {source: {0: 4 * FRAME}}
    with pytest.raises(ReaderGroupExists):
        store.create_reader_group(group, elsewhere, settings=SETTINGS, identity=identity)
    assert store.group_state(group).positions == {source: {0: 10 * FRAME}}
    assert foreign.delete_group(*group)
    assert store.reader_group(group) is None
    assert store.create_reader_group(group, elsewhere, settings=SETTINGS, identity=uuid4())
    assert store.group_state(group).positions == elsewhere


def test_a_group_that_was_made_and_not_begun_is_begun(
    store: PravegaStore, foreign: ForeignClient, source: StreamName, group: GroupName
) -> None:
    """If a driver dies between making and beginning a group, a repetition begins it once."""
    start = {source: {0: 3 * FRAME}}
    store._directory.run(
        lambda controller: groups.make(
            controller, group, start, settings=SETTINGS, identity=UUID(int=6)
        )
    )
    with pytest.raises(ReaderGroupNotFound, match="being made"):
        store.group_state(group)
    assert store.create_reader_group(group, start, settings=SETTINGS, identity=UUID(int=7))
    assert not store.create_reader_group(group, start, settings=SETTINGS, identity=UUID(int=6))
    assert foreign.read_group(*group, quiet_ms=2000).events == 17


def test_a_group_of_ours_is_begun_though_another_one_is_wanted_now(
    store: PravegaStore, foreign: ForeignClient, source: StreamName, group: GroupName
) -> None:
    """A group of a dead driver is begun at its own start. A request for another is refused.

    Before the group is begun, the client cannot delete it.
    """
    identity = UUID(int=8)
    start = {source: {0: 3 * FRAME}}
    store._directory.run(
        lambda controller: groups.make(
            controller, group, start, settings=SETTINGS, identity=identity
        )
    )
    with pytest.raises(ForeignClientError):
        foreign.delete_group(*group)
    with pytest.raises(ReaderGroupExists):
        store.create_reader_group(
            group, {source: {0: 4 * FRAME}}, settings=SETTINGS, identity=UUID(int=9)
        )
    assert store.group_state(group).positions == start
    assert foreign.delete_group(*group)


def test_names_and_scopes_that_cannot_be_are_refused(
    store: PravegaStore, source: StreamName, group: GroupName
) -> None:
    """Bad names are refused. A missing group is None, and an error if its state is read."""
    start = {source: {0: 0}}
    with pytest.raises(InvalidSpec, match="does not allow"):
        store.create_reader_group(
            GroupName(group.scope, "a b"), start, settings=SETTINGS, identity=uuid4()
        )
    with pytest.raises(ScopeNotFound):
        store.create_reader_group(
            GroupName("no-scope", "g"), start, settings=SETTINGS, identity=uuid4()
        )
    assert store.reader_group(group) is None
    with pytest.raises(ReaderGroupNotFound):
        store.group_state(group)
