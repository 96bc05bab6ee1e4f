"""Map positions of a copy's source to positions of its target.

Each segment of the target has attributes that name the source's segment, the offset at which the
copy of it begins, and the number of bytes. So positions can be translated long after the copy, as
long as the target's segments are readable.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from sluice.core.values import identity
from sluice.core.values.model import break_in
from sluice.engine.append import receipts
from sluice.errors import InvalidSpec, StreamNotFound

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from sluice.core.values.model import KeyRange, StreamName
    from sluice.stores.base import Store


class Mapped(NamedTuple):
    """Bytes of a source segment, and where they are in the target.

    Attributes:
        stream: the place of the segment's stream among the sources.
        source: the source segment's id.
        start: first offset copied.
        end: offset after the last byte copied.
        target: id of the target segment that holds the bytes, from its beginning.
        keys: the keys that the target segment takes.
        lost: how many bytes before `start` the source had lost before they were read.
    """

    stream: int
    source: int
    start: int
    end: int
    target: int
    keys: KeyRange
    lost: int = 0

    @property
    def shift(self) -> int:
        """What to add to an offset of the source to get the target's."""
        return -self.start


def position_map(copy_id: str, target: StreamName, store: Store) -> list[Mapped]:
    """Return the map of a finished copy, in the order in which the target was scaled.

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
    if identity.completed(there.config.tags, copy_id) is None:
        raise InvalidSpec(
            f"{target} is not the whole target of this copy",
            field="spec.target",
            remedy="Wait until the copy is Ready, or finish it with `sluice run`.",
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
