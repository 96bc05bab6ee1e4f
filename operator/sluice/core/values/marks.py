"""What Sluice notes in a stream's configuration, and that configuration without it.

Marks say whose a stream is, and what a copy does to it. They hold for that stream alone: a copy
that inherited them would be taken for somebody else's.
"""

from __future__ import annotations

import re
from typing import Final

from sluice.core.values.identity import TAG_APPENDING, without_ours
from sluice.core.values.model import ScaleType, Scaling, StreamConfig

LOOSE: Final = Scaling(
    type=ScaleType.BY_EVENTS, target_rate=2_000_000_000, scale_factor=2, min_segments=1
)
"""The policy of a stream while an append needs it to have any number of segments.

No segment reaches that many events per second, so that the store splits none.
"""

MOST_TAGS: Final = 124
"""Tags of users on a stream that is copied: a store takes 127, and a copy adds three."""

_NOTE: Final = re.compile(
    re.escape(TAG_APPENDING)
    + rf"[0-9a-f]{{32}}/({'|'.join(ScaleType)})/([0-9]{{1,10}})/([0-9]{{1,10}})/([1-9][0-9]{{0,9}})"
)


def policy_note(copy_id: str, scaling: Scaling) -> str:
    """The tag that notes the policy of a stream that an append gives another one."""
    policy = f"{scaling.type}/{scaling.target_rate}/{scaling.scale_factor}/{scaling.min_segments}"
    return f"{TAG_APPENDING}{copy_id}/{policy}"


def noted_policy(tag: str) -> Scaling | None:
    """The policy that a tag notes, whichever append did; None where it is no such tag."""
    found = _NOTE.fullmatch(tag)
    if found is None:
        return None
    kind, rate, factor, least = found.groups()
    return Scaling(
        type=ScaleType(kind),
        target_rate=int(rate),
        scale_factor=int(factor),
        min_segments=int(least),
    )


def own_policy(config: StreamConfig) -> Scaling:
    """A stream's own policy: the noted one while it has another one because of an append."""
    if config.scaling != LOOSE:
        return config.scaling
    noted = (noted_policy(tag) for tag in config.tags)
    return next((one for one in noted if one is not None), config.scaling)


def plain(config: StreamConfig) -> StreamConfig:
    """A stream's configuration as its users gave it, without any mark of Sluice."""
    changed = {"scaling": own_policy(config), "tags": without_ours(config.tags)}
    return config.model_copy(update=changed)
