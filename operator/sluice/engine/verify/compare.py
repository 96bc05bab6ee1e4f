"""Compare two streams byte by byte, wherever they are, without changing either.

The bounds of the source are taken first and hold from then on. So a stream that is still written to
is compared as it was at that moment. Two segments are read side by side, with a few blocks of each
in memory.
"""

from __future__ import annotations

import itertools
import threading
from concurrent.futures import FIRST_EXCEPTION, ThreadPoolExecutor, wait
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final, NamedTuple

from sluice.core.copy.plan import origin
from sluice.core.copy.planner import Range, SourceRequest
from sluice.core.follow.rows import proved
from sluice.core.values import identity
from sluice.core.verify.comparison import Comparison, in_step
from sluice.core.verify.conclusion import conclude
from sluice.core.verify.pairing import (
    Alignment,
    Extent,
    Pair,
    Pairing,
    SegmentLink,
    pair_by_copy,
    pair_by_keys,
)
from sluice.core.verify.verification import StreamSide
from sluice.engine.access.source_runs import writable
from sluice.engine.copy.bounds import bounds_of
from sluice.engine.journal.copy_journal import CopyJournal
from sluice.engine.positions.position_map import position_map
from sluice.errors import InvalidSpec, JournalDamaged, NoSuchSegment, SegmentTruncated

if TYPE_CHECKING:
    from collections.abc import Callable, Container, Iterator, Sequence

    from sluice.core.copy.planner import RangeEnd
    from sluice.core.events import chain
    from sluice.core.values.model import SegmentInfo, StreamName
    from sluice.core.verify.verification import Verification
    from sluice.engine.positions.position_map import Mapped
    from sluice.stores.base import Segments, Source
    from sluice.stores.reading import Topology

TRIES: Final = 5
"""How often a pair of segments is read if truncations of one of them get in the way."""

_DIGEST: Final = 64
"""Characters of a digest. A copy without verification records a word of another length instead."""


class Subject(NamedTuple):
    """One of two streams that are compared.

    Attributes:
        store: the store that holds it.
        uri: the store's address, for people.
        stream: the stream's name.
        range: the range of the stream to compare.
    """

    store: Source
    uri: str
    stream: StreamName
    range: Range = Range()


@dataclass(frozen=True, slots=True, kw_only=True)
class Matched:
    """Streams with bounds, and which bytes of the sources should equal which of the target.

    Attributes:
        sources: the expected stream; several if a copy has several sources.
        target: the stream that is compared with it.
        pairing: the pairs of their segments.
        alignment: how segments were paired; None if a copy of Sluice tells.
        name: the copy's name.
        recorded: the digest that the copy recorded when it was finished.
    """

    sources: tuple[Subject, ...]
    target: Subject
    pairing: Pairing
    alignment: Alignment | None = None
    name: str | None = None
    recorded: str | None = None

    @property
    def origin(self) -> str:
        """The names of the sources, for people."""
        return origin([source.stream for source in self.sources])

    @property
    def bytes(self) -> int:
        """Bytes to read of all streams together."""
        return sum(map(_size, self.pairing.pairs))


def match_streams(source: Subject, target: Subject, alignment: Alignment) -> Matched:
    """Take the bounds of any two streams, the source's first, and pair their segments.

    Raises:
        InvalidSpec: a stream does not exist, or has no such range.
    """
    wanted = _bounds(source, "source")
    found = _bounds(target, "target")
    return Matched(
        sources=(source,),
        target=target,
        pairing=pair_by_keys(wanted, found, alignment),
        alignment=alignment,
    )


def match_copy(
    copy_id: str,
    name: str,
    sources: Sequence[Subject],
    target: Subject,
    *,
    whole: Container[int],
    follow: bool = False,
) -> Matched:
    """Pair the target of a copy with the copy's sources, within the bounds of the copy.

    A copy that is live is compared up to the positions that it has now.

    Args:
        copy_id: the copy's identity.
        name: the copy's name, for people.
        sources: the copy's sources, of which some or all may be gone.
        target: the copy's target.
        whole: the places of the sources that were copied as a whole, not by ranges.
        follow: whether the copy follows its source, or did so until it was finished.

    Raises:
        InvalidSpec: the target does not exist, is incomplete, or is another copy's.
    """
    stream = target.store.describe(target.stream)
    if stream is None:
        raise InvalidSpec(
            f"there is no stream {target.stream} in {target.uri}",
            field="spec.target.stream",
            remedy="Let the copy make it first.",
        )
    store = writable(target.store)
    compared = _compared(copy_id, target.stream, store) if follow else {}
    links = [
        _link(one, compared.get(one.target), follow=follow)
        for one in position_map(copy_id, target.stream, store, follow=follow)
    ]
    wanted = [
        one
        for place, source in enumerate(sources)
        if source.store.describe(source.stream) is not None
        for one in _bounds(source, "source", place)
    ]
    found = _bounds(target, "target")
    digest: str | None = identity.completed(stream.config.tags, copy_id)
    if follow:  # a live target takes events while it is looked at
        found = [one._replace(events=None) for one in found]
        if _is_truncated(found, store):  # whole segments may be gone, and the digest is of all
            whole, digest = (), None
    return Matched(
        sources=tuple(sources),
        target=target,
        pairing=pair_by_copy(links, wanted, found, whole=whole),
        name=name,
        recorded=digest if digest and len(digest) == _DIGEST else None,
    )


def _compared(copy_id: str, target: StreamName, store: Segments) -> dict[int, chain.Link]:
    """Return up to where a live copy has compared each segment of its target, with the digest.

    Any client that may write to the target's scope may have written the journal. It is believed, as
    the tag of a whole target is, about bytes that the source has no more. All others are read.
    """
    try:
        journal = CopyJournal(store, copy_id, target).load()
    except JournalDamaged:
        return {}
    if journal is None or journal.target is None:
        return {}
    return {place: proved(journal, index) for index, place in enumerate(journal.target)}


def _link(one: Mapped, recorded: chain.Link | None, *, follow: bool) -> SegmentLink:
    """Return a copy's record. A finished copy has compared all bytes before it was finished."""
    upto = recorded.offset if recorded is not None else one.end
    return SegmentLink(
        one.stream,
        one.source,
        one.start,
        one.end,
        one.target,
        at=one.at,
        proved=min(upto, one.end) if follow else None,
        recorded=recorded,
    )


def _is_truncated(target: Sequence[Extent], store: Topology) -> bool:
    """Tell whether a target's retention has taken bytes, so that whole segments may be gone."""
    head = [one for one in target if one.generation == 0]
    return any(one.start > 0 or not store.is_original(one.segment) for one in head)


def compare(
    matched: Matched,
    *,
    exact: bool = False,
    tasks: int = 1,
    told: Callable[[int], None] = lambda _: None,
) -> Verification:
    """Read both streams and compare them.

    Args:
        matched: the streams and their pairs of segments.
        exact: whether the target may hold nothing that is not in the source.
        tasks: how many pairs of segments are read at a time.
        told: called with the number of bytes that were read, from several threads. The number is
            negative if bytes are to be read again.

    Raises:
        BackendError: a store was away for too long, or refused a call.
    """
    stop = threading.Event()
    pairs = matched.pairing.pairs

    def work(pair: Pair) -> tuple[Pair, Comparison]:
        return _compare(pair, matched, told, stop)

    # Begin with the longest pairs, so that no long one is left alone at the end.
    order = sorted(range(len(pairs)), key=lambda i: -_size(pairs[i]))
    with ThreadPoolExecutor(max_workers=tasks, thread_name_prefix="verify") as pool:
        futures = {i: pool.submit(work, pairs[i]) for i in order}
        try:
            for future in wait(futures.values(), return_when=FIRST_EXCEPTION).done:
                future.result()
            compared = [futures[i].result() for i in range(len(pairs))]
        finally:
            stop.set()
            pool.shutdown(wait=False, cancel_futures=True)
    alignment = matched.alignment
    return conclude(
        matched.pairing,
        compared,
        sources=[_side(source) for source in matched.sources],
        target=_side(matched.target),
        paired_by="Copy" if alignment is None else alignment.value,
        name=matched.name,
        recorded=matched.recorded,
        exact=exact,
    )


def _bounds(subject: Subject, side: str, place: int = 0) -> list[Extent]:
    """Return a stream's segments with bounds. Errors name the command's options."""
    if subject.store.describe(subject.stream) is None:
        raise InvalidSpec(
            f"there is no stream {subject.stream} in {subject.uri}",
            field=side.upper(),
            remedy="Check the store, the scope and the stream's name.",
        )
    try:
        wanted = SourceRequest(stream=subject.stream, ranges=(subject.range,))
        seen = bounds_of(wanted, subject.store)
    except InvalidSpec as error:
        edge = "to" if ".to" in (error.field or "") else "from"
        raise InvalidSpec(error.message, field=f"--{side}-{edge}", remedy=error.remedy) from None
    return [Extent.of(one, place) for one in seen]


def _compare(
    pair: Pair, matched: Matched, told: Callable[[int], None], stop: threading.Event
) -> tuple[Pair, Comparison]:
    """Compare a pair. After a truncation read the rest again, without the truncated bytes."""
    for attempt in itertools.count(1):
        comparison = Comparison(pair)
        done = 0
        try:
            source = matched.sources[pair.source.stream]
            for step in in_step(_source(pair, source), _target(pair, matched.target)):
                if stop.is_set():
                    break
                comparison.feed(step)
                count = len(step.source) + len(step.target)
                done += count
                told(count)
        except (SegmentTruncated, NoSuchSegment):
            if attempt == TRIES:
                raise
            told(-done)
            pair = _look_again(pair, matched)
        else:
            return pair, comparison
    raise AssertionError


def _source(pair: Pair, subject: Subject) -> Iterator[tuple[int, memoryview]]:
    """Yield the blocks of a pair's bytes that the source has, with their offsets."""
    start, end = pair.of_source
    name = subject.store.segment_name(subject.stream, pair.source.segment)
    if start < end:
        for block in subject.store.read(name, start, end):
            yield block.offset, block.data


def _target(pair: Pair, subject: Subject) -> Iterator[tuple[int, memoryview]]:
    """Yield the blocks of a pair's bytes that the target has, with the source's offsets."""
    start, end = pair.of_target
    name = subject.store.segment_name(subject.stream, pair.target.segment)
    if start < end:
        for block in subject.store.read(name, start + pair.shift, end + pair.shift):
            yield block.offset - pair.shift, block.data


def _look_again(pair: Pair, matched: Matched) -> Pair:
    """Return the pair without the bytes that are truncated by now."""
    sides = []
    source = matched.sources[pair.source.stream]
    for subject, one in ((source, pair.source), (matched.target, pair.target)):
        (info,) = subject.store.infos([subject.store.segment_name(subject.stream, one.segment)])
        sides.append(_cut(one, info))
    return pair._replace(source=sides[0], target=sides[1])


def _cut(one: Extent, info: SegmentInfo | None) -> Extent:
    """Return the rest of a segment after truncation; all of it may be gone."""
    # The store's count of events is dropped, since it counts the truncated ones too.
    start = one.end if info is None else max(one.start, min(info.start, one.end))
    return one if start == one.start else one._replace(start=start, events=None)


def _size(pair: Pair) -> int:
    """Return how many bytes of a pair are read."""
    return sum(end - start for start, end in (pair.of_source, pair.of_target))


def _side(subject: Subject) -> StreamSide:
    return StreamSide(
        store=subject.uri,
        stream=subject.stream,
        begin=_text(subject.range.begin),
        end=_text(subject.range.end),
    )


def _text(position: RangeEnd) -> str | None:
    """Return a position as the user gave it."""
    if position.offsets is not None:
        return ", ".join(f"{segment}:{offset}" for segment, offset in position.offsets)
    return position.text
