"""Key-value tables and reader groups, which keep a scope without streams."""

from uuid import uuid4

import pytest

from localstore import ForeignClient
from sluice.core.values.groups import GroupName
from sluice.core.values.model import StreamConfig, StreamName
from sluice.errors import ScopeNotEmpty, ScopeNotFound
from sluice.stores.pravega.store import PravegaStore


@pytest.fixture
def own(store: PravegaStore) -> str:
    """Return a new scope for one test."""
    name = f"kept-{uuid4().hex[:8]}"
    assert store.create_scope(name)
    return name


def test_key_value_tables_are_listed_by_name(
    store: PravegaStore, foreign: ForeignClient, own: str
) -> None:
    """A listing has a scope's present tables. A missing scope is an error."""
    assert store.list_key_value_tables(own) == []
    for table in ("users", "carts"):
        assert foreign.create_table(own, table)
        assert not foreign.create_table(own, table)
    assert store.list_key_value_tables(own) == ["carts", "users"]
    assert foreign.delete_table(own, "users")
    assert not foreign.delete_table(own, "users")
    assert store.list_key_value_tables(own) == ["carts"]
    with pytest.raises(ScopeNotFound, match="no-such-scope"):
        store.list_key_value_tables("no-such-scope")


def test_a_key_value_table_has_no_streams(
    store: PravegaStore, foreign: ForeignClient, own: str
) -> None:
    """A table has no streams, not even internal ones. A stream may have the same name."""
    foreign.create_table(own, "both")
    assert store.list_streams(own, internal=True) == []
    name = StreamName(scope=own, stream="both")
    assert store.describe(name) is None
    assert store.create_stream(name, StreamConfig())
    assert store.list_streams(own, internal=True) == ["both"]
    store.seal_stream(name)
    assert store.delete_stream(name)
    assert store.list_key_value_tables(own) == ["both"]


def test_a_scope_with_a_key_value_table_is_not_deleted(
    store: PravegaStore, foreign: ForeignClient, own: str
) -> None:
    """A refused deletion harms nothing in the scope. Without the table it can be deleted."""
    foreign.create_table(own, "table")
    with pytest.raises(ScopeNotEmpty, match="key-value tables"):
        store.delete_scope(own)
    assert store.list_key_value_tables(own) == ["table"]
    tagged = StreamName(scope=own, stream="tagged")
    assert store.create_stream(tagged, StreamConfig(tags=("tag",)))
    assert store.list_streams(own, "tag") == ["tagged"]
    foreign.delete(own, tagged.stream)
    foreign.delete_table(own, "table")
    assert store.delete_scope(own)


def test_a_scope_with_a_reader_group_is_not_deleted(
    store: PravegaStore, foreign: ForeignClient, own: str
) -> None:
    """A group's internal stream outlives the streams that it reads, and keeps the scope."""
    foreign.create(own, "s")
    assert foreign.create_group(own, "group", "s")
    foreign.delete(own, "s")
    assert store.list_streams(own, internal=True) == ["_RGgroup"]
    with pytest.raises(ScopeNotEmpty):
        store.delete_scope(own)
    foreign.delete_group(own, "group")
    assert store.list_streams(own, internal=True) == []
    assert store.delete_scope(own)


def test_a_reader_group_outlives_its_internal_stream(
    store: PravegaStore, foreign: ForeignClient, own: str
) -> None:
    """A group without its internal stream keeps the scope, and no listing shows it.

    So no client may delete that stream.
    """
    foreign.create(own, "s")
    foreign.create_group(own, "group", "s")
    for stream in store.list_streams(own, internal=True):
        name = StreamName(scope=own, stream=stream)
        store.seal_stream(name)
        assert store.delete_stream(name)
    assert store.list_streams(own, internal=True) == []
    assert store.reader_group(GroupName(own, "group")) is not None
    with pytest.raises(ScopeNotEmpty, match="a reader group"):
        store.delete_scope(own)
