"""Marks of Sluice in a stream's configuration: write, read and remove them.

Marks are tags. They say to which resource or copy a stream belongs, and what a copy does to it.
They hold for that stream alone: a target that inherited them would pass for another resource's.
"""

from __future__ import annotations

import re
from typing import Final

from sluice.core.values.identity import (
    TAG_APPENDING,
    TAG_FOLLOWING,
    owner_tags,
    without_ours,
)
from sluice.core.values.model import ScaleType, Scaling, StreamConfig

LOOSE: Final = Scaling(
    type=ScaleType.BY_EVENTS, target_rate=2_000_000_000, scale_factor=2, min_segments=1
)
"""The policy of a stream while an append needs it to have any number of segments.

No segment reaches that many events per second, so that the store splits none.
"""

MOST_TAGS: Final = 124
"""Most tags of users on a stream that is copied: a store takes 127, and a copy adds three."""

_NOTE: Final = re.compile(
    re.escape(TAG_APPENDING)
    + rf"[0-9a-f]{{32}}/({'|'.join(ScaleType)})/([0-9]{{1,10}})/([0-9]{{1,10}})/([1-9][0-9]{{0,9}})"
)


def policy_note(copy_id: str, scaling: Scaling) -> str:
    """Return the tag that notes a stream's own policy while an append changes it."""
    policy = f"{scaling.type}/{scaling.target_rate}/{scaling.scale_factor}/{scaling.min_segments}"
    return f"{TAG_APPENDING}{copy_id}/{policy}"


def noted_policy(tag: str) -> Scaling | None:
    """Return the policy that a tag notes, of any append; None if it is another kind of tag."""
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
    """Return a stream's own policy: the noted one while an append has replaced it by LOOSE."""
    if config.scaling != LOOSE:
        return config.scaling
    noted = (noted_policy(tag) for tag in config.tags)
    return next((one for one in noted if one is not None), config.scaling)


def followed(source: StreamConfig, copy_id: str, segments: int) -> StreamConfig:
    """Return the configuration of a target that follows its source: retention and tags are those.

    The number of segments is fixed, so that only the copy scales the target. Tags that a store
    does not take besides the copy's own are left out: a copy that is live does not end for them.

    Args:
        source: the source's configuration.
        copy_id: the copy.
        segments: the number of segments that the target has.
    """
    tags = plain(source).tags[:MOST_TAGS]
    return StreamConfig(
        scaling=Scaling(min_segments=segments),
        retention=source.retention,
        tags=(*tags, *owner_tags(copy_id), TAG_FOLLOWING + copy_id),
    )


def is_like(one: StreamConfig, other: StreamConfig) -> bool:
    """Tell whether two configurations are equal, in whatever order a store lists the tags."""
    return (one.scaling, one.retention, frozenset(one.tags)) == (
        other.scaling,
        other.retention,
        frozenset(other.tags),
    )


def plain(config: StreamConfig) -> StreamConfig:
    """Return a stream's configuration as its users set it, without any mark of Sluice."""
    changed = {"scaling": own_policy(config), "tags": without_ours(config.tags)}
    return config.model_copy(update=changed)
