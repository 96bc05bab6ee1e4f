"""Copies of an EphemeralStream's stream on a real store, and of streams with many tags."""

from pathlib import Path

import pytest

from localstore import ForeignClient, Standalone
from sluice.core.claims.claim import Claim, Claimant
from sluice.core.values import identity
from sluice.core.values.marks import LOOSE
from sluice.core.values.model import StoreAddress, StreamConfig, StreamName
from sluice.engine.claims import claims
from sluice.engine.claims.stale import drop, stale
from sluice.engine.copy.report import Outcome
from sluice.pipelines.programs.stores import Stores
from support.command.sluice_command import Copy
from support.store.inline import SETTINGS, run_inline

OWNER = Claimant(
    cluster="inherited",
    namespace="team",
    name="app",
    uid="0b1d9c8e-0000-4000-8000-000000000001",
    created=0,
)


@pytest.fixture
def copy(tmp_path: Path, standalone: Standalone, scope: str) -> Copy:
    """Return a copy within a scope of its own, whose source is still to be made."""
    return Copy(tmp_path, standalone.controller_uri, (scope, "source"), (scope, "target"))


@pytest.mark.exhaustive
def test_the_copy_of_an_ephemeral_stream_stays_when_that_is_swept(
    copy: Copy, standalone: Standalone, foreign: ForeignClient
) -> None:
    """The stream goes with its workload. Its copy is no leftover and stays."""
    scope, stream = copy.source
    claim = Claim(claimant=OWNER, scope=scope, stream=stream, config=StreamConfig(tags=("team=a",)))
    with Stores(SETTINGS) as stores:
        store = stores[StoreAddress(uri=standalone.controller_uri)]
        claims.make(claim, store, 0)
        foreign.write(*copy.source, events=500, keys=16)
        assert run_inline(copy).outcome is Outcome.COPIED
        found = stale(store, OWNER.cluster, set())
        assert [(one.scope, one.stream) for one in found] == [copy.source]
        assert [drop(one, store, OWNER.cluster) for one in found] == [1]
        assert stale(store, OWNER.cluster, set()) == []
        config = store.configuration(StreamName(scope=scope, stream=copy.target[1]))
    assert config is not None
    assert identity.without_ours(config.tags) == ("team=a",)
    read = foreign.read(*copy.target)
    assert (read.events, read.clean) == (500, True)


def test_a_source_has_as_many_tags_as_its_target_can_have_beside_ours(
    copy: Copy, standalone: Standalone, foreign: ForeignClient
) -> None:
    """The store takes 127 tags in all. A copy that needs one more is refused before it begins."""
    name = StreamName(scope=copy.source[0], stream=copy.source[1])
    tags = tuple(f"tag-{number:03}" for number in range(127))
    foreign.create(*copy.source, segments=1)
    with Stores(SETTINGS) as stores:
        store = stores[StoreAddress(uri=standalone.controller_uri)]
        store.update_stream(name, StreamConfig(tags=tags))
        report = run_inline(copy)
        assert report.error is not None
        assert report.error.reason == "SourceUnsupported"
        assert "has 127 tags" in report.error.message
        assert store.describe(StreamName(scope=name.scope, stream=copy.target[1])) is None
        store.update_stream(name, StreamConfig(tags=tags[:124], scaling=LOOSE))
        foreign.write(*copy.source, events=100, keys=4)
        assert run_inline(copy).outcome is Outcome.COPIED
        config = store.configuration(StreamName(scope=name.scope, stream=copy.target[1]))
    assert config is not None
    assert len(config.tags) == 127
    assert config.scaling == LOOSE  # as it was given, so that it is known again
