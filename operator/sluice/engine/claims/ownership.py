"""Whose streams are: what a store says about a claim. Nothing is changed here."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from functools import partial
from typing import TYPE_CHECKING, Final, NamedTuple, TypeVar

from sluice.core.claims.claim import (
    MARKER,
    SCOPE_MARKER,
    Ownership,
    came_later,
    has_list,
    is_new,
    is_owned,
    prefix_of,
    resource_of,
)
from sluice.core.values.identity import OURS
from sluice.core.values.model import StreamName
from sluice.engine.access.parallel import batches
from sluice.engine.access.stream_age import made_at
from sluice.errors import ScopeNotFound
from sluice.stores.allowance import apart
from sluice.stores.deadline import carried

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

    from sluice.core.claims.claim import Claim
    from sluice.stores.base import Source
    from sluice.stores.reading import Stream

AT_ONCE: Final = 8
"""Streams under a prefix that are looked at, or let go, at a time."""

_PART: Final = 256
"""Streams under a prefix that are looked at before those that are to go are let go."""

_A = TypeVar("_A")
_T = TypeVar("_T")


class One(NamedTuple):
    """The one stream of a claim; None where there is none of its name.

    `created` is in the store's milliseconds, None where nobody knows.
    """

    stream: Stream | None
    ownership: Ownership
    created: int | None


class Marker(NamedTuple):
    """What remembers a claim to a prefix.

    Attributes:
        tags: of it.
        sealed: whether the claim is being given up.
        segment: the full name of its segment.
        created: when that was made, in the store's milliseconds.
        whole: whether it counts: its list of what was there before the claim, if it is to have one,
            is complete.
    """

    tags: tuple[str, ...]
    sealed: bool
    segment: str
    created: int | None
    whole: bool = True


class Under(NamedTuple):
    """What is under a prefix.

    Attributes:
        marker: what remembers the claim, if it is remembered.
        claimed: the streams that are ours, sorted.
        news: those of them that the marker does not know yet, and when they were made.
        left_alone: how many others there are.
        created: when each of those that are ours was made, in the store's milliseconds; None where
            nobody knows, or asked.
    """

    marker: Marker | None
    claimed: tuple[str, ...] = ()
    news: tuple[tuple[str, int | None], ...] = ()
    left_alone: int = 0
    created: tuple[int | None, ...] = ()


def name_of(claim: Claim) -> StreamName:
    """The one stream that is claimed."""
    return StreamName(scope=claim.scope, stream=claim.stream or "")


def each(call: Callable[[_A], _T], these: Sequence[_A]) -> list[_T]:
    """Call for several at a time. Each is tried, also where another one raises."""
    if not these:
        return []
    with ThreadPoolExecutor(min(AT_ONCE, len(these)), thread_name_prefix="streams") as pool:
        return list(pool.map(carried(apart(call)), these))


def one(claim: Claim, store: Source) -> One:
    """The one stream of a claim, and whose it is."""
    name = name_of(claim)
    stream = store.describe(name)
    if stream is None:
        return One(None, Ownership.ABSENT, None)
    created = made_at(name, stream, store)
    return One(stream, _ownership(claim, stream.config.tags, created), created)


def _ownership(claim: Claim, tags: tuple[str, ...], created: int | None) -> Ownership:
    if claim.claimant.owns(tags):
        return Ownership.OURS
    # Tags of ours may have been taken away, all or some; those of another resource speak for it.
    others = {tag for tag in tags if tag.startswith(OURS)} - set(claim.claimant.tags())
    if not others and created is not None and created == claim.known:
        return Ownership.OURS
    return Ownership.OTHERS if is_owned(tags) else Ownership.UNOWNED


def marker(claim: Claim, store: Source) -> Marker | None:
    """What remembers a claim to a prefix; None where nothing of ours does."""
    stream = store.describe(claim.marker)
    if stream is None or not claim.claimant.owns(stream.config.tags):
        return None
    segment = store.segment_name(claim.marker, stream.tail[0].id)
    lists = has_list(stream.config.tags)
    return Marker(
        tags=stream.config.tags,
        sealed=stream.sealed,
        segment=segment,
        created=made_at(claim.marker, stream, store),
        whole=not lists or store.attributes([(segment, claim.listed)]) != [None],
    )


def older_than(claim: Claim, store: Source, found: Marker) -> Iterator[tuple[str, int]]:
    """The streams under a prefix that may be older than the resource, and when they were made.

    To be asked before the claim counts: what comes afterwards is certainly younger, whatever the
    clocks say. When nobody knows when one was made, that is 0.
    """
    names = [name for name in store.list_streams(claim.scope) if _is_under(name, claim)]
    for part in batches(names, _PART):
        for name, seen in zip(part, each(partial(_look, claim, store, set()), part), strict=True):
            if seen is not None and not _is_new(seen.created, claim, found):
                yield name, seen.created or 0


def under(claim: Claim, store: Source) -> Under:
    """What is under the prefix of a claim. Without a marker, nothing is ours.

    A stream with a tag of any Sluice has an owner of its own, whatever its name is.
    """
    found, *parts = parts_of(claim, store)
    return Under(
        found.marker,
        tuple(name for part in parts for name in part.claimed),
        tuple(new for part in parts for new in part.news),
        found.left_alone + sum(part.left_alone for part in parts),
    )


def parts_of(claim: Claim, store: Source, *, ages: bool = False) -> Iterator[Under]:
    """The same in parts, each looked at when it is asked for; the first one has the marker only.

    Args:
        claim: the claim.
        store: where.
        ages: whether it is asked when streams were made that are known as ours already.
    """
    found = marker(claim, store)
    try:
        names = [name for name in store.list_streams(claim.scope) if _is_under(name, claim)]
    except ScopeNotFound:
        names = []
    yield Under(found, left_alone=0 if found else len(names))
    if found is not None:
        for part in batches(names, _PART):
            yield _part(claim, store, found, part, ages=ages)


def _part(claim: Claim, store: Source, found: Marker, names: Sequence[str], *, ages: bool) -> Under:
    """What some of the streams under a prefix are."""
    marks = store.attributes([(found.segment, claim.mark(name)) for name in names])
    known = {name for name, mark in zip(names, marks, strict=True) if mark is not None}
    rest = [name for name in names if name not in known] if has_list(found.tags) else []
    listed = store.attributes([(found.segment, claim.older(name)) for name in rest])
    older = dict(zip(rest, listed, strict=True))

    def is_younger(name: str, created: int | None) -> bool:
        if not has_list(found.tags):  # a marker of before
            return _is_new(created, claim, found)
        return found.whole and came_later(created, older[name])

    claimed, news, left_alone = [], [], 0
    created: list[int | None] = []
    look = partial(_look, claim, store, set() if ages else known)
    for name, stream in zip(names, each(look, names), strict=True):
        if stream is None:
            continue  # it was deleted meanwhile
        if is_owned(stream.tags) or not (
            name in known or claim.existing or is_younger(name, stream.created)
        ):
            left_alone += 1
            continue
        claimed.append(name)
        created.append(stream.created)
        if name not in known:
            news.append((name, stream.created))
    return Under(found, tuple(claimed), tuple(news), left_alone, tuple(created))


def markers(store: Source, scope: str) -> list[str]:
    """Names of the streams in a scope that may remember claims to prefixes. ScopeNotFound.

    Internal streams are in no index of tags, so what they say is yet to be looked at.
    """
    return [
        name
        for name in store.list_streams(scope, internal=True)
        if name.startswith(MARKER) and name != SCOPE_MARKER
    ]


def claimed_prefixes(store: Source, scope: str) -> tuple[str, ...]:
    """How the names of streams begin that EphemeralStreams claim, of whatever cluster; sorted.

    Raises:
        ScopeNotFound: there is no such scope.
    """
    found = each(partial(_claimed_by, store, scope), markers(store, scope))
    return tuple(sorted({prefix for prefix in found if prefix is not None}))


def _claimed_by(store: Source, scope: str, marker: str) -> str | None:
    """The prefix that a marker remembers. A copy of its tags under another name claims nothing."""
    config = store.configuration(StreamName(scope=scope, stream=marker))
    tags = () if config is None else config.tags
    resource = resource_of(tags)
    if resource is None or marker != f"{MARKER}{resource[1]}":
        return None
    return prefix_of(tags)


def _is_under(name: str, claim: Claim) -> bool:
    return claim.prefix is not None and name.startswith(claim.prefix)


def _is_new(created: int | None, claim: Claim, found: Marker) -> bool:
    return found.created is not None and is_new(
        created, claim, marker_tags=found.tags, marked=found.created
    )


class _Seen(NamedTuple):
    tags: tuple[str, ...]
    created: int | None


def _look(claim: Claim, store: Source, known: set[str], stream: str) -> _Seen | None:
    """A stream under a prefix, and when it was made, if it is not among those that are known."""
    name = StreamName(scope=claim.scope, stream=stream)
    found = store.describe(name)
    if found is None:
        return None
    return _Seen(found.config.tags, None if stream in known else made_at(name, found, store))
