"""Attributes of segments, read from where the store keeps them.

Pravega (0.13.0) answers GetSegmentAttribute from a segment's metadata in memory. Core attributes,
such as the event count and the creation time, are always there. All others are written to an index
in long-term storage and leave the memory some minutes after the segment was last used; from then
on the store answers that they are not set (`PravegaRequestProcessor.getSegmentAttribute`).

A compare-and-set loads the value that it is to compare, so one that changes nothing makes the next
GetSegmentAttribute right. A sealed segment takes none. There SetupAppend asks the index
(`AppendProcessor.setupAppend`): to the store a writer's last event number is the attribute whose id
is the writer's. So a mark is read by setting up an append of the writer that is called like the
mark, and appending nothing.
"""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING, Final, TypeVar

from sluice.errors import (
    BackendError,
    NoSuchSegment,
    PermissionDenied,
    ProtocolError,
    SegmentSealed,
)
from sluice.stores.pravega import messages as m
from sluice.stores.pravega.names import Access, is_core
from sluice.stores.pravega.transport import Ask
from sluice.stores.pravega.wire import NOT_SET, Message

if TYPE_CHECKING:
    from collections.abc import Sequence
    from uuid import UUID

    from sluice.stores.pravega.transport import Answer, Transport

_M = TypeVar("_M", bound=Message)

_NOTHING: Final = NOT_SET + 1
"""Replaced by itself to have an attribute loaded: nothing changes, whatever is set."""


class Attributes:
    """Reads attributes of many segments with few round trips; safe to use from several threads.

    Args:
        transport: for requests that leave nothing behind on a connection.
        setups: for SetupAppend, on connections of its own. The store remembers each writer of a
            connection until that ends, and ends it when the token expires or a segment is deleted.
    """

    def __init__(self, transport: Transport, setups: Transport) -> None:
        self._transport = transport
        self._setups = setups

    def read(self, asked: Sequence[tuple[str, UUID]]) -> list[int | None]:
        """Read stored values, None where the segment or the value does not exist.

        Only what the memory lacks is loaded: the memory is never behind the index, and a store may
        hang up when an attribute is loaded of a segment that was merged into another one.

        Raises:
            PermissionDenied: the user may only read, and the segment is sealed.
        """
        values = self._from_memory(asked)
        unknown = [
            pair
            for pair, value in zip(asked, values, strict=True)
            if value == NOT_SET and not is_core(pair[1])
        ]
        stored = self._loaded(unknown) if unknown else {}
        found = [stored.get(pair, value) for pair, value in zip(asked, values, strict=True)]
        return [None if value == NOT_SET else value for value in found]

    def _from_memory(self, asked: Sequence[tuple[str, UUID]]) -> list[int | None]:
        """Ask for values in memory: NOT_SET where there is none, None without a segment."""
        return self._values(
            self._transport,
            m.Attribute,
            [Ask(name, Access.READ, partial(_get, name, attribute)) for name, attribute in asked],
        )

    def _loaded(self, asked: Sequence[tuple[str, UUID]]) -> dict[tuple[str, UUID], int | None]:
        """Have values loaded by updates that change nothing, and ask for them again.

        The store loads what it has not got in memory before it compares, and wants no more than
        the right to read. Of two that have it load a value at once, it refuses one, which is all
        the same here; to a second SetupAppend it would say that another writer was faster, and
        hang up.
        """
        answers = self._transport.ask(
            [Ask(name, Access.READ, partial(_touch, name, attribute)) for name, attribute in asked]
        )
        sealed, others = [], []
        for pair, answer in zip(asked, answers, strict=True):
            if isinstance(answer.reply, SegmentSealed):
                sealed.append(pair)
                continue
            unless(NoSuchSegment, answer, m.AttributeUpdated)
            others.append(pair)
        found = dict(zip(others, self._from_memory(others), strict=True)) if others else {}
        return found | (dict(zip(sealed, self._from_index(sealed), strict=True)) if sealed else {})

    def _from_index(self, asked: Sequence[tuple[str, UUID]]) -> list[int | None]:
        """Ask for stored values of sealed segments, which load nothing into the memory."""
        setups = [
            Ask(name, Access.READ_WRITE, partial(_set_up, name, attribute))
            for name, attribute in asked
        ]
        try:
            return self._values(self._setups, m.AppendSetup, setups)
        except PermissionDenied as error:
            raise PermissionDenied(
                f"what is noted of {asked[0][0]}, which is sealed, is told to users with "
                "READ_UPDATE",
                remedy="Grant the user READ_UPDATE on the stream.",
            ) from error

    @staticmethod
    def _values(
        transport: Transport, kind: type[m.Attribute | m.AppendSetup], asks: Sequence[Ask]
    ) -> list[int | None]:
        found = (unless(NoSuchSegment, answer, kind) for answer in transport.ask(asks))
        return [
            None if one is None else one.value if isinstance(one, m.Attribute) else one.last
            for one in found
        ]


def _get(name: str, attribute: UUID, request: int, token: str) -> Message:
    return m.GetAttribute(request, name, attribute, token)


def _set_up(name: str, attribute: UUID, request: int, token: str) -> Message:
    return m.SetupAppend(request, attribute, name, token)


def _touch(name: str, attribute: UUID, request: int, token: str) -> Message:
    return m.UpdateAttribute(request, name, attribute, _NOTHING, _NOTHING, token)


def expect(answer: Answer, kind: type[_M]) -> _M:
    """Return the reply if it is of this kind; raise a refusal."""
    if isinstance(answer.reply, BackendError):
        raise answer.reply
    if not isinstance(answer.reply, kind):
        raise ProtocolError(f"a {answer.reply.TYPE.name} where a {kind.TYPE.name} was due")
    return answer.reply


def unless(refusal: type[BackendError], answer: Answer, kind: type[_M]) -> _M | None:
    """Return the reply if it is of this kind, None for this refusal; raise any other."""
    return None if isinstance(answer.reply, refusal) else expect(answer, kind)
