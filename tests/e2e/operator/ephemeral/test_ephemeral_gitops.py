"""EphemeralStreams that a GitOps controller such as Flux applies again and again."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

import pytest

from support.gitops.gitops import GitOps
from support.gitops.kstatus import kstatus
from support.tenants.owned import ephemeral, until_reason, workload

if TYPE_CHECKING:
    from pathlib import Path

    from localstore import ForeignClient
    from support.cluster.gate import Gate
    from support.tenants.tenant import Tenant

_ROUNDS = 8


class Seen(NamedTuple):
    """Facts that would change in an endless loop.

    Attributes:
        versions: the resources' versions, which change with every write.
        made: number of calls to make a stream in the scope.
        streams: the store's listing.
        changes: the changes of the GitOps controller.
    """

    versions: tuple[str, ...]
    made: int
    streams: list[str] | None
    changes: int


def _nothing_happens(
    tenant: Tenant, git: GitOps, java: ForeignClient, gate: Gate, *names: str
) -> None:
    """Check that nothing changes during a few comparisons of the GitOps controller."""

    def look() -> Seen:
        found = tuple((tenant.get("eps", name) or {})["metadata"] for name in names)
        return Seen(
            tuple(meta["resourceVersion"] for meta in found),
            gate.calls(tenant.namespace).passed.count("createStream"),
            java.streams(tenant.namespace),
            len(git.changes()),
        )

    before = look()
    git.compare(_ROUNDS)
    assert look() == before


@pytest.mark.exhaustive
def test_resource_made_again_waits_for_its_owner(
    locked: Tenant, locked_scope: str, guarded_java: ForeignClient, gate: Gate, tmp_path: Path
) -> None:
    """A resource that Git restores after its owner's deletion gets no stream, and no loop."""
    scope, app = locked_scope, workload(locked, "app")
    resource = ephemeral(locked, "helper", scope, app, gracePeriodSeconds=0)
    with GitOps(locked, tmp_path, resource) as git:
        until_reason(locked, "helper", "Claimed")
        first = (locked.get("eps", "helper") or {})["metadata"]
        assert guarded_java.streams(scope) == ["helper"]
        locked.patch("eps", "helper", {"spec": {"gracePeriodSeconds": 1}})
        locked.until("Git is right", lambda: git.changes()[1:] == [("configured", "helper")])

        locked.run("delete", "deployment", "app")
        locked.until("Git makes it again", lambda: git.changes()[2:] == [("created", "helper")])
        until_reason(locked, "helper", "WaitingForOwner")
        found = locked.get("eps", "helper") or {}
        assert found["metadata"]["uid"] != first["uid"]
        assert guarded_java.streams(scope) == []
        assert kstatus([found]) == {"EphemeralStream/helper": "InProgress"}
        _nothing_happens(locked, git, guarded_java, gate, "helper")

        workload(locked, "app")
        until_reason(locked, "helper", "Claimed")
        assert guarded_java.streams(scope) == ["helper"]
        _nothing_happens(locked, git, guarded_java, gate, "helper")
        assert gate.calls(scope).passed.count("createStream") == 2
        assert len(git.changes()) == 3


@pytest.mark.exhaustive
def test_released_resource_is_as_git_has_it(
    locked: Tenant, locked_scope: str, guarded_java: ForeignClient, gate: Gate, tmp_path: Path
) -> None:
    """A released resource stays without its stream, and differs in nothing from Git."""
    scope, app = locked_scope, workload(locked, "app")
    aged = ephemeral(locked, "aged", scope, maxAgeSeconds=20)
    seen = ephemeral(locked, "seen", scope, app, tracking="Observe")
    with GitOps(locked, tmp_path, aged, seen) as git:
        until_reason(locked, "aged", "Claimed")
        until_reason(locked, "seen", "Claimed")
        locked.run("delete", "deployment", "app")
        until_reason(locked, "aged", "Released")
        until_reason(locked, "seen", "Released")
        assert guarded_java.streams(scope) == []
        found = [locked.get("eps", name) or {} for name in ("aged", "seen")]
        assert set(kstatus(found).values()) == {"Current"}
        workload(locked, "app")  # both streams are released already
        _nothing_happens(locked, git, guarded_java, gate, "aged", "seen")
        assert gate.calls(scope).passed.count("createStream") == 2
        assert git.changes() == [("created", "aged"), ("created", "seen")]
