"""Attributes are read as they are stored, whatever the store has in memory."""

from __future__ import annotations

from contextlib import closing
from typing import TYPE_CHECKING, NamedTuple
from uuid import UUID

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sluice.config import StoreTimeouts
from sluice.errors import NoSuchSegment, PermissionDenied, StoreBusy
from sluice.stores.pravega import store as store_module
from sluice.stores.pravega.controller.directory import Token
from sluice.stores.pravega.names import CREATION_TIME, EVENT_COUNT, TokenAccess
from sluice.stores.pravega.segments import attributes, transport
from sluice.stores.pravega.store import PravegaStore
from sluice.stores.writing import CompareAndSet
from support.store.forgetful import WRITERS_TOKEN, Forgetful

if TYPE_CHECKING:
    from collections.abc import Iterator

    from sluice.stores.pravega.names import Endpoint

NAMES = tuple(f"scope/stream/{number}.#epoch.0" for number in range(3))
MARKS = tuple(UUID(int=number) for number in (1, 2))
TIMEOUTS = StoreTimeouts(connect=5, call=5, stall=5)


def client(server: Forgetful, *, writes: bool = True) -> PravegaStore:
    """Make a client whose segments are all on that server. Its user may write, or only read."""
    store = PravegaStore("tcp://127.0.0.1:1", credentials=None, timeouts=TIMEOUTS)

    def owners(names: Iterator[str]) -> list[Endpoint]:
        return [server.endpoint for _ in names]

    def token(name: str, access: TokenAccess) -> Token:
        if access is TokenAccess.READ_WRITE and not writes:
            raise PermissionDenied(f"the user may not write {name}")
        return Token(WRITERS_TOKEN if access is TokenAccess.READ_WRITE else "", float("inf"))

    store._directory.owners = owners  # type: ignore[method-assign,assignment]
    store._directory.token = token  # type: ignore[method-assign]
    return store


PLACES = [(name, mark) for name in NAMES for mark in MARKS]
ACTS = st.lists(
    st.one_of(
        st.sampled_from(("forget", "contest")),
        st.tuples(st.sampled_from(PLACES), st.sampled_from((None, 0, 1)), st.integers(0, 1)),
    ),
    max_size=12,
)


class Users(NamedTuple):
    """A server with two users: one may append, and one may only read."""

    server: Forgetful
    writer: PravegaStore
    reader: PravegaStore


@pytest.fixture(scope="module", autouse=True)
def _no_pauses() -> Iterator[None]:
    """Remove the wait before a refused call is repeated."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(attributes, "_PAUSES", (0.0,) * 5)
        patch.setattr(transport, "PAUSES", (0.0, 0.0))
        yield


@pytest.fixture(scope="module")
def users() -> Iterator[Users]:
    """Yield a server that all examples share, since they are many."""
    with (
        Forgetful(guarded=True) as server,
        closing(client(server)) as writer,
        closing(client(server, writes=False)) as reader,
    ):
        yield Users(server, writer, reader)


@given(acts=ACTS, writes=st.booleans())
def test_a_store_that_forgets_tells_what_is_stored(
    users: Users, acts: list[str | tuple[tuple[str, UUID], int | None, int]], *, writes: bool
) -> None:
    """Reads and compare-and-sets see the last value, whenever the store forgets.

    They also do while the store refuses updates because other clients read the attribute.
    """
    stored: dict[tuple[str, UUID], int] = {}
    users.server.forget()
    users.server.contested = 0
    users.server.loading.clear()
    users.server.index = {name: {CREATION_TIME: 1} for name in NAMES[1:]}
    for act in acts:
        if act == "contest":
            users.server.contested = 2
            continue
        if isinstance(act, str):
            users.server.forget()
            who = users.writer if writes else users.reader
            assert who.attributes(PLACES) == [stored.get(place) for place in PLACES]
            users.server.forget()
            continue
        place, expected, new = act
        try:
            done = users.writer.set_attribute(place[0], CompareAndSet(place[1], expected, new))
        except NoSuchSegment:
            assert place[0] == NAMES[0]
            continue
        assert done == (stored.get(place) == expected)
        if done:
            stored[place] = new


@pytest.mark.parametrize("stored", [None, 7])
def test_a_compare_and_set_that_is_refused_for_a_look_at_it_is_tried_again(
    stored: int | None,
) -> None:
    """The store refuses one of two calls that load an attribute, even if the other only reads."""
    with Forgetful({NAMES[0]: {}}) as server, closing(client(server)) as store:
        if stored is not None:
            server.set(NAMES[0], MARKS[0], stored)
        server.forget()
        server.contested = 3
        assert store.set_attribute(NAMES[0], CompareAndSet(MARKS[0], stored, 8))
        assert server.contested == 0
        assert store.attributes([(NAMES[0], MARKS[0])]) == [8]
        assert not store.set_attribute(NAMES[0], CompareAndSet(MARKS[0], stored, 9))


def test_a_compare_and_set_that_is_always_refused_for_looks_is_given_up() -> None:
    """StoreBusy does not claim that the attribute had another value."""
    with Forgetful({NAMES[0]: {}}, contested=1000) as server, closing(client(server)) as store:
        with pytest.raises(StoreBusy):
            store.set_attribute(NAMES[0], CompareAndSet(MARKS[0], None, 8))
        server.contested = 0
        assert store.attributes([(NAMES[0], MARKS[0])]) == [None]


def test_a_sealed_segment_tells_what_is_stored() -> None:
    """A sealed segment takes no update that would load a value, so an append's setup loads it."""
    with Forgetful(guarded=True) as server:
        server.set(NAMES[0], MARKS[0], 7)
        server.sealed.add(NAMES[0])
        server.forget()
        with closing(client(server)) as store:
            assert store.attributes([(NAMES[0], mark) for mark in MARKS]) == [7, None]


def test_who_may_only_read_is_told_why_a_sealed_segment_says_nothing() -> None:
    """A mark that the user cannot read raises PermissionDenied, and does not count as missing."""
    with Forgetful(guarded=True) as server:
        server.set(NAMES[0], MARKS[0], 7)
        server.sealed.add(NAMES[0])
        with closing(client(server, writes=False)) as store:
            assert store.attributes([(NAMES[0], MARKS[0])]) == [7]
            server.forget()
            with pytest.raises(PermissionDenied) as caught:
                store.attributes([(NAMES[0], MARKS[0])])
    assert caught.value.remedy == "Grant the user READ_UPDATE on the stream."


def test_values_that_are_always_in_memory_are_asked_for_there() -> None:
    """Reading counts and times sets up no append."""
    with Forgetful() as server:
        server.set(NAMES[0], EVENT_COUNT, 3)
        with closing(client(server)) as store:
            asked = [(NAMES[0], EVENT_COUNT), (NAMES[0], CREATION_TIME), (NAMES[1], EVENT_COUNT)]
            assert store.attributes(asked) == [3, None, None]
    assert server.setups == [set()]


def test_no_connection_of_the_store_remembers_without_end(monkeypatch: pytest.MonkeyPatch) -> None:
    """The store keeps a writer for each setup until its connection ends.

    So the client renews a connection after a number of setups.
    """
    monkeypatch.setattr(store_module, "_MOST_SETUPS", 10)
    with Forgetful() as server:
        server.index[NAMES[0]] = {}
        with closing(client(server)) as store:
            for number in range(100):
                assert store.attributes([(NAMES[0], UUID(int=number))]) == [None]
    assert sum(map(len, server.setups)) == 100
    assert max(map(len, server.setups)) <= 11
