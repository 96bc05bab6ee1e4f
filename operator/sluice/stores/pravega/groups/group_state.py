"""Read the state of a reader group from the internal stream that its readers write to.

The stream has one segment, and its events are records. A record is either a whole state of the
group, or changes of the state, each behind its length. The present state follows from all records.
From time to time a reader writes the whole state and truncates the stream before it. So at the head
there may be changes to a state that is gone.

A group is made in two steps. The controller makes the stream, then a client writes the first record
at offset 0. Of several clients only one can do so.
"""

from __future__ import annotations

from collections import defaultdict
from typing import TYPE_CHECKING, Final

from sluice.core.events.framing import HEADER
from sluice.core.values.groups import GroupState
from sluice.core.values.model import StreamName
from sluice.stores.pravega import names
from sluice.stores.pravega.groups import serialized as to
from sluice.stores.pravega.groups.serialized import Input, damaged

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping
    from uuid import UUID

    from sluice.core.values.groups import GroupName, GroupSettings
    from sluice.stores.pravega.names import SegmentOwner

_PREFIX: Final = "_RG"
_BEGINNING: Final = 1
_CHANGES: Final = 2

_SILENT: Final = "_SILENT_"
"""A part of the names of checkpoints that move no position."""

_WITHOUT_EFFECT: Final = frozenset({6, 9, 10, 11, 13})
"""Kinds of changes that move no position: distances to the tail, and checkpoints that are made,
forgotten, published or given up."""

_NO_KEYS: Final = -1.0
"""Stands for both ends of a segment's key range if the range is not known."""


def stream_of(group: GroupName) -> StreamName:
    """Return the internal stream of a group."""
    return StreamName(scope=group.scope, stream=_PREFIX + group.name)


def read(data: bytes) -> GroupState | None:
    """Return the state that the bytes of a group's stream describe; None if it has not begun.

    Raises:
        ProtocolError: the bytes are not in a format that Sluice knows.
    """
    state = _State()
    for record in _records(data):
        state.take(record)
    return state.told if state.begun else None


def first_record(
    start: Mapping[StreamName, Mapping[int, int]],
    *,
    settings: GroupSettings,
    identity: UUID,
    generation: int = 0,
) -> bytes:
    """Return the first event of a group that reads its streams without end.

    Args:
        start: offsets in bytes by segment id, by stream, at which the group begins.
        settings: the group's settings.
        identity: the identity by which the controller knows the group.
        generation: how often the controller has configured the group anew.
    """
    places = {
        names.segment_name(stream, segment): offset
        for stream, cut in start.items()
        for segment, offset in cut.items()
    }
    with_keys = {to.text(name) + 2 * to.double(_NO_KEYS): at for name, at in places.items()}
    state = to.versioned(
        [
            to.array(_config(start, settings, identity, generation))
            + to.mapping(places, to.text, to.int64)
            + to.count(0),  # no segment has an end
            to.mapping(with_keys, bytes, to.int64),
            b"\0",  # it is not being configured anew
        ],
        kind=0,
    )
    record = to.int32(_BEGINNING) + state
    return to.int32(0) + to.int32(len(record)) + record


def _config(
    start: Mapping[StreamName, Mapping[int, int]],
    settings: GroupSettings,
    identity: UUID,
    generation: int,
) -> bytes:
    cuts = {to.text(str(stream)): to.array(_cut(stream, cut)) for stream, cut in start.items()}
    without_end = dict.fromkeys(cuts, to.array(b""))
    first = (
        to.int64(settings.checkpoints)
        + to.int64(settings.refresh)
        + to.mapping(cuts, bytes, bytes)
        + to.mapping(without_end, bytes, bytes)
    )
    second = first + to.int32(settings.outstanding)
    third = to.count(settings.retention) + to.int64(generation) + identity.bytes
    return to.versioned([first, second, third])


def _cut(stream: StreamName, cut: Mapping[int, int]) -> bytes:
    offsets = to.mapping(cut, to.compact, lambda offset: to.compact(offset, sign=True))
    return to.versioned([to.text(str(stream)) + offsets], version=1)


def _records(data: bytes) -> Iterator[Input]:
    whole = Input(data)
    while whole.left >= HEADER:
        kind, size = whole.int32(), whole.int32()
        if kind != 0:
            raise damaged(f"it has an event of kind {kind}")
        yield Input(whole.take(size))
    if whole.left:
        raise damaged("it ends inside an event")


class _State:
    """A group's state, as it follows from the records read so far."""

    def __init__(self) -> None:
        self.begun = False
        self._clear()

    def _clear(self) -> None:
        self._reading: dict[str, dict[SegmentOwner, int]] = {}
        self._free: dict[SegmentOwner, int] = {}
        self._awaited: dict[SegmentOwner, set[int]] = {}
        self._changing = False

    @property
    def told(self) -> GroupState:
        """The state so far."""
        positions: defaultdict[StreamName, dict[int, int]] = defaultdict(dict)
        awaiting: defaultdict[StreamName, dict[int, frozenset[int]]] = defaultdict(dict)
        for places in (self._free, *self._reading.values()):
            for place, offset in places.items():
                positions[place.stream][place.segment] = offset
        for place, unread in self._awaited.items():
            awaiting[place.stream][place.segment] = frozenset(unread)
        readers = tuple(sorted(self._reading))
        return GroupState(readers, dict(positions), dict(awaiting), self._changing)

    def take(self, record: Input) -> None:
        """Apply the next record to the state."""
        kind = record.int32()
        if kind == _BEGINNING:
            self._change(record)
        elif kind == _CHANGES:
            while record.left:
                change = Input(record.take(record.int32()))
                if self.begun:  # else the state that it changes was truncated; a whole one follows
                    self._change(change)
        else:
            raise damaged(f"it has a record of kind {kind}")

    def _change(self, data: Input) -> None:
        data.format()
        kind = data.byte()
        if kind in _WITHOUT_EFFECT:
            return
        known = {
            0: self._begin,
            1: self._begin_anew,
            2: self._join,
            3: self._leave,
            4: self._release,
            5: self._acquire,
            7: self._complete,
            8: self._reach,
            12: self._configure,
        }
        if kind not in known:
            raise damaged(f"it has a change of kind {kind}")
        try:
            known[kind](data)
        except KeyError as missing:
            raise damaged(f"a change of kind {kind} is about {missing.args[0]}") from None

    def _begin(self, data: Input) -> None:
        first, *more = data.revisions(3)
        first.array()  # skip the configuration: the controller has it as well
        self._clear()
        self.begun = True
        self._free = first.mapping(_place(first), first.int64)
        if len(more) > 1:
            self._changing = more[1].boolean()

    def _begin_anew(self, data: Input) -> None:
        first, *more = data.revisions(3)
        first.array()
        first.array()  # checkpoints
        first.mapping(first.text, first.int64)  # distances
        self._clear()
        self.begun = True
        self._awaited = first.mapping(_place(first), lambda: set(first.items(first.int64)))
        self._reading = first.mapping(first.text, lambda: first.mapping(_place(first), first.int64))
        self._free = first.mapping(_place(first), first.int64)
        if len(more) > 1:
            self._changing = more[1].boolean()

    def _join(self, data: Input) -> None:
        (first,) = data.revisions(1)
        self._reading.setdefault(first.text(), {})

    def _leave(self, data: Input) -> None:
        (first,) = data.revisions(1)
        last = self._reading.pop(first.text(), {})
        told = first.mapping(_place(first), first.int64)
        self._free |= {place: told.get(place, offset) for place, offset in last.items()}

    def _release(self, data: Input) -> None:
        (first,) = data.revisions(1)
        mine, place = self._reading[first.text()], _place(first)()
        del mine[place]
        self._free[place] = first.int64()

    def _acquire(self, data: Input) -> None:
        (first,) = data.revisions(1)
        mine, place = self._reading[first.text()], _place(first)()
        mine[place] = self._free.pop(place)

    def _complete(self, data: Input) -> None:
        first, *_ = data.revisions(2)
        mine, place = self._reading[first.text()], _place(first)()
        del mine[place]
        for following, before in first.mapping(
            _place(first), lambda: first.items(first.int64)
        ).items():
            self._awaited.setdefault(following, set(before))
        for unread in self._awaited.values():
            unread.discard(place.segment)
        for ready in [place for place, unread in self._awaited.items() if not unread]:
            del self._awaited[ready]
            self._free[ready] = 0

    def _reach(self, data: Input) -> None:
        (first,) = data.revisions(1)
        checkpoint, reader = first.text(), first.text()
        reached = first.mapping(_place(first), first.int64)
        if _SILENT not in checkpoint:
            mine = self._reading[reader]
            mine |= {place: at for place, at in reached.items() if place in mine}

    def _configure(self, data: Input) -> None:
        (first,) = data.revisions(1)
        self._changing = first.boolean()


def _place(data: Input) -> Callable[[], SegmentOwner]:
    def read() -> SegmentOwner:
        name = data.text()
        try:
            return names.owner_of(name)
        except ValueError:
            raise damaged(f"{name!r} stands where a segment is due") from None

    return read
