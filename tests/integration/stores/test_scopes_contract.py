"""The controller's answers about scopes and their contents."""

from uuid import uuid4

import pytest

from sluice.core.values.model import StreamConfig, StreamName
from sluice.errors import ScopeNotEmpty, ScopeNotFound
from sluice.stores.pravega.store import PravegaStore

ONE = StreamConfig()


def test_a_scope_is_made_once_and_deleted_once(store: PravegaStore) -> None:
    """`create_scope` and `delete_scope` return whether they did anything."""
    scope = f"scope-{uuid4().hex[:12]}"
    assert not store.scope_exists(scope)
    assert store.create_scope(scope)
    assert not store.create_scope(scope)
    assert store.scope_exists(scope)
    assert store.delete_scope(scope)
    assert not store.delete_scope(scope)
    assert not store.scope_exists(scope)


def test_a_scope_with_streams_is_not_deleted(store: PravegaStore, stream: StreamName) -> None:
    """A refused deletion harms nothing in the scope, not even its index of tags."""
    with pytest.raises(ScopeNotEmpty, match=stream.scope):
        store.delete_scope(stream.scope)
    tagged = StreamName(scope=stream.scope, stream=f"tagged-{uuid4().hex[:8]}")
    assert store.create_stream(tagged, StreamConfig(tags=("tag",)))
    assert store.list_streams(stream.scope, "tag") == [tagged.stream]


def test_a_scope_is_empty_again_when_its_streams_are_deleted(store: PravegaStore) -> None:
    """No internal stream keeps a scope after its last stream is deleted."""
    name = StreamName(scope=f"scope-{uuid4().hex[:12]}", stream="s")
    store.create_scope(name.scope)
    store.create_stream(name, ONE)
    store.seal_stream(name)
    store.delete_stream(name)
    assert store.delete_scope(name.scope)


def test_streams_are_listed_without_internal_ones(store: PravegaStore, scope: str) -> None:
    """A listing has a scope's streams by name, all of them or those with a tag."""
    own = f"list-{uuid4().hex[:8]}"
    store.create_scope(own)
    assert store.list_streams(own) == []
    for number in range(3):
        tags = ("odd",) if number % 2 else ()
        store.create_stream(StreamName(scope=own, stream=f"s{number}"), StreamConfig(tags=tags))
    assert store.list_streams(own) == ["s0", "s1", "s2"]
    assert len(store.list_streams(own, internal=True, most=1)) >= 1
    assert store.list_streams(own, "odd") == ["s1"]
    assert store.list_streams(own, "even") == []
    with pytest.raises(ScopeNotFound, match="no-such-scope"):
        store.list_streams("no-such-scope")


def test_a_configuration_is_had_without_the_segments(store: PravegaStore, scope: str) -> None:
    """`configuration` equals that of `describe`. It is None for a missing stream."""
    name = StreamName(scope=scope, stream=f"plain-{uuid4().hex[:8]}")
    assert store.configuration(name) is None
    store.create_stream(name, StreamConfig(tags=("tag",)))
    described = store.describe(name)
    assert described is not None
    assert store.configuration(name) == described.config
    store.seal_stream(name)
    assert store.configuration(name) == described.config
    store.delete_stream(name)
    assert store.configuration(name) is None


def test_internal_streams_are_listed_on_request(store: PravegaStore) -> None:
    """Internal streams are listed on request, except those that come and go with a stream.

    The store keeps the watermarks of each stream in an internal stream.
    """
    own = f"list-{uuid4().hex[:8]}"
    store.create_scope(own)
    for stream in ("_internal", "s"):
        store.create_stream(StreamName(scope=own, stream=stream), StreamConfig(tags=("tag",)))
    assert store.list_streams(own) == ["s"]
    assert store.list_streams(own, internal=True) == ["_internal", "s"]
    assert store.list_streams(own, "tag", internal=True) == ["s"]
    described = store.describe(StreamName(scope=own, stream="_internal"))
    assert described is not None
    assert described.config.tags == ("tag",)


def test_scopes_are_listed_without_internal_ones(store: PravegaStore, scope: str) -> None:
    """Scopes are listed by name, sorted, without the store's own scope."""
    scopes = store.list_scopes()
    assert scope in scopes
    assert scopes == sorted(scopes)
    assert store.scope_exists("_system")
    assert "_system" not in scopes
