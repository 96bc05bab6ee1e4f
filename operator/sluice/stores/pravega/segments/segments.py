"""Read and change the bytes and attributes of segments over the wire protocol."""

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
    StoreMoving,
    StoreRejected,
    StoreTimeout,
    StoreUnavailable,
    TokenExpired,
)
from sluice.stores.pravega.names import EVENT_COUNT, TokenAccess
from sluice.stores.pravega.segments.appender import SegmentAppender, append_at
from sluice.stores.pravega.segments.attributes import Attributes, expect, unless
from sluice.stores.pravega.segments.reader import BLOCK, DEPTH, MOST_DEPTH, Depth, read_blocks
from sluice.stores.pravega.segments.tails import SegmentTails
from sluice.stores.pravega.segments.transport import PAUSES, Ask
from sluice.stores.pravega.wire import messages as m
from sluice.stores.pravega.wire.wire import NOT_SET, Message

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping, Sequence
    from uuid import UUID

    from sluice.stores.pravega.segments.transport import Response, Transport
    from sluice.stores.reading import Block, Flow
    from sluice.stores.writing import CompareAndSet

_TRIES: Final = 5
"""Tries of a compare-and-set that the store refuses although the value is as expected."""


class PravegaSegments:
    """`SegmentReader` and `SegmentSink` for Pravega; safe to use from several threads.

    Requests are repeated a few times when a connection breaks or a segment moves. All of them can
    be repeated safely. A repeated `create` or `delete` may return False although this very call did
    it, which both allow. `set_attribute` and `merge` look at the attribute when a repeat is
    refused: if it has the new value, they take the change for their own. So a condition's `new`
    should be a value that no other client sets, or one for which it does not matter who set it.
    Appends are never repeated: the caller has to find out which bytes the store has.

    Args:
        transport: sends requests to the segment stores.
        setups: sends SetupAppend on connections of its own; see `Attributes`.
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
        """Return no digests: a live store records none."""
        return {}

    def infos(self, names: Sequence[str]) -> list[SegmentInfo | None]:
        """Return the present state of each segment; None for a missing one."""

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
        """Return stored values of attributes; None where the segment or value does not exist."""
        return self._attributes.read(asked)

    def set_attribute(self, name: str, condition: CompareAndSet) -> bool:
        """Compare and set an attribute; False if it had another value.

        Raises:
            NoSuchSegment: there is no such segment.
            SegmentSealed: a sealed segment's attributes cannot be changed.
        """
        attribute, expected, new = condition
        before = NOT_SET if expected is None else expected

        def change() -> tuple[Response, bool]:
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
            # If a segment was merged before a restart of the store (0.13.0), the store says that it
            # does not exist, but hangs up for minutes when an attribute of it is set. So look.
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

        The store (0.13.0) may drop a sealed segment from memory and load it again. Then it takes
        the segment for not yet sealed in long-term storage, and looks there only if it has some
        work to do on the segment. If the segment is merged before that, the store can never write
        the target to long-term storage, and tries for ever. So a segment that was sealed already is
        given some work: a truncation to where it begins.
        """
        answer = self._change(name, lambda request, token: m.SealSegment(request, name, token))
        if unless(SegmentSealed, answer, m.SegmentSealedReply) is None:
            self._have_it_looked_at(name)

    def _have_it_looked_at(self, name: str) -> None:
        """Have the store compare a sealed segment with its long-term storage.

        If another driver merges the segment meanwhile, the store skips the truncation, as the
        segment is gone.
        """
        self.truncate_segment(name, 0)

    def truncate_segment(self, name: str, offset: int) -> None:
        """Drop a segment's bytes before `offset`; see `SegmentSink.truncate_segment`.

        The store answers with the first offset that is there if it is another one than `offset`:
        behind it if the segment was truncated further, and before it if the segment is shorter.
        """
        answer = self._change(
            name, lambda request, token: m.TruncateSegment(request, name, offset, token)
        )
        unless(SegmentTruncated, answer, m.SegmentTruncatedReply)
        if isinstance(answer.reply, SegmentTruncated) and answer.reply.start_offset < offset:
            raise StoreRejected(f"{name} ends before byte {offset}")

    def delete(self, name: str, *, length: int | None = None) -> bool:
        """Delete a segment; False if there is none, or if it has another `length`.

        The store (0.13.0) must never be told to delete a segment that was merged into another one.
        It needs the source until the merge is in its long-term storage. It answers that there is no
        such segment, deletes it all the same, and can then never load the container of both again.
        So only a segment that exists is deleted. The caller makes sure that no driver merges it
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
        """Append the sealed `source` to `target`; see `SegmentSink.merge`.

        The store seals `source` if it is not sealed, even if it then refuses the merge. It does not
        add the event count of `source` to that of `target`: `events` is added in the same step.
        """
        attribute, expected, new = condition
        before = NOT_SET if expected is None else expected
        updates = [m.attribute_update(attribute, m.UpdateKind.REPLACE_IF_EQUAL, new, before)]
        if events:
            updates.append(m.attribute_update(EVENT_COUNT, m.UpdateKind.ADD, events, NOT_SET))
        updates += [
            m.attribute_update(note, m.UpdateKind.REPLACE, value, NOT_SET) for note, value in notes
        ]

        def change() -> tuple[Response, bool]:
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
        """Read the bytes [start, end) in order, ahead of the caller; see `SegmentReader.read`.

        A read that breaks off goes on where it was. It gives up after a few failures in a row
        without any progress.
        """
        position, tries, renewed = start, 0, False
        while position < end:
            try:
                for block in self._read(name, position, end, flow, ahead):
                    size = len(block.data)
                    yield block
                    position += size
                    tries, renewed = 0, False
            except (StoreUnavailable, StoreMoving, TokenExpired) as error:
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
        most = MOST_DEPTH if ahead is None else max(1, ahead // self._block)
        with self._transport.session(name) as connection:
            yield from read_blocks(
                connection,
                name,
                start,
                end,
                token=lambda: self._transport.token(name, TokenAccess.READ)[0],
                timeout=self._transport.timeouts.stall,
                block=self._block,
                depth=Depth(self._depth, most),
                flow=flow,
            )

    @contextmanager
    def tails(self, *, most: int) -> Iterator[SegmentTails]:
        """Follow segments in the block; see `TailReader.tails`."""
        tails = SegmentTails(self._transport, most=most)
        try:
            yield tails
        finally:
            tails.close()

    @contextmanager
    def appender(self, name: str, *, writer: UUID, window: int) -> Iterator[SegmentAppender]:
        """Open a fenced append with at most `window` bytes in flight.

        Raises:
            NoSuchSegment: there is no such segment. A sealed one is noticed by the first append.
        """
        appender = SegmentAppender(self._transport, name, writer=writer, window=window)
        try:
            yield appender
        finally:
            appender.close()

    def append_at(self, name: str, offset: int, data: bytes) -> bool:
        """Append `data` if the segment is exactly `offset` long; False when it is not.

        Raises:
            NoSuchSegment, SegmentSealed: the segment takes no bytes.
            StoreUnavailable: the connection broke. It is unknown whether the store has the data.
        """
        return append_at(self._transport, name, offset, data)

    def _conditionally(
        self, name: str, condition: CompareAndSet, change: Callable[[], tuple[Response, bool]]
    ) -> bool:
        """Compare and set an attribute; False if it had another value.

        The store (0.13.0) also refuses the change if another client has it load the attribute at
        the same moment, even just to read it: the store takes the loading for a change. So a
        refusal counts only once the attribute has been seen to have another value.

        Args:
            name: the segment.
            condition: the attribute, its expected value and its new one.
            change: asks the store once. Returns the answer, and whether the store did the change.

        Raises:
            StoreBusy: the attribute has the expected value, but the store refuses all the same.
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

    def _change(self, name: str, message: Callable[[int, str], Message]) -> Response:
        return self._transport.ask_one(Ask(name, TokenAccess.READ_WRITE, message))
