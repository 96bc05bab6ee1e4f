"""Map positions of a copy's source to positions of its target.

Each segment of the target has attributes that name the source's segment, the offset at which the
copy of it begins, and the number of bytes. So positions can be translated long after the copy, as
long as the target's segments are readable.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from sluice.core.follow.position import position_of
from sluice.core.values import identity
from sluice.core.values.model import break_in
from sluice.engine.append import receipts
from sluice.errors import InvalidSpec, StreamNotFound

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from sluice.core.values.model import KeyRange, StreamName
    from sluice.stores.base import Source, Store
    from sluice.stores.reading import SegmentReader


class Mapped(NamedTuple):
    """Bytes of a source segment, and where they are in the target.

    Attributes:
        stream: the place of the segment's stream among the sources.
        source: the source segment's id.
        start: first offset copied.
        end: offset after the last byte copied.
        target: id of the target segment that holds the bytes.
        keys: the keys that the target segment takes.
        lost: how many bytes before `start` the source had lost before they were read.
        at: the target's offset of the first byte.
    """

    stream: int
    source: int
    start: int
    end: int
    target: int
    keys: KeyRange
    lost: int = 0
    at: int = 0

    @property
    def shift(self) -> int:
        """What to add to an offset of the source to get the target's."""
        return self.at - self.start


def position_map(
    copy_id: str, target: StreamName, store: Store, *, follow: bool = False
) -> list[Mapped]:
    """Return the map of a finished or live copy, in the order in which the target was scaled.

    Of a copy that follows its source, the map goes up to the positions that were read. A segment
    that lacks bytes in its midst, since the source had lost them, is several entries.

    Args:
        copy_id: the copy.
        target: its target.
        store: the target store.
        follow: whether the copy follows its source, or did so until it was finished.

    Raises:
        StreamNotFound: the target does not exist.
        InvalidSpec: the target is incomplete, is another copy's, or was appended to.
    """
    there = store.describe(target)
    if there is None:
        raise StreamNotFound(f"there is no stream {target}")
    if receipts.find(copy_id, target, store) is not None:
        raise InvalidSpec(
            f"{target} was appended to by this copy, so it is not known where its bytes are",
            field="spec.target.onExists",
            remedy="Positions are known, and a copy can be verified later, where it has made its "
            "target. What was staged was verified before it was appended.",
        )
    live = identity.is_live(there.config.tags, copy_id)
    if identity.completed(there.config.tags, copy_id) is None and not live:
        raise InvalidSpec(
            f"{target} is not the whole target of this copy",
            field="spec.target",
            remedy="Wait until the copy is Ready, or finish it with `sluice run`. If it was live "
            "when it was ended, compare the streams by their names.",
        )
    segments = [segment for made in store.generations(target) for segment in made]
    lost, _ = identity.gap_attributes(copy_id)
    attributes = (*identity.origin_attributes(copy_id), identity.publish_attribute(copy_id), lost)
    asked = [
        (store.segment_name(target, segment.id), attribute)
        for segment in segments
        for attribute in attributes
    ]
    values = iter(store.attributes(asked))
    found = []
    for segment in segments:
        stream, source, start, length, gone = (next(values) for _ in attributes)
        if stream is None or source is None or start is None or length is None:
            continue
        end = start + length
        found.append(Mapped(stream, source, start, end, segment.id, segment.keys, gone or 0))
    return _followed(copy_id, target, found, store) if live or follow else found


def _followed(
    copy_id: str, target: StreamName, mapped: Sequence[Mapped], store: Source
) -> list[Mapped]:
    """Return a map up to the positions of a followed source, without the bytes that it has lost."""
    names = [store.segment_name(target, one.target) for one in mapped]
    asked = [
        (name, identity.position_attribute(copy_id, one.source))
        for name, one in zip(names, mapped, strict=True)
    ]
    places = map(position_of, store.attributes(asked))
    lost = _losses(copy_id, names, store)
    return [
        piece
        for one, place, losses in zip(mapped, places, lost, strict=True)
        for piece in _pieces(one, one.end if place is None else place.offset, losses)
    ]


def _pieces(one: Mapped, end: int, losses: Sequence[tuple[int, int]]) -> Iterator[Mapped]:
    """Yield the pieces of a segment up to an offset, between the bytes that are left out."""
    start, at, gone = one.start, 0, one.lost
    for begin, behind in losses:
        if behind <= end:  # else a driver has noted it, and has not moved the position yet
            if begin > start:
                yield one._replace(start=start, end=begin, at=at, lost=gone)
                gone = 0
            start, at, gone = behind, at + begin - start, gone + behind - begin
    yield one._replace(start=start, end=end, at=at, lost=gone)


def _losses(
    copy_id: str, names: Sequence[str], store: SegmentReader
) -> list[list[tuple[int, int]]]:
    """Return the bytes that each segment lacks behind the planned ones, in order."""
    found: list[list[tuple[int, int]]] = [[] for _ in names]
    open_ = list(range(len(names)))
    number = 0
    while open_:
        attributes = identity.loss_attributes(copy_id, number)
        asked = [(names[i], attribute) for i in open_ for attribute in attributes]
        values = iter(store.attributes(asked))
        pairs = [(i, next(values), next(values)) for i in open_]
        open_ = []
        for i, start, end in pairs:
            if start is not None and end is not None:
                found[i].append((start, end))
                open_.append(i)
        number += 1
    return found


def translate(cut: Mapping[int, int], mapped: Sequence[Mapped]) -> dict[int, int]:
    """Translate a position of the source into a position of the target.

    If a copy has the same bytes twice, since its ranges overlap, the first place counts.

    Args:
        cut: offsets by segment id of the source.
        mapped: the map.

    Returns:
        Offsets by segment id of the target.

    Raises:
        InvalidSpec: the copy does not hold the position; the message says why.
    """
    found: dict[int, int] = {}
    keys = []
    for segment, offset in sorted(cut.items()):
        parts = [one for one in mapped if one.source == segment]
        place = next((one for one in parts if one.start <= offset <= one.end), None)
        if place is None:
            bounds = ", ".join(f"{one.start} to {one.end}" for one in parts) or "nothing"
            raise _no_position(f"of segment {segment} it has {bounds}, and not offset {offset}")
        found[place.target] = offset + place.shift
        keys.append(place.keys)
    keys.sort(key=lambda one: one.low)
    if break_in(keys) is not None:
        raise _no_position("the segments of the cut do not take all keys, each key once")
    return found


def _no_position(why: str) -> InvalidSpec:
    return InvalidSpec(
        f"the copy has not got this position: {why}",
        field="--cut",
        remedy="Take a cut between the copy's bounds; without --cut they are printed.",
    )
