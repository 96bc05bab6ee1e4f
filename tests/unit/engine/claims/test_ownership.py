"""The streams of a scope that EphemeralStreams own, for copies of the scope."""

from dataclasses import replace

import pytest

from sluice.core.claims.claim import is_ephemeral, scope_tags
from sluice.core.values.identity import owner_tags
from sluice.core.values.model import StreamConfig
from sluice.engine.claims import claims
from sluice.engine.claims.ownership import claimed_prefixes
from sluice.errors import ScopeNotFound
from support.engine.claims import BOB, NOW, PREFIX, put
from support.model import ModelStore, World


def test_prefixes_are_told_by_their_markers(world: World, store: ModelStore) -> None:
    """Markers of every cluster's EphemeralStreams count until their release."""
    assert claimed_prefixes(store, "in") == ()
    there = replace(PREFIX, claimant=replace(BOB, cluster="there"), prefix="Z")
    claims.make(there, store, NOW)
    claims.make(PREFIX, store, NOW)
    assert claimed_prefixes(store, "in") == ("Z", "app-")
    assert claimed_prefixes(store, "out") == ()
    put(world, "app-new")
    claims.release(PREFIX, store, delete=False)
    assert claimed_prefixes(store, "in") == ("Z",)


def test_what_is_no_marker_claims_no_prefix(world: World, store: ModelStore) -> None:
    """This holds for a scope's mark, and for streams with a marker's name or tags only."""
    put(world, "_sluice-scope", tags=scope_tags("here"))
    put(world, PREFIX.marker.stream)
    put(world, "_sluice-copy", tags=PREFIX.marker_tags(NOW))
    put(world, "copy", tags=PREFIX.marker_tags(NOW))
    assert claimed_prefixes(store, "in") == ()


def test_a_missing_scope_has_no_prefixes_to_tell(store: ModelStore) -> None:
    """It does not count as a scope without claims."""
    with pytest.raises(ScopeNotFound):
        claimed_prefixes(store, "nowhere")


def test_a_stream_of_an_ephemeral_stream_is_known_by_its_tags() -> None:
    """Tags of any cluster count. Tags of copies, scopes and users differ."""
    assert is_ephemeral((*BOB.tags(), "user"))
    assert is_ephemeral(replace(BOB, cluster="there").tags())
    for tags in ((), ("ephemeral",), owner_tags("ab" * 16), scope_tags("here")):
        assert not is_ephemeral(StreamConfig(tags=tags).tags)
