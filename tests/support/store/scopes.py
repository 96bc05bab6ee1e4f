"""A scope of streams, no two alike, and the witnesses' view of a scope.

The official Java client writes the streams and describes them. The stand-alone script hashes their
segments.
"""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field, replace
from functools import partial
from typing import TYPE_CHECKING, Any, Final

import segment_hash

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping

    from localstore import ForeignClient
    from localstore.foreign_many import Deed

Address = tuple[str, int]
Ranges = tuple[tuple[float, float], ...]

EPOCH: Final = 1 << 32
SPLIT: Final[tuple[tuple[int, ...], Ranges]] = ((0,), ((0.0, 0.2), (0.2, 0.5)))
MERGED: Final[tuple[tuple[int, ...], Ranges]] = ((EPOCH | 3, 1), ((0.2, 1.0),))
HALVES: Final[tuple[tuple[int, ...], Ranges]] = ((0, 1), ((0.0, 1.0),))

BY_EVENTS: Final = {"scaling": "EVENTS", "rate": 1_000_000_000, "factor": 2}
BY_BYTES: Final = {"scaling": "BYTES", "rate": 1_000_000, "factor": 3}
BY_SIZE: Final = {"keepBytes": 1 << 40}
BY_TIME: Final = {"keepMillis": 30 * 86_400_000}

KEYS: Final = 16
OURS: Final = "sluice.dev/"
"""The prefix of the tags that Sluice puts on its targets."""

_THREADS: Final = 12
_SECONDS: Final = 300.0


@dataclass(frozen=True, kw_only=True)
class Sketch:
    """A stream to write.

    Attributes:
        name: the stream's name.
        segments: number of segments at its creation.
        events: number of events before and after each scale event.
        size: bytes of each payload.
        scales: the scale events: ids of the segments that end, and the key ranges of the new ones.
        policy: scaling, retention and tags, as `Policies.java` has them.
        sealed: whether it is sealed at the end.
        truncated: offset of each segment at which the stream begins in the end, by segment id.
    """

    name: str
    segments: int = 1
    events: int = 0
    size: int = 100
    scales: tuple[tuple[tuple[int, ...], Ranges], ...] = ()
    policy: Mapping[str, object] = field(default_factory=dict)
    sealed: bool = False
    truncated: Mapping[int, int] = field(default_factory=dict)

    def script(self, scope: str) -> list[Deed]:
        """Return the commands that write the stream."""
        name: dict[str, object] = {"scope": scope, "stream": self.name}
        made = name | {"segments": self.segments}
        deeds: list[Deed] = [("create", made | dict(self.policy))]
        if self.scales:  # with its first policy, the store would allow no fewer segments
            deeds.append(("update", name | {"segments": 1, **BY_EVENTS} | dict(self.policy)))
        for number, (ended, ranges) in enumerate([((), ()), *self.scales]):
            if ended:
                deeds.append(("scale", name | {"segments": _list(ended), "ranges": _text(ranges)}))
            if self.events:
                first = number * self.events
                much = {"events": self.events, "size": self.size, "keys": KEYS, "first": first}
                deeds.append(("write", name | much))
        if self.truncated:
            offsets = ",".join(f"{segment}:{at}" for segment, at in self.truncated.items())
            deeds.append(("truncate", name | {"offsets": offsets}))
        if self.sealed:
            deeds.append(("seal", name))
        return deeds


def _streams() -> tuple[Sketch, ...]:
    empty = Sketch(name="", policy=BY_TIME)
    clicks = Sketch(name="", events=10, policy={"tags": "team=web"})
    orders = Sketch(name="", segments=2, events=300, size=400, policy={"tags": "pii,team=shop"})
    pay = Sketch(name="", events=200, size=9000, policy=BY_TIME | {"tags": "team=shop"})
    return (
        replace(empty, name="audit-0", scales=(((0,), ((0.0, 0.5), (0.5, 1.0))),)),
        replace(empty, name="audit-1", segments=3, sealed=True, policy={"tags": "team=legal"}),
        replace(clicks, name="clicks-0", policy={"tags": "team=web"} | BY_BYTES),
        replace(clicks, name="clicks-1", segments=2, events=20),
        Sketch(name="event-0", events=1),
        Sketch(name="event-1", segments=2, events=1, size=100_000, sealed=True),
        replace(orders, name="orders-0", scales=(SPLIT,)),
        replace(orders, name="orders-1", scales=(HALVES,)),
        replace(orders, name="orders-2", scales=(SPLIT, MERGED)),
        replace(orders, name="orders-3", scales=(SPLIT, MERGED), sealed=True),
        replace(
            orders,
            name="orders-4",
            scales=(SPLIT, MERGED),
            truncated={EPOCH | 2: 0, EPOCH | 3: 10 * 408, 1: 0},
        ),
        replace(orders, name="orders-5", segments=1, policy=BY_SIZE | {"tags": "pii"}),
        replace(pay, name="payments-0", segments=4, events=400, policy=BY_EVENTS),
        replace(pay, name="payments-1"),
        replace(pay, name="payments-2", segments=2, policy=BY_SIZE, sealed=True),
        Sketch(name="images", segments=2, events=100, size=100_000, policy=BY_BYTES),
    )


STREAMS: Final = _streams()
"""16 streams, 19 MB: empty, of one event, of some KB, of some MB, and one of 10 MB."""

NAMES: Final = tuple(sorted(sketch.name for sketch in STREAMS))
TRUNCATED: Final = frozenset(sketch.name for sketch in STREAMS if sketch.truncated)
"""Names of streams whose targets have other segment ids."""


def fill(foreign: ForeignClient, scope: str, sketches: Iterable[Sketch] = STREAMS) -> None:
    """Make a scope, and write streams into it."""
    foreign.create_scope(scope)
    # Streams that wait for their scale events come first.
    slow = sorted(sketches, key=lambda one: -len(one.scales))
    scripts = [sketch.script(scope) for sketch in slow]
    foreign.together(scripts, threads=_THREADS, seconds=_SECONDS)


def names_in(foreign: ForeignClient, scope: str) -> list[str] | None:
    """Return a scope's streams that are not internal, sorted; None if the scope does not exist."""
    found = foreign.streams(scope)
    return None if found is None else [name for name in found if not name.startswith("_")]


@dataclass(frozen=True)
class Seen:
    """A stream as witnesses find it.

    Attributes:
        sealed: whether the stream is sealed.
        ranges: id and key range of each segment, by the Java client.
        segments: the stand-alone script's report on each segment, in the order of ids.
        policy: the stream's configuration without Sluice's tags, by the Java client.
        tags: Sluice's tags.
    """

    sealed: bool
    ranges: tuple[tuple[int, float | None, float | None], ...]
    segments: tuple[dict[str, Any], ...]
    policy: dict[str, Any]
    tags: tuple[str, ...]

    @property
    def bytes(self) -> int:
        """The number of bytes in all segments."""
        return sum(segment["length"] for segment in self.segments)


def seen(
    server: Address,
    foreign: ForeignClient,
    scope: str,
    names: Iterable[str] | None = None,
    *,
    login: bool = False,
) -> dict[str, Seen]:
    """Return the streams of a scope.

    Args:
        server: address of the segment store.
        foreign: the store's Java client.
        scope: the scope.
        names: names of the streams; all that are not internal by default.
        login: whether the segment store needs a login.
    """
    wanted = list(names_in(foreign, scope) or () if names is None else names)
    commands = ("info", "configuration", "token")[: 3 if login else 2]
    answers = foreign.together(
        [[(command, {"scope": scope, "stream": name}) for command in commands] for name in wanted],
        threads=_THREADS,
        seconds=_SECONDS,
    )

    with ThreadPoolExecutor(4) as threads:
        found = threads.map(partial(_seen, server, scope), wanted, answers)
        return dict(zip(wanted, found, strict=True))


def _seen(server: Address, scope: str, name: str, answers: list[dict[str, Any]]) -> Seen:
    """Return one stream, by the Java client's answers and the script."""
    info, policy, *tokens = answers
    token = tokens[0]["token"] if tokens else ""
    tags = tuple(policy.pop("tags"))
    return Seen(
        sealed=info["sealed"],
        ranges=tuple((one["id"], one["low"], one["high"]) for one in info["segments"]),
        segments=tuple(
            segment_hash.segment_report(*server, scope, name, one["id"], token=token)
            for one in info["segments"]
        ),
        policy=policy | {"tags": [tag for tag in tags if not tag.startswith(OURS)]},
        tags=tuple(tag for tag in tags if tag.startswith(OURS)),
    )


def assert_equal(
    sources: Mapping[str, Seen],
    targets: Mapping[str, Seen],
    *,
    renamed: Callable[[str], str] = str,
    made: bool = True,
    same_ids: bool = True,
) -> None:
    """Check that each source has one target like it, and that no other stream exists.

    Compared are bytes, digests, events, ids and key ranges of each segment, scaling, retention and
    tags. No target is sealed.

    Args:
        sources: the sources.
        targets: all streams of the target's scope.
        renamed: function from a source's name to its target's.
        made: whether all targets are Sluice's own.
        same_ids: whether ids are compared: a name that was used before has other ids.
    """
    assert sorted(targets) == sorted(map(renamed, sources))
    for name, source in sources.items():
        assert_alike(name, source, targets[renamed(name)], made=made, same_ids=same_ids)


def assert_alike(
    name: str, source: Seen, target: Seen, *, made: bool = True, same_ids: bool = True
) -> None:
    """Compare a target with its source; see assert_equal. Ids of truncated streams differ."""
    same_ids, whole = same_ids and name not in TRUNCATED, not source.sealed
    kept = {"ids": same_ids, "empty": whole}
    assert _content(source, **kept) == _content(target, **kept), name
    assert target.policy == source.policy, name
    assert any(tag.startswith(f"{OURS}complete=") for tag in target.tags) is made, name
    assert not target.sealed, name
    if same_ids and whole:
        assert target.ranges == source.ranges, name


def _content(stream: Seen, *, ids: bool, empty: bool) -> list[tuple[object, ...]]:
    """Return each segment's content, by id if ids count. Sealed streams do not list empty ones."""
    kept = ("length", "sha256", "events", "broken_at", *["id"] * ids)
    found = [
        tuple(segment[key] for key in kept)
        for segment in stream.segments
        if empty or segment["length"]
    ]
    return found if ids else sorted(found, key=str)


def _list(numbers: Iterable[int]) -> str:
    return ",".join(map(str, numbers))


def _text(ranges: Ranges) -> str:
    return ",".join(f"{low:.17f}-{high:.17f}" for low, high in ranges)
