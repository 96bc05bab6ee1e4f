"""Finalizers on known objects: without a read, unless another client has changed the object."""

from __future__ import annotations

import asyncio
import copy
from typing import TYPE_CHECKING

import pytest

from sluice.kube.api import finalizers
from sluice.kube.api.kinds import EPHEMERAL_STREAM
from support.kube.finalizing import FinalizingServer

if TYPE_CHECKING:
    from sluice.kube.api.kinds import Kind, Object

MARK = "sluice.dev/streams"
THEIRS = "theirs.dev/mark"


class Counting(FinalizingServer):
    """A server that counts reads."""

    def __init__(self) -> None:
        super().__init__()
        self.reads = 0

    async def get(self, kind: Kind, namespace: str, name: str) -> Object | None:
        """See Api.get."""
        self.reads += 1
        return await super().get(kind, namespace, name)


@pytest.fixture
def server() -> Counting:
    """Return a server with one object."""
    found = Counting()
    found.put(EPHEMERAL_STREAM, {"metadata": {"name": "one"}})
    return found


def known(server: Counting) -> Object:
    """Return the object as another client has read it."""
    body = server.body(EPHEMERAL_STREAM, "one")
    assert body is not None
    return copy.deepcopy(body)


def add(server: Counting, body: Object) -> bool:
    """Put the finalizer on the object."""
    return asyncio.run(
        finalizers.add(server.api, EPHEMERAL_STREAM, "default", "one", MARK, known=body)
    )


def remove(server: Counting, body: Object) -> None:
    """Take the finalizer off the object."""
    asyncio.run(finalizers.remove(server.api, EPHEMERAL_STREAM, "default", "one", MARK, known=body))


def test_what_is_known_is_not_read_again(server: Counting) -> None:
    """It stays known after a change, so the next change reads nothing either."""
    body = known(server)
    assert add(server, body)
    assert server.finalizers(EPHEMERAL_STREAM, "one") == [MARK]
    remove(server, body)
    assert server.finalizers(EPHEMERAL_STREAM, "one") == []
    assert server.reads == 0


def test_what_was_changed_since_is_read(server: Counting) -> None:
    """The finalizer of another client is not lost."""
    body = known(server)
    change = {"metadata": {"finalizers": [THEIRS]}}
    asyncio.run(server.patch(EPHEMERAL_STREAM, "default", "one", change))
    assert add(server, body)
    assert server.finalizers(EPHEMERAL_STREAM, "one") == [THEIRS, MARK]
    assert server.reads == 1


def test_what_is_gone_is_left_alone(server: Counting) -> None:
    """This holds for a well-known object."""
    body = known(server)
    asyncio.run(server.delete(EPHEMERAL_STREAM, "default", "one"))
    assert not add(server, body)
