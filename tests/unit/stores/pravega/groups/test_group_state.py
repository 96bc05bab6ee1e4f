"""The state of reader groups as the official client writes it."""

from __future__ import annotations

import json
from pathlib import Path
from uuid import UUID

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sluice.core.values.groups import GroupSettings, GroupState
from sluice.core.values.model import StreamName
from sluice.errors import ProtocolError
from sluice.stores.pravega import names
from sluice.stores.pravega.groups import group_state
from sluice.stores.pravega.groups import serialized as to

EPOCH = 1 << 32
STREAM = StreamName(scope="s", stream="a")
SETTINGS = GroupSettings(500, 500)
IDENTITY = UUID(int=7)

RECORDED: dict[str, str] = json.loads(Path(__file__).with_name("reader_group.json").read_text())
"""What the client wrote; it says there what it is."""

starts = st.dictionaries(
    st.builds(
        StreamName,
        scope=st.from_regex("[a-z0-9-]{1,20}", fullmatch=True),
        stream=st.from_regex("[a-z0-9-]{1,20}", fullmatch=True),
    ),
    st.dictionaries(
        st.builds(names.segment_id, st.integers(0, 1 << 20), st.integers(0, (1 << 31) - 1)),
        st.integers(0, (1 << 61) - 1),
        min_size=1,
        max_size=20,
    ),
    min_size=1,
    max_size=3,
)


def _event(record: bytes) -> bytes:
    return to.int32(0) + to.int32(len(record)) + record


def _begun(**cut: int) -> bytes:
    """Return a group that begins in these segments of the stream, by number."""
    start = {STREAM: {int(number.strip("_")): at for number, at in cut.items()}}
    return group_state.first_record(start, settings=SETTINGS, identity=IDENTITY)


def _changes(*changes: bytes) -> bytes:
    return _event(to.int32(2) + b"".join(to.int32(len(one)) + one for one in changes))


def _change(kind: int, *revisions: bytes) -> bytes:
    return to.versioned(revisions, kind=kind)


def _place(segment: int) -> bytes:
    return to.text(names.segment_name(STREAM, segment))


def _places(places: dict[int, int]) -> bytes:
    return to.mapping(places, _place, to.int64)


READER = to.text("r")
JOIN = _change(2, READER)


def _acquire(segment: int) -> bytes:
    return _change(5, READER + _place(segment))


def _leave(**told: int) -> bytes:
    places = {int(number.strip("_")): at for number, at in told.items()}
    return _change(3, READER + _places(places))


def _reach(checkpoint: str, **reached: int) -> bytes:
    places = {int(number.strip("_")): at for number, at in reached.items()}
    return _change(8, to.text(checkpoint) + READER + _places(places))


def _complete(segment: int, following: dict[int, list[int]]) -> bytes:
    after = to.mapping(
        following,
        _place,
        lambda before: to.count(len(before)) + b"".join(map(to.int64, before)),
    )
    return _change(7, READER + _place(segment) + after, to.count(0))


def _read(*events: bytes) -> GroupState:
    state = group_state.read(b"".join(events))
    assert state is not None
    return state


def _recorded(*names: str) -> GroupState:
    return _read(*(bytes.fromhex(RECORDED[name]) for name in names))


def test_what_readers_wrote_is_read() -> None:
    """The record is of two readers in turn, with a scale event and checkpoints.

    Each reader read 1,500 events of 108 bytes.
    """
    at = {1: 165_996, EPOCH | 2: 25_164, EPOCH | 3: 24_840}
    assert _recorded("life") == GroupState((), {STREAM: at}, {})


def test_each_change_of_the_client_is_read() -> None:
    """The state equals the client's own, also after the client wrote it anew."""
    awaiting = {STREAM: {EPOCH | 2: frozenset({1})}}
    working = GroupState(("r",), {STREAM: {1: 60}}, awaiting)
    left = GroupState((), {STREAM: {1: 77}}, awaiting, changing=True)
    assert _recorded("begun") == GroupState((), {STREAM: {0: 5, 1: 6}}, {})
    assert _recorded("begun", "changes") == _recorded("anew") == working
    assert _recorded("begun", "changes", "anew") == _recorded("changes", "anew") == working
    assert _recorded("begun", "changes", "more") == _recorded("anewAgain") == left
    assert _recorded("anew", "more") == left


@given(starts)
def test_a_group_begins_where_it_is_told(start: dict[StreamName, dict[int, int]]) -> None:
    """Sluice's own first record has the positions that were given."""
    record = group_state.first_record(start, settings=SETTINGS, identity=IDENTITY)
    assert _read(record) == GroupState((), start, {})


def test_readers_online_are_named() -> None:
    """The state has the readers' names, and the positions of assigned and unassigned segments."""
    state = _read(_begun(_0=5, _1=6), _changes(JOIN, _acquire(1)))
    assert state == GroupState(("r",), {STREAM: {0: 5, 1: 6}}, {})


def test_a_reader_that_leaves_tells_its_positions() -> None:
    """A segment that the reader does not mention keeps its position, as in the client."""
    begun = _begun(_0=5, _1=6)
    state = _read(begun, _changes(JOIN, _acquire(0), _acquire(1)), _changes(_leave(_1=60)))
    assert state == GroupState((), {STREAM: {0: 5, 1: 60}}, {})


@pytest.mark.parametrize(("checkpoint", "known"), [("c", 50), ("c_SILENT_", 5)])
def test_a_checkpoint_tells_positions_unless_it_is_silent(checkpoint: str, known: int) -> None:
    """A checkpoint's positions count when a dead reader is removed without positions."""
    changes = (JOIN, _acquire(0), _reach(checkpoint, _0=50), _leave())
    assert _read(_begun(_0=5), _changes(*changes)).positions == {STREAM: {0: known}}


def test_a_released_segment_is_where_its_reader_said() -> None:
    """Another reader begins at the position in the release."""
    release = _change(4, READER + _place(0) + to.int64(77))
    assert _read(_begun(_0=5), _changes(JOIN, _acquire(0), release)).positions == {STREAM: {0: 77}}


def test_a_merged_segment_is_awaited_until_all_before_it_are_read() -> None:
    """Until then the group has no position for the keys of the predecessors that it has read."""
    merged = EPOCH | 2
    begun = (_begun(_0=5, _1=6), _changes(JOIN, _acquire(0), _acquire(1)))
    first = _changes(_complete(0, {merged: [0, 1]}))
    waiting = {STREAM: {merged: frozenset({1})}}
    assert _read(*begun, first) == GroupState(("r",), {STREAM: {1: 6}}, waiting)
    second = _changes(_complete(1, {merged: [0, 1]}))
    assert _read(*begun, first, second) == GroupState(("r",), {STREAM: {merged: 0}}, {})


def test_the_whole_state_written_anew_counts() -> None:
    """Earlier records are ignored, so they may be truncated."""
    merged = EPOCH | 2
    anew = to.versioned(
        [
            to.array(b"config")
            + to.array(b"checkpoints")
            + to.mapping({READER: to.int64(1)}, bytes, bytes)
            + to.mapping({merged: to.count(1) + to.int64(1)}, _place, bytes)
            + to.mapping({READER: _places({1: 9})}, bytes, bytes)
            + _places({3: 4})
            + to.count(0),
            b"more",
            b"\1",
        ],
        kind=1,
    )
    awaiting = {STREAM: {merged: frozenset({1})}}
    expected = GroupState(("r",), {STREAM: {3: 4, 1: 9}}, awaiting, changing=True)
    for before in (_begun(_0=5), _changes(JOIN, _acquire(0)), b""):
        assert _read(before, _event(to.int32(1) + anew)) == expected


def test_a_group_being_configured_anew_says_so() -> None:
    """The state is marked as changing until the group begins again, at new positions."""
    configuring = _changes(_change(12, b"\1"))
    assert _read(_begun(_0=5), configuring).changing
    again = to.versioned([to.array(b"config") + _places({0: 9}) + to.count(0)], kind=0)
    assert _read(_begun(_0=5), configuring, _changes(again)) == GroupState((), {STREAM: {0: 9}}, {})


def test_without_a_beginning_there_is_no_state() -> None:
    """The controller has made the group, but no client has written its first record."""
    assert group_state.read(b"") is None


@pytest.mark.parametrize(
    "bad",
    [
        _event(to.int32(3)),
        _event(b"abc"),
        to.int32(1) + to.int32(4) + to.int32(2),
        _event(to.int32(2))[:-1],
        _event(to.int32(2))[:5],
        _changes(_change(14, b"")),
        _changes(b"\1" + JOIN[1:]),
        _changes(JOIN, _change(2, READER, b"more")),
        _changes(to.versioned([READER], version=1, kind=2)),
        _changes(JOIN[:-1]),
        _changes(_acquire(0)),
        _changes(JOIN, _acquire(1)),
        _changes(JOIN, _change(5, READER + to.text("no segment"))),
    ],
    ids=range(13),
)
def test_what_no_known_client_writes_is_refused(bad: bytes) -> None:
    """Unknown kinds and versions, wrong lengths and contradictions raise ProtocolError."""
    with pytest.raises(ProtocolError, match="cannot be read"):
        _read(_begun(_0=5), bad)


@given(st.binary(max_size=200))
def test_any_bytes_are_a_state_or_refused(data: bytes) -> None:
    """Arbitrary bytes raise no error but ProtocolError, and cause no endless work."""
    try:
        group_state.read(_begun(_0=5) + data)
    except ProtocolError:
        return
