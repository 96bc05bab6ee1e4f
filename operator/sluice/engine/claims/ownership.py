"""Find out whose streams are, by what a store says about a claim. Nothing is changed here."""

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
"""How many streams under a prefix are looked at, or released, at the same time."""

_PART: Final = 256
"""How many streams under a prefix form a part, which is looked at and released as a whole."""

_A = TypeVar("_A")
_T = TypeVar("_T")


class One(NamedTuple):
    """The one stream of a claim; None if it does not exist.

    `created` is in the store's milliseconds, None if it is not known.
    """

    stream: Stream | None
    ownership: Ownership
    created: int | None


class Marker(NamedTuple):
    """The stream that records a claim to a prefix.

    Attributes:
        tags: its tags.
        sealed: whether it is sealed, since the claim is being released.
        segment: the full name of its segment.
        created: when it was made, in the store's milliseconds; None if that is not known.
        whole: whether the claim counts. It does once the list of older streams is complete, if the
            marker is to have one.
    """

    tags: tuple[str, ...]
    sealed: bool
    segment: str
    created: int | None
    whole: bool = True


class Under(NamedTuple):
    """The streams under a prefix.

    Attributes:
        marker: the marker that records the claim, if there is one.
        claimed: the names of our streams, sorted.
        news: our streams that the marker does not know yet, and when they were made.
        left_alone: how many streams are not ours.
        created: when each of our streams was made, in the store's milliseconds; None if that is not
            known, or was not asked.
    """

    marker: Marker | None
    claimed: tuple[str, ...] = ()
    news: tuple[tuple[str, int | None], ...] = ()
    left_alone: int = 0
    created: tuple[int | None, ...] = ()


def name_of(claim: Claim) -> StreamName:
    """Return the name of the one stream that is claimed."""
    return StreamName(scope=claim.scope, stream=claim.stream or "")


def each(call: Callable[[_A], _T], these: Sequence[_A]) -> list[_T]:
    """Call for several items at the same time. Each is tried, even if another raises an error."""
    if not these:
        return []
    with ThreadPoolExecutor(min(AT_ONCE, len(these)), thread_name_prefix="streams") as pool:
        return list(pool.map(carried(apart(call)), these))


def one(claim: Claim, store: Source) -> One:
    """Look at the one stream of a claim, and find out whose it is."""
    name = name_of(claim)
    stream = store.describe(name)
    if stream is None:
        return One(None, Ownership.ABSENT, None)
    created = made_at(name, stream, store)
    return One(stream, _ownership(claim, stream.config.tags, created), created)


def _ownership(claim: Claim, tags: tuple[str, ...], created: int | None) -> Ownership:
    if claim.claimant.owns(tags):
        return Ownership.OURS
    # A user may have removed some or all of our tags. Tags of another resource make it the owner.
    others = {tag for tag in tags if tag.startswith(OURS)} - set(claim.claimant.tags())
    if not others and created is not None and created == claim.known:
        return Ownership.OURS
    return Ownership.OTHERS if is_owned(tags) else Ownership.UNOWNED


def marker(claim: Claim, store: Source) -> Marker | None:
    """Return the marker that records a claim to a prefix; None if there is none of ours."""
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
    """Yield the streams under a prefix that may be older than the resource, and their age.

    The age is the creation time in the store's milliseconds, 0 if it is not known. Call this before
    the claim counts: later streams are certainly younger, whatever the clocks say.
    """
    names = [name for name in store.list_streams(claim.scope) if _is_under(name, claim)]
    for part in batches(names, _PART):
        for name, seen in zip(part, each(partial(_look, claim, store, set()), part), strict=True):
            if seen is not None and not _is_new(seen.created, claim, found):
                yield name, seen.created or 0


def under(claim: Claim, store: Source) -> Under:
    """Look at the streams under a prefix. Without a marker, none of them is ours.

    A stream with a tag of any Sluice belongs to the resource of that tag, whatever its name is.
    """
    found, *parts = parts_of(claim, store)
    return Under(
        found.marker,
        tuple(name for part in parts for name in part.claimed),
        tuple(new for part in parts for new in part.news),
        found.left_alone + sum(part.left_alone for part in parts),
    )


def parts_of(claim: Claim, store: Source, *, ages: bool = False) -> Iterator[Under]:
    """Yield the streams under a prefix in parts, of which the first has only the marker.

    Each part is looked at when it is taken.

    Args:
        claim: the claim.
        store: the store.
        ages: whether to ask for the creation time also of streams that are known as ours.
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
    """Tell which of some streams under a prefix are ours."""
    marks = store.attributes([(found.segment, claim.mark(name)) for name in names])
    known = {name for name, mark in zip(names, marks, strict=True) if mark is not None}
    rest = [name for name in names if name not in known] if has_list(found.tags) else []
    listed = store.attributes([(found.segment, claim.older(name)) for name in rest])
    older = dict(zip(rest, listed, strict=True))

    def is_younger(name: str, created: int | None) -> bool:
        if not has_list(found.tags):  # without a list only its age tells
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
    """List the streams of a scope that may be markers of prefixes, by their names.

    A store has no index of the tags of internal streams, so the caller has to read their tags.

    Raises:
        ScopeNotFound: the scope does not exist.
    """
    return [
        name
        for name in store.list_streams(scope, internal=True)
        if name.startswith(MARKER) and name != SCOPE_MARKER
    ]


def claimed_prefixes(store: Source, scope: str) -> tuple[str, ...]:
    """Return the prefixes that EphemeralStreams of all clusters claim in a scope, sorted.

    Raises:
        ScopeNotFound: the scope does not exist.
    """
    found = each(partial(_claimed_by, store, scope), markers(store, scope))
    return tuple(sorted({prefix for prefix in found if prefix is not None}))


def _claimed_by(store: Source, scope: str, marker: str) -> str | None:
    """Return the prefix that a marker claims. A stream with copied tags claims nothing."""
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


class _SeenStream(NamedTuple):
    tags: tuple[str, ...]
    created: int | None


def _look(claim: Claim, store: Source, known: set[str], stream: str) -> _SeenStream | None:
    """Look at a stream under a prefix. Its creation time is read only if it is not in `known`."""
    name = StreamName(scope=claim.scope, stream=stream)
    found = store.describe(name)
    if found is None:
        return None
    return _SeenStream(found.config.tags, None if stream in known else made_at(name, found, store))
