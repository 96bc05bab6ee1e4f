"""Read attributes of segments, also those that have left the store's memory.

Pravega (0.13.0) answers GetSegmentAttribute from a segment's metadata in memory. Core attributes,
such as the event count and the creation time, are always there. All others are written to an index
in long-term storage, and leave the memory some minutes after the segment was last used. From then
on the store answers that they are not set (`PravegaRequestProcessor.getSegmentAttribute`).

SetupAppend reads the index (`AppendProcessor.setupAppend`): the store keeps a writer's last event
number as the attribute with the writer's id. So such an attribute is read by setting up an append
of a writer with the attribute's id, and appending nothing. That works for sealed segments as well.
"""

from __future__ import annotations

import time
from functools import partial
from typing import TYPE_CHECKING, Final, TypeVar

from sluice.errors import (
    BackendError,
    InvalidEventNumber,
    NoSuchSegment,
    PermissionDenied,
    ProtocolError,
    SegmentSealed,
    StoreBusy,
    StoreTimeout,
    StoreUnavailable,
)
from sluice.stores.pravega.names import CREATION_TIME, TokenAccess, is_core
from sluice.stores.pravega.segments.transport import Ask
from sluice.stores.pravega.wire import messages as m
from sluice.stores.pravega.wire.wire import NOT_SET, Message

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from uuid import UUID

    from sluice.stores.pravega.segments.transport import Response, Transport

_M = TypeVar("_M", bound=Message)

_NOTHING: Final = NOT_SET + 1
"""Replaced by itself to make the store load an attribute. Nothing changes, whatever its value."""

_PAUSES: Final = (0.05, 0.1, 0.2, 0.4, 0.8)
"""Seconds before each further try while another client has the store load the same attribute."""


class Attributes:
    """Reads attributes of many segments with few round trips; safe to use from several threads.

    Args:
        transport: sends requests that leave nothing behind on a connection.
        setups: sends SetupAppend on connections of its own. The store remembers each writer of a
            connection until it ends. It ends the connection when the token expires or a segment
            is deleted.
    """

    def __init__(self, transport: Transport, setups: Transport) -> None:
        self._transport = transport
        self._setups = setups

    def read(self, asked: Sequence[tuple[str, UUID]]) -> list[int | None]:
        """Read stored values; None where the segment or the value does not exist.

        The index is asked only for values that are not in memory. The memory is never behind the
        index. And a store may hang up when an append is set up to a segment that was merged into
        another one.

        Raises:
            PermissionDenied: the user may only read, and the segment is sealed.
            StoreBusy: in each try, other clients had the store load the same attributes.
        """
        values = self._from_memory(asked)
        unknown = dict.fromkeys(
            pair
            for pair, value in zip(asked, values, strict=True)
            if value == NOT_SET and not is_core(pair[1])
        )
        stored = self._stored(list(unknown)) if unknown else {}
        found = [stored.get(pair, value) for pair, value in zip(asked, values, strict=True)]
        return [None if value == NOT_SET else value for value in found]

    def _from_memory(self, asked: Sequence[tuple[str, UUID]]) -> list[int | None]:
        """Ask for values in memory: NOT_SET for a missing value, None for a missing segment."""
        return self._values(
            m.Attribute,
            self._transport.ask(
                [
                    Ask(name, TokenAccess.READ, partial(_get, name, attribute))
                    for name, attribute in asked
                ]
            ),
        )

    def _stored(self, asked: Sequence[tuple[str, UUID]]) -> dict[tuple[str, UUID], int | None]:
        """Ask for stored values: NOT_SET for a missing value, None for a missing segment.

        The store puts a loaded value into its memory by an update. If two clients have it load the
        same value at once, it refuses one of them as if another writer had been faster, and hangs
        up. So such requests are repeated.
        """
        found: dict[tuple[str, UUID], int | None] = {}
        for pause in (*_PAUSES, None):
            setups = [
                Ask(name, TokenAccess.READ_WRITE, partial(_set_up, name, attribute))
                for name, attribute in asked
            ]
            try:
                answers = dict(zip(asked, self._setups.ask(setups), strict=True))
            except PermissionDenied:
                return found | self._loaded(asked)
            asked = _contested(answers)
            told = [pair for pair in answers if pair not in asked]
            values = self._values(m.AppendSetup, [answers[pair] for pair in told])
            found |= dict(zip(told, values, strict=True))
            if not asked:
                return found
            if pause is not None:
                time.sleep(pause)
        raise StoreBusy(f"too many look at {asked[0][0]} at once")

    def _loaded(self, asked: Sequence[tuple[str, UUID]]) -> dict[tuple[str, UUID], int | None]:
        """Ask as a user who may not append: have values loaded by updates that change nothing.

        For such updates the store wants only the right to read. Before it compares, it loads a
        value that is not in memory; then it refuses the update. But it also refuses the update
        while it is still loading the value for another client. So a second update follows, which
        replaces the segment's creation time by itself. The store carries it out after the loading,
        so once it succeeds the values are in memory.
        """
        touched = self._transport.ask(
            [
                Ask(name, TokenAccess.READ, partial(_touch, name, attribute))
                for name, attribute in asked
            ]
        )
        for (name, _), answer in zip(asked, touched, strict=True):
            if isinstance(answer.reply, SegmentSealed):
                raise PermissionDenied(
                    f"what is noted of {name}, which is sealed, is told to users with READ_UPDATE",
                    remedy="Grant the user READ_UPDATE on the stream.",
                )
            unless(NoSuchSegment, answer, m.AttributeUpdated)
        names = list(dict.fromkeys(name for name, _ in asked))
        made = self._from_memory([(name, CREATION_TIME) for name in names])
        passed = self._transport.ask(
            [
                Ask(name, TokenAccess.READ, partial(_keep, name, CREATION_TIME, value))
                for name, value in zip(names, made, strict=True)
                if value is not None
            ]
        )
        for answer in passed:
            unless(NoSuchSegment, answer, m.AttributeUpdated)
        return dict(zip(asked, self._from_memory(asked), strict=True))

    @staticmethod
    def _values(
        kind: type[m.Attribute | m.AppendSetup], answers: Sequence[Response]
    ) -> list[int | None]:
        found = (unless(NoSuchSegment, answer, kind) for answer in answers)
        return [
            None if one is None else one.value if isinstance(one, m.Attribute) else one.last
            for one in found
        ]


def _contested(answers: Mapping[tuple[str, UUID], Response]) -> list[tuple[str, UUID]]:
    """Return the requests to repeat after another client had the store load a value just then.

    These are the requests that were refused for that reason, and those lost with the connection.
    """
    if not any(isinstance(answer.reply, InvalidEventNumber) for answer in answers.values()):
        return []
    return [
        pair
        for pair, answer in answers.items()
        if isinstance(answer.reply, InvalidEventNumber | StoreUnavailable)
        and not isinstance(answer.reply, StoreTimeout)
    ]


def _get(name: str, attribute: UUID, request: int, token: str) -> Message:
    return m.GetAttribute(request, name, attribute, token)


def _set_up(name: str, attribute: UUID, request: int, token: str) -> Message:
    return m.SetupAppend(request, attribute, name, token)


def _touch(name: str, attribute: UUID, request: int, token: str) -> Message:
    return m.UpdateAttribute(request, name, attribute, _NOTHING, _NOTHING, token)


def _keep(name: str, attribute: UUID, value: int, request: int, token: str) -> Message:
    return m.UpdateAttribute(request, name, attribute, value, value, token)


def expect(answer: Response, kind: type[_M]) -> _M:
    """Return the reply, which must be of this kind; raise it if it is a refusal."""
    if isinstance(answer.reply, BackendError):
        raise answer.reply
    if not isinstance(answer.reply, kind):
        raise ProtocolError(f"a {answer.reply.TYPE.name} where a {kind.TYPE.name} was due")
    return answer.reply


def unless(refusal: type[BackendError], answer: Response, kind: type[_M]) -> _M | None:
    """Return the reply if it is of this kind, None for this refusal; raise any other."""
    return None if isinstance(answer.reply, refusal) else expect(answer, kind)
