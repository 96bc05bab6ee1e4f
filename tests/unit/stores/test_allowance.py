"""The bound on the memory of peers' answers, for each look and for all together."""

from __future__ import annotations

import asyncio
import base64
import gc
import gzip
import json
import struct
import sys
import threading
import tracemalloc
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack
from contextvars import Context, copy_context
from typing import TYPE_CHECKING, cast

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sluice.archive.runs.archive import Archive
from sluice.core.archive.documents import MOST_SHORT, encode
from sluice.core.archive.head import Head, RunEntry
from sluice.core.archive.names import RunName, head_name
from sluice.core.copy.journal import digest_record
from sluice.core.copy.record_frames import frame
from sluice.core.values.weight import weight_of_json
from sluice.engine.access import parallel
from sluice.engine.claims import ownership
from sluice.engine.journal.copy_journal import CopyJournal
from sluice.engine.scope.log import ScopeLog
from sluice.errors import ProtocolError, StoreTimeout
from sluice.kube.loop.memory import Blocking, BoundedThreads
from sluice.stores import allowance
from sluice.stores.allowance import Allowance, Held, Kept, held, part, take, tenant
from sluice.stores.deadline import within
from sluice.stores.pravega.wire.wire import MAX_READ, FrameDecoder, FrameType
from support.engine.plans import COPY, TARGET, segment_plan, stream_plan
from support.model import ModelStore, World
from support.model.memory_objects import MemoryObjects

if TYPE_CHECKING:
    from collections.abc import Callable

    from sluice.stores.base import Store

SMALL, LARGE = 1_000, 10_000


def allowed(**more: int) -> Allowance:
    """Make an allowance of a few bytes."""
    return Allowance(**{"small": SMALL, "large": LARGE, "at_once": 1, "kept": 2_000} | more)


def test_without_a_look_nothing_is_counted() -> None:
    """Drivers and the command line work for one resource, and have no allowance."""
    assert Held().add(1 << 60)
    assert take(1 << 60)


def test_a_look_that_would_hold_too_much_is_refused() -> None:
    """All answers of a look count together."""
    with allowed().look("a"), held(6_000), pytest.raises(ProtocolError, match="10 kB of memory"):
        take(5_000)


def test_what_is_let_go_does_not_count() -> None:
    """Values that are held one after another count as the largest of them."""
    with allowed().look("a"):
        for _ in range(10):
            with held(6_000):
                pass
            with part():
                take(6_000)
            mine = Held()
            mine.add(6_000)
            del mine


@pytest.mark.parametrize("each", [parallel.each, ownership.each])
def test_many_streams_count_as_those_that_are_looked_at(each: Callable[..., list[object]]) -> None:
    """A look at a hundred streams keeps little of each, so their answers do not add up."""
    with Allowance(small=1 << 20, large=1 << 20).look("a"):
        each(lambda _: take(20_000), range(100))
        with pytest.raises(ProtocolError):
            each(lambda _: take(2 << 20), range(100))


def test_large_looks_are_let_in_one_after_the_other() -> None:
    """A second large look waits for the end of the first. Small looks do not wait."""
    mine = allowed()
    inside, leave, order = threading.Event(), threading.Event(), []

    def first() -> None:
        with mine.look("a"):
            take(2 * SMALL)
            inside.set()
            leave.wait(60)
            order.append("first")

    def second() -> None:
        with mine.look("b"):
            take(2 * SMALL)
            order.append("second")

    with ThreadPoolExecutor(2) as threads:
        one = threads.submit(first)
        assert inside.wait(60)
        other = threads.submit(second)
        with mine.look("c"):
            assert take(SMALL)
            assert not take(1, wait=False)
        leave.set()
        one.result(60)
        other.result(60)
    assert order == ["first", "second"]


def test_a_tenant_has_one_large_look_at_a_time() -> None:
    """Large looks of another tenant get their turn, however many the first tenant has."""
    mine = allowed(at_once=2)
    with mine.look("a"):
        take(2 * SMALL)
        with mine.look("a"), within(0.05), pytest.raises(StoreTimeout, match="others"):
            take(2 * SMALL)
        with mine.look("b"), within(60):
            assert take(2 * SMALL)


def test_what_is_let_go_is_given_back_while_its_look_waits() -> None:
    """A thread that finds an unreferenced value gives its bytes back without waiting."""
    mine, kept, waits = allowed(), [Held()], threading.Event()

    def second() -> None:
        with mine.look("b"), within(60):
            kept[0].add(10)
            waits.set()
            take(2 * SMALL)

    with ThreadPoolExecutor(1) as threads:
        with mine.look("a"):
            take(2 * SMALL)
            other = threads.submit(second)
            assert waits.wait(60)
            while not mine._changed._waiters:  # type: ignore[attr-defined]
                assert not other.done()
            kept.clear()
            assert not other.done()
        other.result(60)


def test_an_event_loop_does_not_wait_for_a_thread_that_waits() -> None:
    """The loop serves other looks, so it learns that there is no turn, and asks in a thread."""
    mine, waits = allowed(), threading.Event()

    def thread() -> bool:
        waits.set()
        return take(2 * SMALL)

    with ThreadPoolExecutor(1) as others, ExitStack() as first, mine.look("b"), within(60):
        mine.enter("a", 0)
        first.callback(mine.leave, "a")
        other = others.submit(copy_context().run, thread)
        assert waits.wait(60)
        while not mine._changed._waiters:  # type: ignore[attr-defined]
            assert not other.done()
        assert not take(2 * SMALL, wait=False)
        assert not other.done()
        first.close()
        assert other.result(60)


def test_heads_that_are_read_one_after_the_other_do_not_add_up() -> None:
    """An operator reads the head of an archive several times in one look."""
    objects = MemoryObjects()
    entry = RunEntry(
        run=1,
        name=str(RunName(1, "0" * 64)),
        size=1,
        sha256="0" * 64,
        time=1,
        bytes=1,
        verified=True,
    )
    objects.put(head_name(1), encode(Head(number=1, runs=(entry,))))
    archive = Archive(objects)
    with Allowance(small=20_000, large=20_000).look("a"):
        for _ in range(50):
            assert archive.head() is not None


def test_a_late_turn_keeps_nobody_out() -> None:
    """A call may go on in a library's thread after its caller has given up."""
    mine, waits = allowed(), threading.Event()
    contexts: list[Context] = []

    def late() -> bool:
        waits.set()
        return take(2 * SMALL)

    with ThreadPoolExecutor(1) as others:
        with mine.look("a"):
            take(2 * SMALL)
            with mine.look("b"):
                contexts.append(copy_context())
                left_behind = others.submit(contexts[0].run, late)
                assert waits.wait(60)
        assert left_behind.result(60)
    with mine.look("c"), within(1):
        assert take(2 * SMALL)


def test_threads_of_one_look_are_let_in_together() -> None:
    """The second thread does not wait for the end of the first one's turn."""
    with Allowance(small=SMALL, large=LARGE).look("a"), within(60):
        assert parallel.each(lambda _: take(2 * SMALL), range(4)) == [True] * 4


def test_who_waits_for_a_turn_does_so_no_longer_than_there_is_time() -> None:
    """A look without a turn raises StoreTimeout at its deadline, and is made again later."""
    mine = allowed()
    with mine.look("a"):
        take(2 * SMALL)
        with mine.look("b"), within(0.05), pytest.raises(StoreTimeout):
            take(2 * SMALL)


def test_what_is_kept_from_an_earlier_look_counts_for_the_next() -> None:
    """A watch that continues still holds the answers that it has read."""
    mine, reader = allowed(), Held()
    with mine.look("a"):
        reader.add(8_000)
    with mine.look("a"), pytest.raises(ProtocolError):
        reader.add(4_000)


def test_room_is_for_what_is_held_between_looks_too() -> None:
    """`has_room` is False once looks and kept values hold more than is allowed between looks."""
    mine, reader = allowed(), Held()
    with mine.look("a"):
        reader.add(1_500)
    assert mine.has_room
    kept = Kept(mine, 1_000)
    assert not mine.has_room
    del kept
    assert mine.has_room
    del reader
    with mine.look("a"):
        assert take(LARGE)


def test_looks_of_threads_are_those_of_the_tenant_that_asks() -> None:
    """Bytes count for the namespace that is worked for, in any thread."""
    mine = allowed()

    async def ask() -> None:
        with tenant("a"):
            await Blocking(threads)(lambda: take(2 * SMALL))
            await Blocking(threads)(lambda: seen.append(set(mine._let_in)) or take(2 * SMALL))
            await Blocking(threads)(lambda: take(2 * SMALL) and seen.append(set(mine._let_in)))

    seen: list[set[str]] = []
    with BoundedThreads(2, 5, mine) as threads:
        asyncio.run(ask())
    assert seen == [set(), {"a"}]


json_values = st.recursive(
    st.none()
    | st.booleans()
    | st.integers(-(1 << 70), 1 << 70)
    | st.floats(allow_nan=False)
    | st.text(max_size=40),
    lambda inner: st.lists(inner, max_size=8) | st.dictionaries(st.text(max_size=9), inner),
    max_leaves=60,
)


def size_of(value: object) -> int:
    """Return the bytes of memory of a value and its parts, with each string counted each time."""
    size = sys.getsizeof(value)
    if isinstance(value, dict):
        return size + sum(size_of(key) + size_of(one) for key, one in value.items())
    return size + sum(map(size_of, value)) if isinstance(value, list) else size


@given(value=json_values, ascii_only=st.booleans())
def test_json_takes_no_more_memory_than_is_told(*, value: object, ascii_only: bool) -> None:
    """The estimate holds for any JSON, with 100 bytes of tolerance."""
    data = json.dumps(value, ensure_ascii=ascii_only, separators=(",", ":")).encode()
    assert size_of(json.loads(data)) <= weight_of_json(data) + 100


@pytest.mark.parametrize("one", [b"{}", b"[]", b'{"a":1}', b'"a"', b"1234", b'{"a":[]}', b"1.5"])
def test_nor_does_much_of_the_same(one: bytes) -> None:
    """The estimate holds for the allocator's sizes, which a hostile server could choose."""
    data = b"[" + b",".join([one] * 50_000) + b"]"
    tracemalloc.start()
    found = json.loads(data)
    taken, _ = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert found
    assert taken <= weight_of_json(data)


def peak(call: Callable[[], object]) -> int:
    """Return the peak memory of a call in bytes."""
    gc.collect()
    tracemalloc.start()
    try:
        with pytest.raises(ProtocolError, match="of memory"):
            call()
        return tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()


def bomb(length: int) -> bytes:
    """Return JSON that takes thirty times its length in memory."""
    return b'{"a":[' + b"{}," * ((length - 20) // 3) + b"{}]}"


def test_a_journal_that_would_fill_the_memory_is_refused() -> None:
    """The journal of 63 MiB has records of maximal length that consist of empty values."""
    world = World()
    store = cast("Store", ModelStore(world, block=1 << 20))
    mine = CopyJournal(store, COPY, TARGET)
    store.create(mine.name)
    body = bomb(7 << 20)
    world.segments[mine.name].data += (struct.pack(">ii", 0, len(body)) + body) * 9
    with Allowance().look("a"):
        assert peak(mine.load) < allowance.LARGE


def test_a_head_of_an_archive_that_would_is_refused() -> None:
    """Other clients may write to the bucket of the head."""
    objects = MemoryObjects()
    body = b'{"kind":"%s","version":"1.0",' % Head.model_fields["kind"].default.encode()
    objects.put(head_name(0), body + bomb(MOST_SHORT - 100)[1:])
    with Allowance().look("a"):
        assert peak(Archive(objects).head) < allowance.LARGE


def test_a_plan_that_would_is_refused() -> None:
    """A compressed plan that fits into a record may still expand to more than a look may hold."""
    world = World()
    store = cast("Store", ModelStore(world, block=1 << 20))
    mine = ScopeLog(store, "0" * 32, "shop")
    store.create(mine.name)
    packed = base64.b64encode(gzip.compress(bomb(30 << 20))).decode()
    world.segments[mine.name].data += frame({"record": "plan", "plan": packed})
    with Allowance().look("a"):
        assert peak(mine.load) < allowance.LARGE


def test_a_journal_of_terabytes_is_read_within_what_a_look_may_hold() -> None:
    """A journal of half a million digests (4 TiB in 64 segments) is far below the bound."""
    world = World()
    store = cast("Store", ModelStore(world, block=1 << 20))
    mine = CopyJournal(store, COPY, TARGET)
    mine.begin(stream_plan(*[segment_plan(100, number=n) for n in range(64)]))
    for segment in range(64):
        mine.write(
            [
                digest_record(segment, first, [bytes([segment]) * 32] * 32)
                for first in range(0, 8192, 32)
            ]
        )
    reader = CopyJournal(store, COPY, TARGET)
    with Allowance().look("a"):
        found = reader.load()
    assert found is not None
    assert found.known(63) == dict.fromkeys(range(8192), bytes([63]) * 32)


def test_a_connection_keeps_no_large_buffer() -> None:
    """Otherwise one long answer would keep its memory while the connection is open."""
    decoder = FrameDecoder()
    header = struct.pack(">ii", FrameType.SEGMENT_READ, MAX_READ)
    decoder.room[:8] = header
    decoder.advance(8)
    assert len(decoder.room) == MAX_READ
    decoder.advance(MAX_READ)
    decoder.relax()
    assert len(decoder._payload) == 1 << 16


def test_a_longer_answer_than_was_asked_for_is_none() -> None:
    """The header alone makes the decoder refuse it."""
    decoder = FrameDecoder()
    decoder.room[:8] = struct.pack(">ii", FrameType.SEGMENT_READ, MAX_READ + 1)
    with pytest.raises(ProtocolError, match="SEGMENT_READ frame"):
        decoder.advance(8)
