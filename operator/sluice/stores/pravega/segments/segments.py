"""The bytes and attributes of segments, as `sluice.stores.base.Segments` wants them."""

from __future__ import annotations

import time
from contextlib import contextmanager
from typing import TYPE_CHECKING, Final

from sluice.core.values.model import SegmentInfo
from sluice.errors import (
    ConditionFailed,
    NoSuchSegment,
    SegmentExists,
    SegmentSealed,
    SegmentTruncated,
    StoreBusy,
    StoreTimeout,
    StoreUnavailable,
    TokenExpired,
    WrongHost,
)
from sluice.stores.pravega.names import EVENT_COUNT, TokenAccess
from sluice.stores.pravega.segments.appender import SegmentAppender, append_at
from sluice.stores.pravega.segments.attributes import Attributes, expect, unless
from sluice.stores.pravega.segments.reader import BLOCK, DEPTH, read_blocks
from sluice.stores.pravega.segments.transport import PAUSES, Ask
from sluice.stores.pravega.wire import messages as m
from sluice.stores.pravega.wire.wire import NOT_SET, Message

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping, Sequence
    from uuid import UUID

    from sluice.stores.pravega.segments.transport import Answer, Transport
    from sluice.stores.reading import Block, Flow
    from sluice.stores.writing import CompareAndSet

_TRIES: Final = 5
"""How often a compare-and-set is tried that the store refuses though the value is as expected."""


class PravegaSegments:
    """`sluice.stores.base.Segments` over the wire protocol; safe to use from several threads.

    Requests are repeated a few times when a connection breaks or a segment moves. All of them can
    bear that: a repeated `create` or `delete` may say False though this very call did it, which
    both allow; `set_attribute` and `merge` look at the attribute when a repeat is refused, and
    take it for their own doing when it has the new value. So a condition's `new` should be a value
    that nobody else would set, or one for which it does not matter who did. Appends are never
    repeated: what the store has is the caller's to find out.

    Args:
        transport: ways to the segment stores.
        setups: ways on connections that nothing else uses; see `Attributes`.
        block: bytes asked for at a time by `read`.
        depth: reads on their way at a time.
    """

    def __init__(
        self, transport: Transport, setups: Transport, *, block: int = BLOCK, depth: int = DEPTH
    ) -> None:
        self._transport = transport
        self._attributes = Attributes(transport, setups)
        self._block = block
        self._depth = depth

    def digests(self, name: str) -> Mapping[int, bytes]:  # noqa: ARG002 - see Segments
        """None: nobody writes them down."""
        return {}

    def infos(self, names: Sequence[str]) -> list[SegmentInfo | None]:
        """Each segment as it is now, None where there is none."""

        def ask(name: str) -> Ask:
            return Ask(
                name,
                TokenAccess.READ,
                lambda request, token: m.GetSegmentInfo(request, name, token),
            )

        found = (
            unless(NoSuchSegment, answer, m.StreamSegmentInfo)
            for answer in self._transport.ask([ask(name) for name in names])
        )
        return [
            SegmentInfo(start=info.start, length=info.length, sealed=info.sealed)
            if info is not None and info.exists and not info.deleted
            else None
            for info in found
        ]

    def attributes(self, asked: Sequence[tuple[str, UUID]]) -> list[int | None]:
        """Stored values of attributes, None where the segment or the value does not exist."""
        return self._attributes.read(asked)

    def set_attribute(self, name: str, condition: CompareAndSet) -> bool:
        """Compare-and-set an attribute; False when it had another value.

        Of a segment that was merged before the store was started again, the store (0.13.0) says
        that there is none, and yet hangs up when an attribute of it is to be set. It does so for
        minutes, so it is looked for then.

        Raises:
            NoSuchSegment: there is no such segment.
            SegmentSealed: a sealed segment's attributes do not change any more.
        """
        attribute, expected, new = condition
        before = NOT_SET if expected is None else expected

        def change() -> tuple[Answer, bool]:
            answer = self._change(
                name,
                lambda request, token: m.UpdateAttribute(
                    request, name, attribute, new, before, token
                ),
            )
            return answer, expect(answer, m.AttributeUpdated).success

        try:
            return self._conditionally(name, condition, change)
        except StoreUnavailable:
            if self.infos([name]) == [None]:
                raise NoSuchSegment(f"there is no segment {name}", segment=name) from None
            raise

    def create(self, name: str) -> bool:
        """Make a segment; False when it is there already."""
        answer = self._change(
            name, lambda request, token: m.CreateSegment(request, name, token=token)
        )
        return unless(SegmentExists, answer, m.SegmentCreated) is not None

    def seal(self, name: str) -> None:
        """Let the segment take no more bytes; sealing twice is fine. NoSuchSegment.

        A sealed segment that the store (0.13.0) has put out of memory and loads again is, for all
        that it knows, not sealed yet in its long-term storage, and it only looks there if there is
        something to be done to the segment. Merged before it has looked, the segment keeps the
        target out of that storage for good, and the store turns in circles. So a segment that was
        sealed before is given something to be done: a truncation to where it begins.
        """
        answer = self._change(name, lambda request, token: m.SealSegment(request, name, token))
        if unless(SegmentSealed, answer, m.SegmentSealedReply) is None:
            self._have_it_looked_at(name)

    def _have_it_looked_at(self, name: str) -> None:
        """Have the store compare a sealed segment with its long-term storage.

        Where another driver merges it meanwhile, the store passes over the truncation: there is
        nothing left to do to a segment that is gone.
        """
        start = 0  # where all segments of our own begin; of another one the store says so
        answer = self._change(
            name, lambda request, token: m.TruncateSegment(request, name, start, token)
        )
        unless(SegmentTruncated, answer, m.SegmentTruncatedReply)

    def delete(self, name: str, *, length: int | None = None) -> bool:
        """Delete a segment; False when there is none, or when it has another `length`.

        The store (0.13.0) must never be told to delete a segment that was merged into another one:
        until the merge is in its long-term storage it still needs the source, answers that there is
        none, deletes it all the same, and from then on fails to load the container of both. So
        only a segment that is there is deleted. The caller sees to it that nobody merges it
        meanwhile.
        """
        (info,) = self.infos([name])
        if info is None or (length is not None and info.length != length):
            return False
        answer = self._change(name, lambda request, token: m.DeleteSegment(request, name, token))
        return unless(NoSuchSegment, answer, m.SegmentDeleted) is not None

    def merge(
        self,
        target: str,
        source: str,
        condition: CompareAndSet,
        *,
        events: int = 0,
        notes: Sequence[tuple[UUID, int]] = (),
    ) -> None:
        """Append the sealed `source` to `target`; see `sluice.stores.base.Segments`.

        The store seals `source` if it is not, even if it then refuses. It does not add the event
        count of `source` to that of `target`: `events` says how many to add, in the same step.
        """
        attribute, expected, new = condition
        before = NOT_SET if expected is None else expected
        updates = [m.attribute_update(attribute, m.UpdateKind.REPLACE_IF_EQUAL, new, before)]
        if events:
            updates.append(m.attribute_update(EVENT_COUNT, m.UpdateKind.ADD, events, NOT_SET))
        updates += [
            m.attribute_update(note, m.UpdateKind.REPLACE, value, NOT_SET) for note, value in notes
        ]

        def change() -> tuple[Answer, bool]:
            answer = self._change(
                target,
                lambda request, token: m.MergeSegments(
                    request, target, source, token, len(updates), b"".join(updates)
                ),
            )
            if isinstance(answer.reply, m.AttributeUpdated) and not answer.reply.success:
                return answer, False
            if isinstance(answer.reply, NoSuchSegment):
                if answer.repeated and self.attributes([(target, attribute)]) == [new]:
                    return answer, True
                raise NoSuchSegment(
                    f"cannot merge {source} into {target}: one of them does not exist",
                    segment=target,
                )
            expect(answer, m.SegmentsMerged)
            return answer, True

        if not self._conditionally(target, condition, change):
            raise ConditionFailed(
                f"{target} has another value of attribute {attribute} than {expected}",
                segment=target,
            )

    def read(
        self,
        name: str,
        start: int,
        end: int,
        *,
        flow: Flow | None = None,
        ahead: int | None = None,
    ) -> Iterator[Block]:
        """The bytes [start, end) in order, read ahead; see `sluice.stores.base.Segments`.

        A read that breaks off goes on where it was, a few times in a row without any progress.
        """
        position, tries, renewed = start, 0, False
        while position < end:
            try:
                for block in self._read(name, position, end, flow, ahead):
                    size = len(block.data)
                    yield block
                    position += size
                    tries, renewed = 0, False
            except (StoreUnavailable, WrongHost, TokenExpired) as error:
                again = self._transport.recover(name, TokenAccess.READ, error, first=not renewed)
                renewed = renewed or isinstance(error, TokenExpired)
                lost_patience = isinstance(again, StoreTimeout) or tries == len(PAUSES)
                if lost_patience or not again.retryable:
                    raise again from None
                time.sleep(PAUSES[tries])
                tries += 1

    def _read(
        self, name: str, start: int, end: int, flow: Flow | None, ahead: int | None
    ) -> Iterator[Block]:
        depth = self._depth if ahead is None else max(1, min(self._depth, ahead // self._block))
        with self._transport.session(name) as connection:
            yield from read_blocks(
                connection,
                name,
                start,
                end,
                token=lambda: self._transport.token(name, TokenAccess.READ)[0],
                timeout=self._transport.timeouts.stall,
                block=self._block,
                depth=depth,
                flow=flow,
            )

    @contextmanager
    def appender(self, name: str, *, writer: UUID, window: int) -> Iterator[SegmentAppender]:
        """A fenced append with at most `window` bytes in flight.

        Raises:
            NoSuchSegment: there is no such segment; a sealed one is noticed by the first append.
        """
        appender = SegmentAppender(self._transport, name, writer=writer, window=window)
        try:
            yield appender
        finally:
            appender.close()

    def append_at(self, name: str, offset: int, data: bytes) -> bool:
        """Append `data` if the segment is exactly `offset` long; False when it is not.

        Raises:
            NoSuchSegment, SegmentSealed: it cannot be appended to.
            StoreUnavailable: the connection broke; whether the store has the data is unknown.
        """
        return append_at(self._transport, name, offset, data)

    def _conditionally(
        self, name: str, condition: CompareAndSet, change: Callable[[], tuple[Answer, bool]]
    ) -> bool:
        """Compare and set; False when the attribute had another value.

        The store (0.13.0) also refuses it where somebody else has it load the attribute at the same
        moment, by a look even: it takes the other's loading for a change. So a refusal is not
        believed before the value was seen.

        Args:
            name: the segment.
            condition: what is compared and set.
            change: asks the store once; the answer, and whether it did it.

        Raises:
            StoreBusy: the attribute has the value, and the store refuses all the same.
        """
        repeated = False
        for _ in range(_TRIES):
            answer, done = change()
            if done:
                return True
            repeated = repeated or answer.repeated
            (value,) = self.attributes([(name, condition.attribute)])
            if value != condition.expected:
                return repeated and value == condition.new
        raise StoreBusy(f"{name} refuses what it should take: too many look at it at once")

    def _change(self, name: str, message: Callable[[int, str], Message]) -> Answer:
        return self._transport.ask_one(Ask(name, TokenAccess.READ_WRITE, message))
