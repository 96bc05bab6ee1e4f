"""Hold a comparison against the digests that a copy has recorded while it followed its source.

A chain can be computed again only from the first byte of a segment on. So a segment says nothing
here if the retention of source or target has taken its beginning, or if it lacks bytes that the
source had lost.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from sluice.core.events.chain import linked
from sluice.core.events.digest import chunk_of, chunk_start, chunks, combine

if TYPE_CHECKING:
    from collections.abc import Sequence

    from sluice.core.events.chain import Link
    from sluice.core.verify.comparison import Comparison
    from sluice.core.verify.pairing import Pair


def breaks_chain(pair: Pair, seen: Comparison) -> bool:
    """Tell whether the whole chunks that were read are not those that the copy has compared."""
    recorded = pair.recorded
    if recorded is None or not _is_whole(pair, seen):
        return False
    upto = max(pair.start, chunk_start(chunk_of(recorded.offset), pair.start))
    known = dict(zip(chunks(pair.start, pair.end), seen.target.chunks, strict=True))
    link = linked(pair.start, upto, known) if upto <= pair.end else None
    return link is not None and link.chain != recorded.chain


def digest_of(compared: Sequence[tuple[Pair, Comparison]]) -> str | None:
    """Return the digest that the copy records at its end of what was read; None if it is unknown.

    Args:
        compared: each segment and its comparison.
    """
    links: list[Link] = []
    for pair, seen in sorted(compared, key=_place):
        known = dict(zip(chunks(pair.start, pair.end), seen.target.chunks, strict=False))
        link = linked(pair.start, pair.end, known)
        if link is None or not _is_whole(pair, seen):
            return None
        links.append(link)
    return combine(link.digest for link in links).hex()


def _place(one: tuple[Pair, Comparison]) -> tuple[int, float]:
    """Return the place of a segment in the plan of its copy."""
    source = one[0].source
    if source.generation:
        return source.generation, source.segment
    return 0, 0.0 if source.keys is None else source.keys.low


def _is_whole(pair: Pair, seen: Comparison) -> bool:
    """Tell whether all bytes of a segment were read on both sides."""
    sides = ((side.start, side.end) for side in (seen.source, seen.target))
    return pair.only and all(side == (pair.start, pair.end) for side in sides)
