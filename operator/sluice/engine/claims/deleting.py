"""Delete streams that a claim releases: one, or those under a prefix, a part at a time."""

from __future__ import annotations

import time
from functools import partial
from typing import TYPE_CHECKING, Final

from sluice.core.claims.claim import is_owned
from sluice.core.values.model import StreamName
from sluice.engine.access.stream_age import made_at
from sluice.engine.claims import ownership
from sluice.errors import ScopeNotFound, StoreBusy, StreamNotFound, StreamNotSealed

if TYPE_CHECKING:
    from sluice.core.claims.claim import Claim
    from sluice.stores.base import Store
    from sluice.stores.writing import Admin

SECONDS: Final = 60.0
"""Seconds that one call deletes streams. Thousands take longer, and the next call goes on."""

_ROUNDS: Final = 4
"""How often streams under a prefix are listed and deleted, since new ones may come meanwhile."""


def drop_under(claim: Claim, store: Store, seconds: float) -> tuple[ownership.Under, int]:
    """Delete our streams under a prefix, a part at a time, until no new ones come.

    Returns:
        The streams of the last look, which are deleted by now; and how many were deleted in all.
    """
    end, count = time.monotonic() + seconds, 0
    for _ in range(_ROUNDS):
        there = ownership.Under(None)
        for part in ownership.parts_of(claim, store, ages=True):
            if part.claimed and count and time.monotonic() > end:
                raise StoreBusy(
                    f"{count} streams under {claim.prefix!r} are deleted, and more are left",
                    remedy="Wait: it goes on.",
                )
            seen = [*zip(part.claimed, part.created, strict=True)]
            count += sum(ownership.each(partial(_drop_seen, claim, store), seen))
            there = ownership.Under(part.marker, there.claimed + part.claimed)
        if not there.claimed:
            break
    return there, count


def _drop_seen(claim: Claim, store: Store, seen: tuple[str, int | None]) -> bool:
    """Delete a stream under a prefix if it is still the stream that was seen.

    Time has passed since, while other streams were deleted. Tell whether it was deleted.

    Args:
        claim: the claim.
        store: the store.
        seen: the stream's name, and when it was made.
    """
    name = StreamName(scope=claim.scope, stream=seen[0])
    stream = store.describe(name)
    if stream is None or is_owned(stream.config.tags):
        return False
    if made_at(name, stream, store) != seen[1]:
        return False
    drop(store, name)
    return True


def drop(store: Admin, name: StreamName) -> None:
    """Seal and delete a stream. A stream that is gone, or was made again meanwhile, is no error."""
    try:
        store.seal_stream(name)
        store.delete_stream(name)
    except (StreamNotFound, ScopeNotFound, StreamNotSealed):
        return
