"""The listing of all resources that a user may see."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Any

import pytest

from sluice.administration import board
from sluice.api.registry import KINDS
from sluice.kube.api.kinds import OWN
from sluice.kube.api.responses import Refused
from support.cases import resources
from support.kube.finalizing import FinalizingServer

if TYPE_CHECKING:
    from collections.abc import Collection

    from sluice.kube.api.kinds import Kind, Object


class Strict(FinalizingServer):
    """An API server that refuses to list some kinds.

    Args:
        refused: the kinds.
        status: the status of HTTP.
    """

    def __init__(self, refused: Collection[str] = (), status: int = 403) -> None:
        super().__init__()
        self._refused = refused
        self._status = status

    async def list(self, kind: Kind, namespace: str | None, **wanted: Any) -> list[Object]:
        """See Api.list."""
        if kind.name in self._refused:
            raise Refused(f"cannot list {kind.plural}", status=self._status, why="Refused")
        return await super().list(kind, namespace, **wanted)


def put(server: FinalizingServer, like: Object, namespace: str, name: str) -> None:
    """Make a resource."""
    meta = {"name": name, "namespace": namespace, "generation": 1}
    server.put(OWN[like["kind"]], resources.changed(like, "metadata", meta))


def looked(server: FinalizingServer, namespace: str | None = None) -> board.Board:
    """Look once."""
    return asyncio.run(board.look(server.api, namespace))


def names(found: board.Board) -> list[str]:
    """Return the resources in their order."""
    return [f"{one.resource.namespace}/{one.resource}" for one, _ in found.resources]


def test_resources_come_by_namespace_kind_and_name() -> None:
    """The order keeps the rows of a page in place, for one namespace and for all."""
    server = Strict()
    for namespace, like, name in (
        ("b", resources.COPY, "one"),
        ("a", resources.COPY, "two"),
        ("a", resources.COPY, "one"),
        ("a", resources.STORE, "local"),
    ):
        put(server, like, namespace, name)
    mine = ["a/streamstore/local", "a/streamcopy/one", "a/streamcopy/two"]
    assert names(looked(server, "a")) == mine
    assert names(looked(server)) == [*mine, "b/streamcopy/one"]


def test_kinds_that_a_user_may_not_list_are_named() -> None:
    """Other kinds are shown. A user without a right on any kind gets the refusal."""
    server = Strict(["StreamStore", "ScopeCopy"])
    put(server, resources.COPY, "a", "one")
    found = looked(server)
    assert (names(found), found.forbidden) == (["a/streamcopy/one"], ["StreamStore", "ScopeCopy"])
    with pytest.raises(Refused, match="cannot list"):
        looked(Strict([kind.name for kind in KINDS]))
    with pytest.raises(Refused, match="cannot list streamstores"):
        looked(Strict(["StreamStore"], status=500))


def test_a_look_is_bounded(monkeypatch: pytest.MonkeyPatch) -> None:
    """A tenant may make any number of resources. The listing names a kind that has more."""
    monkeypatch.setattr(board, "MOST", 3)
    server = Strict()
    for number in range(9):
        put(server, resources.COPY, "a", f"copy-{number}")
    for number in range(3):
        put(server, resources.SCOPE, "a", f"scope-{number}")
    found = looked(server)
    assert (len(found.resources), found.cut) == (6, ["StreamCopy"])
