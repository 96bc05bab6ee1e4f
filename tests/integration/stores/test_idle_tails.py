"""Followed segments that are idle for so long that the store evicts them."""

from __future__ import annotations

from math import inf
from typing import TYPE_CHECKING

import pytest

from sluice.core.values.model import Scaling, StreamConfig, StreamName
from support.store.following import Heard
from support.store.idle import all_of, wait_until_evicted

if TYPE_CHECKING:
    from sluice.stores.pravega.store import PravegaStore

pytestmark = [pytest.mark.patient, pytest.mark.timeout(900)]

NUMBERS = 12


@pytest.mark.exhaustive
def test_a_segment_that_the_store_forgot_is_followed_on(
    store: PravegaStore, name: StreamName
) -> None:
    """The store answers reads of evicted segments without bytes. The client repeats them."""
    store.create_stream(name, StreamConfig(scaling=Scaling(min_segments=NUMBERS)))
    names = [store.segment_name(name, number) for number in range(NUMBERS)]
    with store.tails(most=1 << 20) as tails:
        heard = Heard(tails, dict.fromkeys(names, 0))
        assert tails.take(1) == []
        wait_until_evicted(store, all_of([name], NUMBERS))
        assert tails.take(2) == []
        assert any(watch.barren > -inf for watch in tails._watches.values())
        for segment in names:
            assert store.append_at(segment, 0, segment.encode())
        heard.until(lambda: len(heard.data) == NUMBERS)
        assert heard.broken == []
        assert heard.data == {segment: segment.encode() for segment in names}
