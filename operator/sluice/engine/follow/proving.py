"""Read back what was appended to the target, and compare it with the source byte by byte."""

from __future__ import annotations

import hashlib
from collections import Counter
from typing import TYPE_CHECKING, Any, Final

from sluice.core.copy.follow_progress import proved_record
from sluice.core.events.chain import Chain, resumed
from sluice.core.follow.rows import proved
from sluice.engine.follow.observe import source_name, target_name
from sluice.errors import DigestMismatch, NoSuchSegment, SegmentTruncated, SourceTruncated

if TYPE_CHECKING:
    from collections.abc import Iterator

    from sluice.core.copy.journal import Journal
    from sluice.core.events.chain import Link
    from sluice.core.follow.rows import Row, Stretch
    from sluice.stores.base import Source, Store
    from sluice.stores.reading import Block, Flow

RECORD_SECONDS: Final = 30.0
"""Seconds after which a comparison is recorded that has not come to the end of a chunk."""


class Prover:
    """Compares followed segments, and keeps their chains while this driver lives.

    Args:
        source: the store of the source.
        target: the target store.
        flow: the speed at which the target is read; None for as fast as possible.

    Attributes:
        recorded: when a comparison was recorded, by the segment's index and the driver's clock.
    """

    def __init__(self, source: Source, target: Store, flow: Flow | None = None) -> None:
        self._source = source
        self._target = target
        self._flow = flow
        self.recorded: dict[int, float] = {}
        self._chains: dict[int, Chain] = {}
        self._blind: Counter[int] = Counter()
        self._taken: Counter[int] = Counter()

    def link(self, journal: Journal, index: int) -> Link:
        """Return up to where a segment is compared, in the journal or by this driver since."""
        known, chain = proved(journal, index), self._chains.get(index)
        return known if chain is None or chain.link.offset < known.offset else chain.link

    def record(self, index: int, link: Link) -> dict[str, Any]:
        """Return the record of a comparison, with the bytes that could not be compared since."""
        blind, taken = self._blind.pop(index, 0), self._taken.pop(index, 0)
        return proved_record(index, link, blind, taken)

    def is_late(self, index: int, now: float, began: float) -> bool:
        """Tell whether what was compared is to be recorded though its chunk is not whole.

        Args:
            index: the segment.
            now: the time.
            began: when the driver began to follow it, if nothing was recorded before.
        """
        since = self.recorded.setdefault(index, began)
        return now - since >= RECORD_SECONDS

    def prove(self, journal: Journal, row: Row, to: int) -> Link:
        """Compare a segment up to an offset of the source, up to which the target has it.

        Returns:
            The digest of all bytes of the segment up to there.

        Raises:
            DigestMismatch: the target has other bytes.
            SourceTruncated: the source has lost bytes that were not compared, and the copy must not
                go on without.
        """
        chain = self._chain(journal, row)
        # If this breaks off, the chain is behind the bytes that were compared, and goes on there.
        for stretch in row.stretches(chain.link.offset, to):
            if chain.link.offset < stretch.start:
                chain.leap(stretch.start)
            self._compare(journal, row, stretch, chain)
        if chain.link.offset < to:
            chain.leap(to)
        return chain.link

    def extend(self, journal: Journal, row: Row, to: int, digest: bytes | None) -> Link | None:
        """Extend a chain by bytes of the target that were compared while they were staged.

        The source is not read: it may have lost them since.

        Args:
            journal: the copy's journal. All before these bytes is compared.
            row: the segment.
            to: the source offset behind the last of these bytes.
            digest: their SHA-256.

        Returns:
            None if the target has lost some, or their digest is not known, or this driver has
            compared others since.

        Raises:
            DigestMismatch: the target has other bytes.
        """
        chain = self._chain(journal, row)
        at = chain.link.offset
        if at != proved(journal, row.index).offset or (digest is None and at < to):
            return None
        if at == to:
            return chain.link
        shift, data = row.shift(at), bytearray()
        try:
            name = target_name(journal.plan, row, self._target)
            for block in self._target.read(name, at + shift, to + shift, flow=self._flow):
                data += block.data
        except (SegmentTruncated, NoSuchSegment):
            return None
        if hashlib.sha256(data).digest() != digest:
            raise DigestMismatch(
                f"segment {row.target} of {journal.plan.target} has other bytes than were staged "
                f"between the source's offsets {at} and {to} of segment {row.segment.id}",
                remedy="Delete this copy, and make another one; the target is not to be used.",
            )
        chain.feed(memoryview(data))
        return chain.link

    def compare(
        self, journal: Journal, row: Row, staging: str, origin: int, stretch: tuple[int, int]
    ) -> None:
        """Compare bytes that are staged, and not yet in the target's segment.

        Args:
            journal: the copy's journal.
            row: the segment.
            staging: full name of the staging segment.
            origin: source offset of its first byte.
            stretch: the bytes to compare, as source offsets.

        Raises:
            DigestMismatch: other bytes are staged.
            SegmentTruncated, NoSuchSegment: the source has lost them.
        """
        start, end = stretch
        ours = self._target.read(staging, start - origin, end - origin, flow=self._flow)
        theirs = self._source.read(source_name(journal.plan, row, self._source), start, end)
        where = f"what is staged for segment {row.target} of {journal.plan.target}"
        for _ in _equal(where, row, start, ours, theirs):
            pass

    def _chain(self, journal: Journal, row: Row) -> Chain:
        """Return the chain of a segment, from where it is compared."""
        known, chain = proved(journal, row.index), self._chains.get(row.index)
        if chain is not None and chain.link.offset >= known.offset:
            return chain
        self._blind.pop(row.index, None)
        self._taken.pop(row.index, None)
        self._chains[row.index] = chain = self._resumed(journal, row, known)
        return chain

    def _resumed(self, journal: Journal, row: Row, known: Link) -> Chain:
        """Return the chain behind a recorded link, whose last bytes are read again.

        The target's retention may have taken them meanwhile, and the source's, too.

        Raises:
            DigestMismatch: they are others.
        """
        plan, end = journal.plan, known.offset + row.shift(known.offset)
        target, source = target_name(plan, row, self._target), source_name(plan, row, self._source)
        begin = row.before(known.offset, known.held)
        places: list[tuple[Source, str, int, int]] = [(self._target, target, end - known.held, end)]
        if begin is not None:
            places.append((self._source, source, begin, known.offset))
        for store, name, start, to in places:
            try:
                held = store.read(name, start, to, flow=self._flow)
                return Chain(known, (block.data for block in held))
            except ValueError:
                raise DigestMismatch(
                    f"the {known.held} bytes before offset {to} of {name} are not those that were "
                    "compared before"
                ) from None
            except (SegmentTruncated, NoSuchSegment):
                (info,) = store.infos([name])
                if info is not None and info.start <= start:
                    raise
        return Chain(resumed(known))

    def _compare(self, journal: Journal, row: Row, stretch: Stretch, chain: Chain) -> None:
        start, end, shift = stretch
        plan = journal.plan
        while (start := max(start, chain.link.offset)) < end:
            ours = self._target.read(
                target_name(plan, row, self._target), start + shift, end + shift, flow=self._flow
            )
            try:
                theirs = self._source.read(source_name(plan, row, self._source), start, end)
                where = f"segment {row.target} of {plan.target}"
                for data in _equal(where, row, start, ours, theirs):
                    chain.feed(data)
            except (SegmentTruncated, NoSuchSegment):
                if not self._pass(journal, row, stretch, chain):
                    raise

    def _pass(self, journal: Journal, row: Row, stretch: Stretch, chain: Chain) -> bool:
        """Go on behind bytes that source or target have lost since they were appended.

        Args:
            journal: the copy's journal.
            row: the segment.
            stretch: the bytes to compare.
            chain: the segment's chain, up to the first lost byte.

        Returns:
            Whether bytes were lost.

        Raises:
            SourceTruncated: the source has lost bytes that the target has, and the copy must not go
                on without.
        """
        _, end, shift = stretch
        plan, at = journal.plan, chain.link.offset
        ours, theirs = target_name(plan, row, self._target), source_name(plan, row, self._source)
        (target,), (source,) = self._target.infos([ours]), self._source.infos([theirs])
        if target is None:
            return False  # the copy's retention takes no segment that takes events
        kept = min(target.start - shift, end)
        sent = end if source is None else min(source.start, end)
        if at < min(kept, sent):  # no store has them any more
            self._taken[row.index] += min(kept, sent) - at
            chain.leap(min(kept, sent))
        elif at < kept:
            for block in self._source.read(theirs, at, kept):
                chain.feed(block.data)
                self._taken[row.index] += len(block.data)
        elif at < sent:
            if plan.on_truncation == "Fail":
                raise SourceTruncated(
                    f"{plan.sources[0].stream} was truncated: offsets {at} to {sent} of segment "
                    f"{row.segment.id} are gone, and were appended, but not compared yet"
                ) from None
            for block in self._target.read(ours, at + shift, sent + shift, flow=self._flow):
                chain.feed(block.data)
                self._blind[row.index] += len(block.data)
        else:
            return False
        return True


def _equal(
    where: str, row: Row, at: int, ours: Iterator[Block], theirs: Iterator[Block]
) -> Iterator[memoryview]:
    """Compare two rows of blocks, and yield what is equal, in order.

    Args:
        where: where the bytes of the target are, for errors.
        row: the segment.
        at: the source offset of the first byte.
        ours: the blocks of the target.
        theirs: the blocks of the source.

    Raises:
        DigestMismatch: they differ.
    """
    left = memoryview(b"")
    for block in theirs:
        data = block.data
        while data:
            if not left:
                left = next(ours).data
            count = min(len(left), len(data))
            # Views are compared item by item, which takes ten times as long.
            if bytes(left[:count]) != bytes(data[:count]):
                at += next(i for i in range(count) if left[i] != data[i])
                raise DigestMismatch(
                    f"{where} has another byte than its source at the source's offset {at} of "
                    f"segment {row.segment.id}",
                    remedy="Delete this copy, and make another one; the target is not to be used.",
                )
            yield data[:count]
            at += count
            left, data = left[count:], data[count:]
    next(ours, None)  # a read that came to its end keeps its connection for the next one
