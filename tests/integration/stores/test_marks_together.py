"""Attributes that some clients set while others read them, on the real store.

The store (0.13.0) loads an attribute into memory by an update. If two clients cause such an update
at once, it refuses one of them, even if the other only reads.
"""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from functools import partial
from threading import Barrier
from typing import TYPE_CHECKING, Any
from uuid import uuid4

from sluice.stores.writing import CompareAndSet

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from sluice.core.values.model import StreamName
    from sluice.stores.pravega.store import PravegaStore

ROUNDS = 30
AT_ONCE = 6


def together(calls: Sequence[Callable[[], Any]]) -> list[Any]:
    """Make calls at the same moment, and return their results."""
    ready = Barrier(len(calls))

    def run(call: Callable[[], Any]) -> Any:
        ready.wait()
        return call()

    with ThreadPoolExecutor(len(calls)) as pool:
        return list(pool.map(run, calls))


def test_all_who_look_at_once_see_the_same(store: PravegaStore, segment: str) -> None:
    """All clients that read an unset attribute at once see that it is not set."""
    for _ in range(ROUNDS):
        asked = [(segment, uuid4()) for _ in range(4)]
        seen = together([partial(store.attributes, asked)] * AT_ONCE)
        assert seen == [[None] * 4] * AT_ONCE


def test_a_mark_is_set_while_others_look(store: PravegaStore, segment: str) -> None:
    """One of two setters succeeds. Readers see its value, or none yet."""
    for _ in range(ROUNDS):
        mark = uuid4()
        looks = [partial(store.attributes, [(segment, mark)])] * (AT_ONCE - 2)
        sets = [
            partial(store.set_attribute, segment, CompareAndSet(mark, None, one)) for one in (1, 2)
        ]
        *seen, first, second = together([*looks, *sets])
        assert {first, second} == {True, False}
        stored = store.attributes([(segment, mark)])
        assert stored == [1 if first else 2]
        assert all(one in ([None], stored) for one in seen)


def test_a_merge_is_not_refused_for_a_look_at_its_condition(
    store: PravegaStore, stream: StreamName, segment: str
) -> None:
    """Each of many segments is merged once, beside reads of its condition."""
    for number in range(ROUNDS):
        part, mark = store.staging_name(stream, 0, uuid4().hex), uuid4()
        assert store.create(part)
        assert store.append_at(part, 0, b"abc")
        store.seal(part)
        looks = [partial(store.attributes, [(segment, mark)])] * (AT_ONCE - 1)
        together([*looks, partial(store.merge, segment, part, CompareAndSet(mark, None, 1))])
        (info,) = store.infos([segment])
        assert info is not None
        assert info.length == 3 * (number + 1)
