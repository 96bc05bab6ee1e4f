"""Comparing two streams byte by byte, wherever they are, without changing either.

The bounds of the source are taken first and hold from then on, so a stream that goes on living is
compared as it was at that moment. Of two segments, which are read side by side, a few blocks each
are in memory at a time.
"""

from __future__ import annotations

import itertools
import threading
from concurrent.futures import FIRST_EXCEPTION, ThreadPoolExecutor, wait
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final, NamedTuple

from sluice.core.copy.plan import origin
from sluice.core.copy.planner import Range, SourceRequest
from sluice.core.values import identity
from sluice.core.verify.comparison import Comparison, in_step
from sluice.core.verify.pairing import (
    Alignment,
    Extent,
    Link,
    Pair,
    Pairing,
    pair_by_copy,
    pair_by_keys,
)
from sluice.core.verify.verification import StreamSide, conclude
from sluice.engine.access.source_runs import writable
from sluice.engine.copy.bounds import bounds_of
from sluice.engine.positions.position_map import position_map
from sluice.errors import InvalidSpec, NoSuchSegment, SegmentTruncated

if TYPE_CHECKING:
    from collections.abc import Callable, Container, Iterator, Sequence

    from sluice.core.copy.planner import Position
    from sluice.core.values.model import SegmentInfo, StreamName
    from sluice.core.verify.verification import Verification
    from sluice.stores.base import Source

TRIES: Final = 5
"""How often a pair of segments is read because one of them was truncated meanwhile."""

_DIGEST: Final = 64
"""Characters of a digest; a copy without verification may have written another word."""


class Subject(NamedTuple):
    """One of two streams that are compared.

    Attributes:
        store: where it is.
        uri: the store's address, for people.
        stream: its name.
        range: what of it.
    """

    store: Source
    uri: str
    stream: StreamName
    range: Range = Range()


@dataclass(frozen=True, slots=True, kw_only=True)
class Matched:
    """Streams, with bounds, and what of the one is to be what of the other.

    Attributes:
        sources: the stream that tells how it should be; several where a copy is of them.
        target: the one that is held against it.
        pairing: their segments.
        alignment: how segments were paired; None where a copy of ours tells.
        name: of that copy.
        recorded: the digest that it wrote down when it was finished.
    """

    sources: tuple[Subject, ...]
    target: Subject
    pairing: Pairing
    alignment: Alignment | None = None
    name: str | None = None
    recorded: str | None = None

    @property
    def origin(self) -> str:
        """What tells how it should be, for people."""
        return origin([source.stream for source in self.sources])

    @property
    def bytes(self) -> int:
        """Bytes to read, of all streams."""
        return sum(map(_size, self.pairing.pairs))


def match_streams(source: Subject, target: Subject, alignment: Alignment) -> Matched:
    """Take the bounds of any two streams, the source's first.

    Raises:
        InvalidSpec: there is no such stream, or no such range in it.
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
    copy_id: str, name: str, sources: Sequence[Subject], target: Subject, *, whole: Container[int]
) -> Matched:
    """Hold the target of a copy against what it is of, within the bounds of the copy.

    Args:
        copy_id: the copy's identity.
        name: its name, for people.
        sources: its sources, of which some or all may be gone.
        target: its target.
        whole: the places of those of which it has all that they had, and not ranges.

    Raises:
        InvalidSpec: there is no target, it is not whole, or another copy's.
    """
    stream = target.store.describe(target.stream)
    if stream is None:
        raise InvalidSpec(
            f"there is no stream {target.stream} in {target.uri}",
            field="spec.target.stream",
            remedy="Let the copy make it first.",
        )
    links = [
        Link(one.stream, one.source, one.start, one.end, one.target)
        for one in position_map(copy_id, target.stream, writable(target.store))
    ]
    wanted = [
        one
        for place, source in enumerate(sources)
        if source.store.describe(source.stream) is not None
        for one in _bounds(source, "source", place)
    ]
    found = _bounds(target, "target")
    digest = identity.completed(stream.config.tags, copy_id)
    return Matched(
        sources=tuple(sources),
        target=target,
        pairing=pair_by_copy(links, wanted, found, whole=whole),
        name=name,
        recorded=digest if digest and len(digest) == _DIGEST else None,
    )


def compare(
    matched: Matched,
    *,
    exact: bool = False,
    tasks: int = 1,
    told: Callable[[int], None] = lambda _: None,
) -> Verification:
    """Read both streams and compare them.

    Args:
        matched: what with what.
        exact: whether nothing may be in the target that is not in the source.
        tasks: how many pairs of segments are read at a time.
        told: of bytes read, from several threads; of fewer than none where they are read again.

    Raises:
        BackendError: a store was away for too long, or said no.
    """
    stop = threading.Event()
    pairs = matched.pairing.pairs

    def work(pair: Pair) -> tuple[Pair, Comparison]:
        return _compare(pair, matched, told, stop)

    # The longest begin first, so that at the end not one alone is left.
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
    """A stream's segments with bounds; errors name the command's options."""
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
    """Compare a pair; what is truncated meanwhile is not there, and the rest is read again."""
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
    """What the source has of a pair's bytes."""
    start, end = pair.of_source
    name = subject.store.segment_name(subject.stream, pair.source.segment)
    if start < end:
        for block in subject.store.read(name, start, end):
            yield block.offset, block.data


def _target(pair: Pair, subject: Subject) -> Iterator[tuple[int, memoryview]]:
    """What the target has of them, at the source's offsets."""
    start, end = pair.of_target
    name = subject.store.segment_name(subject.stream, pair.target.segment)
    if start < end:
        for block in subject.store.read(name, start + pair.shift, end + pair.shift):
            yield block.offset - pair.shift, block.data


def _look_again(pair: Pair, matched: Matched) -> Pair:
    """The pair, without what is not there any more."""
    sides = []
    source = matched.sources[pair.source.stream]
    for subject, one in ((source, pair.source), (matched.target, pair.target)):
        (info,) = subject.store.infos([subject.store.segment_name(subject.stream, one.segment)])
        sides.append(_cut(one, info))
    return pair._replace(source=sides[0], target=sides[1])


def _cut(one: Extent, info: SegmentInfo | None) -> Extent:
    """What is left of a segment. Its store's count of events is of more."""
    start = one.end if info is None else max(one.start, min(info.start, one.end))
    return one if start == one.start else one._replace(start=start, events=None)


def _size(pair: Pair) -> int:
    """Bytes of a pair that are read."""
    return sum(end - start for start, end in (pair.of_source, pair.of_target))


def _side(subject: Subject) -> StreamSide:
    return StreamSide(
        store=subject.uri,
        stream=subject.stream,
        begin=_text(subject.range.begin),
        end=_text(subject.range.end),
    )


def _text(position: Position) -> str | None:
    """A position as it was asked for."""
    if position.offsets is not None:
        return ", ".join(f"{segment}:{offset}" for segment, offset in position.offsets)
    return position.text
