"""The circuit: after a silent call, one caller at a time tries the store now and then."""

from __future__ import annotations

import socket
import threading
from contextlib import suppress

import pytest

from sluice.config import StoreTimeouts
from sluice.errors import StoreTimeout, StoreUnavailable, StreamNotFound
from sluice.stores.pravega.controller.circuit import Circuit
from sluice.stores.pravega.store import PravegaStore

REST = 5.0


class Store:
    """A store with scripted answers, and the time."""

    def __init__(self, rest: float = REST) -> None:
        self.now = 0.0
        self.asked = 0
        self.circuit = Circuit(rest, patience=1, clock=lambda: self.now)

    def ask(self, error: Exception | None = None, *, seconds: float = 1) -> None:
        """Call the store. It answers, fails with the error, or takes the seconds of a timeout."""
        with self.circuit.asked():
            self.asked += 1
            self.now += seconds if isinstance(error, StoreTimeout) else 0
            if error is not None:
                raise error

    def is_left_alone(self) -> bool:
        """Tell whether calls are refused without asking the store."""
        before = self.asked
        try:
            self.ask()
        except StoreTimeout:
            return self.asked == before
        return False


def fall_silent(store: Store) -> None:
    """Leave one call without an answer."""
    with pytest.raises(StoreTimeout):
        store.ask(StoreTimeout("in vain"))


def test_a_silent_store_is_left_alone_for_a_while() -> None:
    """The rest ends after its time. Once the store answers, it is called as usual."""
    store = Store()
    fall_silent(store)
    assert store.is_left_alone()
    store.now += REST - 0.1
    assert store.is_left_alone()
    store.now += 0.1
    store.ask()
    assert not store.is_left_alone()


def test_one_at_a_time_asks_a_silent_store() -> None:
    """Other callers fail at once, instead of waiting as long as the first one."""
    store = Store()
    fall_silent(store)
    store.now += REST
    alone: list[bool] = []
    other = threading.Thread(target=lambda: alone.append(store.is_left_alone()))
    with suppress(StoreTimeout), store.circuit.asked():
        other.start()
        other.join()
        store.now += 1
        raise StoreTimeout("in vain")
    store.now += REST
    assert alone == [True]
    assert not store.is_left_alone()


def test_whoever_asks_a_silent_store_may_ask_on() -> None:
    """The calls within that caller's block are let through, since one purpose may need several."""
    store = Store()
    fall_silent(store)
    store.now += REST
    with store.circuit.asked():
        assert not store.is_left_alone()


def test_who_had_no_time_for_an_answer_tells_of_no_silence() -> None:
    """A timeout shorter than the patience may interrupt a call to a healthy store."""
    store = Store()
    with pytest.raises(StoreTimeout):
        store.ask(StoreTimeout("no time"), seconds=0.5)
    assert not store.is_left_alone()


def test_one_call_that_is_late_is_no_silence() -> None:
    """A late call does not count if the store answered another call meanwhile."""
    store = Store()
    with suppress(StoreTimeout), store.circuit.asked():
        store.now += 1
        store.ask()
        store.now += 10
        raise StoreTimeout("late")
    assert not store.is_left_alone()


def test_a_refusal_is_an_answer_and_a_broken_line_is_none() -> None:
    """Neither error makes the circuit refuse calls."""
    store = Store()
    for error in (StreamNotFound("none"), StoreUnavailable("refused")):
        with pytest.raises(type(error)):
            store.ask(error)
        assert not store.is_left_alone()


def test_nobody_is_kept_from_a_store_where_nobody_else_would_suffer() -> None:
    """A rest of 0 seconds turns the circuit off, as for a driver, which has one copy to do."""
    store = Store(rest=0)
    fall_silent(store)
    assert not store.is_left_alone()


def test_a_black_hole_is_fallen_into_once() -> None:
    """After one timeout, calls to the controller and to segment stores fail at once."""
    with socket.create_server(("127.0.0.1", 0)) as silent:
        timeouts = StoreTimeouts(connect=0.2, call=0.2, stall=1, rest=600)
        uri = f"tcp://127.0.0.1:{silent.getsockname()[1]}"
        store = PravegaStore(uri, credentials=None, timeouts=timeouts)
        with pytest.raises(StoreTimeout, match="DEADLINE_EXCEEDED"):
            store.scope_exists("shop")
        for ask in (lambda: store.scope_exists("shop"), lambda: store.infos(["a/b/0.#epoch.0"])):
            with pytest.raises(StoreTimeout, match="has not answered lately"):
                ask()
        store.close()
