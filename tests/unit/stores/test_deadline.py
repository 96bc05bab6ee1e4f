"""The bound on the time of each call, whatever the store does."""

from __future__ import annotations

import asyncio
import itertools
import socket
import threading
from contextlib import suppress
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import TYPE_CHECKING, Any, cast

import pytest

from sluice.archive.objects.s3 import Bucket, S3Keys, S3Objects
from sluice.archive.runs.leases import Lease
from sluice.config import StoreTimeouts
from sluice.core.archive.lease import LeaseWork
from sluice.engine.access import parallel
from sluice.engine.claims import ownership, scope_lifecycle
from sluice.errors import StoreTimeout
from sluice.kube.loop.memory import Blocking, BoundedThreads
from sluice.stores import deadline
from sluice.stores.allowance import Allowance
from sluice.stores.deadline import within
from sluice.stores.pravega.names import Endpoint
from sluice.stores.pravega.proto import controller_pb2 as pb
from sluice.stores.pravega.sockets.wires import PlainWire
from sluice.stores.pravega.wire.connection import Connection
from sluice.stores.pravega.wire.messages import KeepAlive
from sluice.stores.pravega.wire.wire import encode
from support.model import ModelStore, World
from support.model.memory_objects import MemoryObjects
from support.wire.hostile import HostileController

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

    from sluice.stores.base import Store

SHORT = 0.3
PATIENT = StoreTimeouts(connect=60, call=60, stall=60)


def _endless() -> HostileController:
    count = itertools.count()
    return HostileController(
        listScopes=lambda _: pb.ScopesResponse(
            scopes=["s"], continuationToken=pb.ContinuationToken(token=str(next(count)))
        )
    )


def test_a_listing_ends_with_the_time_of_whoever_asks() -> None:
    """Each page comes at once, but each leads to another page."""
    with _endless().running() as store, within(SHORT), pytest.raises(StoreTimeout):
        store.list_scopes()


def test_nothing_is_asked_when_the_time_is_over() -> None:
    """A caller that goes on after its time gets a timeout, and the store gets no call."""
    controller = _endless()
    with controller.running() as store, within(0), pytest.raises(StoreTimeout, match="too long"):
        store.list_scopes()
    assert controller.calls == []


def test_a_call_is_called_off() -> None:
    """The thread of the calls goes on, and the pending request is cancelled."""
    asked, cancelled = threading.Event(), threading.Event()

    async def hang(_: object) -> None:
        asked.set()
        try:
            await asyncio.sleep(600)
        finally:
            cancelled.set()

    with _endless().running() as store:
        with within(SHORT), pytest.raises(StoreTimeout):
            store._directory.run(hang)
        assert asked.is_set()
        assert cancelled.wait(30)


@pytest.fixture
def pair() -> Iterator[tuple[Connection, socket.socket]]:
    """Yield a connection and the bare socket at its other end."""
    ours, theirs = socket.socketpair()
    with theirs:
        connection = Connection(PlainWire(ours), Endpoint("store.example", 1))
        yield connection, theirs
        connection.close()


def test_a_message_ends_with_the_time_of_whoever_waits(
    pair: tuple[Connection, socket.socket],
) -> None:
    """The caller's deadline ends the wait, although the call itself might take longer."""
    with within(SHORT), pytest.raises(StoreTimeout):
        pair[0].receive(600)


def test_signs_of_life_keep_nobody(pair: tuple[Connection, socket.socket]) -> None:
    """A peer may send KeepAlives without end, and the caller still ends at its deadline."""
    connection, theirs = pair
    alive = b"".join(encode(KeepAlive())) * 1000
    stop = threading.Event()

    def flood() -> None:
        while not stop.is_set():
            theirs.sendall(alive)

    thread = threading.Thread(target=flood)
    thread.start()

    def look_what_is_there() -> None:
        while True:
            connection.poll()

    with within(SHORT), pytest.raises(StoreTimeout):
        look_what_is_there()
    stop.set()
    while thread.is_alive():
        connection.poll()
    thread.join()


@pytest.mark.parametrize("each", [parallel.each, ownership.each])
def test_threads_of_a_call_have_its_time(each: Callable[..., list[object]]) -> None:
    """Parallel calls share the deadline of their caller."""
    with within(0), pytest.raises(StoreTimeout):
        each(lambda _: deadline.left(), [1, 2, 3])


def test_each_call_of_the_operator_is_bounded() -> None:
    """The operator's threads bound the calls of all its parts."""

    async def ask(store: Store) -> list[str]:
        return await Blocking(threads)(store.list_scopes)

    with (
        BoundedThreads(1, SHORT, Allowance()) as threads,
        _endless().running() as store,
        pytest.raises(StoreTimeout),
    ):
        asyncio.run(ask(store))


class Punctual(MemoryObjects):
    """Objects whose deletion respects the caller's deadline."""

    def delete(self, names: Sequence[str]) -> None:
        """Delete these objects, unless the time is over."""
        deadline.left()
        super().delete(names)


def test_a_lease_is_given_back_though_the_time_is_over() -> None:
    """An unreleased lease would keep other clients away for hours."""
    objects = Punctual()
    lease = Lease(objects, "0" * 32, LeaseWork.SWEEP)
    with suppress(StoreTimeout), within(0), lease:
        deadline.left()
    assert not objects.held


def test_who_waits_for_others_at_a_scope_waits_for_so_long_only() -> None:
    """The other clients' calls may hang in the store for ever."""
    store = cast("Store", ModelStore(World()))
    gate = scope_lifecycle._gate(store, "held")
    with gate.removing(), within(SHORT), pytest.raises(StoreTimeout), gate.using():
        raise AssertionError("the scope is being removed")
    with gate.using(), within(SHORT), pytest.raises(StoreTimeout), gate.removing():
        raise AssertionError("the scope is in use")
    with gate.removing():  # a removal that was given up does not block others
        pass


PAGE = """<ListBucketResult><Name>archives</Name><KeyCount>1</KeyCount>
<IsTruncated>true</IsTruncated>
<NextContinuationToken>{token}</NextContinuationToken><CommonPrefixes><Prefix>f{token}/</Prefix>
</CommonPrefixes><Contents><Key>k{token}</Key><LastModified>2026-11-23T08:00:00.000Z</LastModified>
<ETag>"1"</ETag><Size>1</Size><StorageClass>STANDARD</StorageClass></Contents></ListBucketResult>"""


class Endless(BaseHTTPRequestHandler):
    """A bucket in which each page leads to another page."""

    protocol_version = "HTTP/1.1"
    count = itertools.count()

    def do_GET(self) -> None:
        """Answer with a page."""
        body = PAGE.format(token=next(self.count)).encode()
        self.send_response(200)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, *_: Any) -> None:
        """Log nothing."""


@pytest.fixture
def bucket() -> Iterator[S3Objects]:
    """Yield a bucket whose listing has no end."""
    with ThreadingHTTPServer(("127.0.0.1", 0), Endless) as server:
        thread = threading.Thread(target=server.serve_forever, args=(0.01,))
        thread.start()
        place = Bucket(name="archives", endpoint=f"http://127.0.0.1:{server.server_port}")
        keys = S3Keys(access="a", secret="s")  # noqa: S106 - no real account
        yield S3Objects(place, keys=keys, timeouts=PATIENT)
        server.shutdown()
        thread.join()


def test_a_bucket_without_end_is_listed_for_so_long_only(bucket: S3Objects) -> None:
    """The deadline holds between pages, of which each call brings one."""
    with within(SHORT), pytest.raises(StoreTimeout):
        list(bucket.list())


def test_folders_without_end_are_listed_for_so_long_only(bucket: S3Objects) -> None:
    """The deadline also holds within the single call of the library that lists all folders."""
    with within(SHORT), pytest.raises(StoreTimeout):
        bucket.folders()
