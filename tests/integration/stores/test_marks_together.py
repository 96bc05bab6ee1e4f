"""Marks that some set while others look at them, on the real store.

The store (0.13.0) loads an attribute that it has not in memory by an update of its own, and refuses
one of two that have it do so at once, be the other but a look.
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
    """What calls give that are made at the same moment."""
    ready = Barrier(len(calls))

    def run(call: Callable[[], Any]) -> Any:
        ready.wait()
        return call()

    with ThreadPoolExecutor(len(calls)) as pool:
        return list(pool.map(run, calls))


def test_all_who_look_at_once_see_the_same(store: PravegaStore, segment: str) -> None:
    """A mark that nobody has asked for before is not set, whoever asks."""
    for _ in range(ROUNDS):
        asked = [(segment, uuid4()) for _ in range(4)]
        seen = together([partial(store.attributes, asked)] * AT_ONCE)
        assert seen == [[None] * 4] * AT_ONCE


def test_a_mark_is_set_while_others_look(store: PravegaStore, segment: str) -> None:
    """One of those who set it succeeds; those who look see it or do not see it yet."""
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
    """Each of many is merged once."""
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
