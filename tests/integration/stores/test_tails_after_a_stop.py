"""Segments that are followed while their segment store stands still, or is killed."""

from __future__ import annotations

import os
import signal
from contextlib import closing
from typing import TYPE_CHECKING

import pytest

from sluice.config import StoreTimeouts
from sluice.core.values.model import Scaling, StreamConfig, StreamName
from sluice.errors import StoreTimeout, StoreUnavailable
from sluice.stores.pravega.store import PravegaStore
from sluice.stores.tails import Broken
from support.store.following import Heard

if TYPE_CHECKING:
    from localstore import Cluster

pytestmark = [pytest.mark.cluster, pytest.mark.exhaustive, pytest.mark.timeout(400)]


def test_segments_of_a_store_that_is_away_break_and_are_followed_again(cluster: Cluster) -> None:
    """All segments break, by a timeout or at once. Each is followed again from its offset."""
    timeouts = StoreTimeouts(connect=10, call=20, stall=2)
    stream = StreamName(scope="followed", stream="s")
    with closing(
        PravegaStore(cluster.controller_uri, credentials=None, timeouts=timeouts)
    ) as store:
        store.create_scope(stream.scope)
        store.create_stream(stream, StreamConfig(scaling=Scaling(min_segments=4)))
        names = [store.segment_name(stream, number) for number in range(4)]
        with store.tails(most=1 << 20) as tails:
            heard = Heard(tails, dict.fromkeys(names, 0))
            for name in names:
                assert store.append_at(name, 0, b"first ")
            heard.until(lambda: heard.bytes == 24)

            server = cluster.processes["segmentstore"]
            os.killpg(server.pid, signal.SIGSTOP)
            try:
                heard.until(lambda: len(heard.broken) == 4)
            finally:
                os.killpg(server.pid, signal.SIGCONT)
            assert {type(error) for _, error in heard.broken} == {StoreTimeout}
            again(heard, names, store, b"second ", 6)

            cluster.kill("segmentstore")
            try:
                heard.until(lambda: len(heard.broken) == 4)
                assert all(isinstance(error, StoreUnavailable) for _, error in heard.broken)
            finally:
                cluster.restart("segmentstore")
            again(heard, names, store, b"third", 13)
            assert {bytes(data) for data in heard.data.values()} == {b"first second third"}


def again(heard: Heard, names: list[str], store: PravegaStore, data: bytes, at: int) -> None:
    """Watch the segments anew until the store is back, and append to each of them."""
    heard.broken.clear()
    waiting = set(names)
    expected = (at + len(data)) * len(names)
    for name in names:
        heard.tails.watch(name, at)

    def watched_again() -> bool:
        for name, _ in heard.broken:
            heard.tails.watch(name, at)
        heard.broken.clear()
        for name in sorted(waiting):
            if appended(store, name, at, data):
                waiting.discard(name)
        return heard.bytes == expected

    heard.until(watched_again)
    assert not [event for event in heard.tails.take(0) if isinstance(event, Broken)]


def appended(store: PravegaStore, name: str, at: int, data: bytes) -> bool:
    """Append the bytes, and return whether the store was available."""
    try:
        store.append_at(name, at, data)
    except StoreUnavailable:
        return False
    return True
