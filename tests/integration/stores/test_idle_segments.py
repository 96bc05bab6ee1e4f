"""A store's answers about idle segments, which it has evicted from its memory.

Pravega 0.13.0 keeps segments in memory for 60 s after their last use. A shorter time cannot be
configured (`ContainerConfig.MINIMUM_SEGMENT_METADATA_EXPIRATION_SECONDS`).
"""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack
from typing import TYPE_CHECKING, NamedTuple
from uuid import UUID, uuid4

import pytest

from sluice.config import StoreTimeouts
from sluice.core.values.model import Scaling, StreamConfig, StreamName
from sluice.errors import ConditionFailed, PermissionDenied
from sluice.stores.credentials import Credentials
from sluice.stores.pravega.store import PravegaStore
from sluice.stores.writing import CompareAndSet
from support.store.idle import all_of, in_memory, wait_until_evicted
from support.until import until

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from localstore import Cluster, Standalone

pytestmark = [pytest.mark.cluster, pytest.mark.exhaustive, pytest.mark.timeout(900)]

MARK, NOTE, WRITER = (UUID(int=number) for number in (11, 12, 13))
LOGINS = "with logins"
KINDS = (LOGINS, "standalone", "cluster")
NUMBERS = 12
"""Segments of each stream. A test reads each of them once, since a read brings it back into
memory."""


class Idle(NamedTuple):
    """A store that has evicted these segments.

    Attributes:
        store: client of a user with all rights.
        reader: client of a user who may only read; None without logins.
        live: names of segments with a mark.
        sealed: names of sealed staging segments with a mark.
        merged: names of segments with a merged staging segment, a mark and a note.
        staged: names of staging segments beside these, which are not merged.
    """

    store: PravegaStore
    reader: PravegaStore | None
    live: list[str]
    sealed: list[str]
    merged: list[str]
    staged: list[str]


def prepared(store: PravegaStore, reader: PravegaStore | None) -> Idle:
    """Make segments with marks, and wait until the store has evicted them."""
    scope = f"idle-{uuid4().hex[:8]}"
    store.create_scope(scope)
    config = StreamConfig(scaling=Scaling(min_segments=NUMBERS))
    names: dict[str, list[str]] = {}
    streams = {kind: StreamName(scope=scope, stream=kind) for kind in ("live", "merged")}
    for kind, stream in streams.items():
        store.create_stream(stream, config)
        names[kind] = [store.segment_name(stream, number) for number in range(NUMBERS)]
        for beside in ("sealed", "staged"):
            key = uuid4().hex
            names[f"{kind}-{beside}"] = [
                store.staging_name(stream, number, key) for number in range(NUMBERS)
            ]
    for name in names["live"]:
        assert store.set_attribute(name, CompareAndSet(MARK, None, 7))
    for name in names["live-sealed"]:
        assert store.create(name)
        with store.appender(name, writer=WRITER, window=1 << 20) as appender:
            appender.append(b"abc", event_number=41)
            appender.flush()
        assert store.set_attribute(name, CompareAndSet(MARK, None, 7))
        store.seal(name)
    for target, *ours in zip(
        names["merged"], names["merged-sealed"], names["merged-staged"], strict=True
    ):
        for name in ours:
            assert store.create(name)
            assert store.append_at(name, 0, b"abc")
        store.seal(ours[0])
        store.merge(target, ours[0], CompareAndSet(MARK, None, 7), events=3, notes=[(NOTE, 8)])
    wait_until_evicted(store, all_of(streams.values(), NUMBERS))
    return Idle(
        store,
        reader,
        names["live"],
        names["live-sealed"],
        names["merged"],
        names["merged-staged"],
    )


@pytest.fixture(scope="module")
def stores(
    request: pytest.FixtureRequest,
    standalone: Standalone,
    standalone_auth: Standalone,
    cluster: Cluster,
) -> Iterator[dict[str, Idle]]:
    """Yield a store of each kind that tests need. The waits for evictions run side by side."""
    items = [item for item in request.session.items if item.path == request.path]
    calls = [item.callspec for item in items if hasattr(item, "callspec")]
    wanted = {LOGINS, *(call.params.get("idle") or call.params["kind"] for call in calls)}
    users = {user.name: Credentials(user.name, user.password) for user in standalone_auth.users}
    with ExitStack() as stack:

        def client(uri: str, user: str = "") -> PravegaStore:
            store = PravegaStore(uri, credentials=users.get(user), timeouts=StoreTimeouts())
            stack.callback(store.close)
            return store

        clients = {
            "standalone": (client(standalone.controller_uri), None),
            LOGINS: (
                client(standalone_auth.controller_uri, "admin"),
                client(standalone_auth.controller_uri, "reader"),
            ),
            "cluster": (client(cluster.controller_uri), None),
        }
        with ThreadPoolExecutor(len(clients)) as pool:
            found = {
                kind: pool.submit(prepared, *clients[kind]) for kind in clients.keys() & wanted
            }
            yield {kind: one.result() for kind, one in found.items()}


@pytest.fixture(params=KINDS)
def idle(request: pytest.FixtureRequest, stores: dict[str, Idle]) -> Idle:
    """Return a store of one kind."""
    return stores[request.param]


def test_what_is_stored_is_read_though_it_is_not_in_memory(idle: Idle) -> None:
    """Sluice reads stored values, although the store's own reply says that nothing is set."""
    assert not in_memory(idle.store, idle.live[0], MARK)
    asked = [(idle.live[0], MARK), (idle.live[0], NOTE), (idle.live[1], MARK)]
    assert idle.store.attributes(asked) == [7, None, 7]
    assert idle.store.attributes(asked) == [7, None, 7]


def test_marks_that_came_with_a_merge_are_read(idle: Idle) -> None:
    """Condition, notes and event count of a merge are read. The merged segment is gone."""
    asked = [
        (name, one) for name in idle.merged[:2] for one in (MARK, NOTE, idle.store.event_count)
    ]
    assert idle.store.attributes(asked) == [7, 8, 3] * 2
    gone = idle.merged[0] + "#transaction." + "0" * 32
    assert idle.store.attributes([(gone, MARK)]) == [None]


def test_marks_of_sealed_segments_are_read(idle: Idle) -> None:
    """Marks and the last event number of a writer are read from sealed segments."""
    assert not in_memory(idle.store, idle.sealed[0], MARK)
    asked = [(name, one) for name in idle.sealed for one in (MARK, WRITER, NOTE)]
    assert idle.store.attributes(asked) == [7, 41, None] * NUMBERS


def test_times_and_counts_are_always_in_memory(idle: Idle) -> None:
    """Creation times and event counts are core attributes, which stay in memory."""
    store = idle.store
    (created,) = store.attributes([(idle.live[2], store.creation_time)])
    assert created
    assert store.attributes([(idle.merged[2], store.event_count)]) == [3]


def test_a_mark_that_is_set_is_not_set_again(idle: Idle) -> None:
    """Neither a compare-and-set nor a merge that expects no mark replaces a set mark."""
    assert not idle.store.set_attribute(idle.live[3], CompareAndSet(MARK, None, 9))
    assert idle.store.attributes([(idle.live[3], MARK)]) == [7]
    with pytest.raises(ConditionFailed):
        idle.store.merge(idle.merged[3], idle.staged[3], CompareAndSet(MARK, None, 9))
    assert idle.store.attributes([(idle.merged[3], MARK)]) == [7]
    (info,) = idle.store.infos([idle.merged[3]])
    assert info is not None
    assert info.length == 3


def test_a_mark_that_is_set_is_replaced(idle: Idle) -> None:
    """A client that expects the set value replaces a mark."""
    assert idle.store.set_attribute(idle.live[4], CompareAndSet(MARK, 7, 9))
    assert idle.store.attributes([(idle.live[4], MARK)]) == [9]


def test_a_mark_is_seen_by_all_who_look_at_once(idle: Idle) -> None:
    """All clients that read at once see the mark, although the store first refuses all but one."""
    asked = [(name, MARK) for name in idle.live[6:12]]
    stores = [idle.store, idle.reader or idle.store] * 4
    with ThreadPoolExecutor(len(stores)) as pool:
        seen = list(pool.map(lambda store: store.attributes(asked), stores))
    assert seen == [[7] * len(asked)] * len(stores)


def test_who_may_only_read_sees_marks(stores: dict[str, Idle]) -> None:
    """A user who may only read sees marks of live segments. For sealed ones there is an error."""
    _, reader, live, sealed, merged, _ = stores[LOGINS]
    assert reader is not None
    assert reader.attributes([(live[5], MARK), (live[5], NOTE)]) == [7, None]
    assert reader.attributes([(merged[5], one) for one in (MARK, NOTE)]) == [7, 8]
    with pytest.raises(PermissionDenied, match="is sealed"):
        reader.attributes([(sealed[5], MARK)])


@pytest.mark.parametrize("kind", KINDS)
def test_what_was_sealed_long_ago_is_merged_to_the_end(
    kind: str,
    stores: dict[str, Idle],
    standalone: Standalone,
    standalone_auth: Standalone,
    cluster: Cluster,
) -> None:
    """A merge of a long-sealed segment is answered at once. Its bytes reach long-term storage."""
    store, _, live, sealed, *_ = stores[kind]
    target, source = live[4], sealed[4]
    alone = {"standalone": standalone.data, LOGINS: standalone_auth.data}
    folder = alone.get(kind, cluster.data) / "storage"
    assert store.append_at(target, 0, b"before ")
    until("the target has a file", lambda: _stored(folder, target) == len("before "))
    store.seal(source)
    store.merge(target, source, CompareAndSet(NOTE, None, 1))
    until("all is in it", lambda: _stored(folder, target) == len("before abc"))


def _stored(folder: Path, segment: str) -> int:
    """Return the number of bytes in a segment's files in the long-term storage, a folder."""
    stream, _, number = segment.rpartition("/")
    return sum(file.stat().st_size for file in (folder / stream).glob(f"{number}.E-*"))
