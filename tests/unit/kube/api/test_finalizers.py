"""What is known of an object spares a question, and is never taken for more than it is."""

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
    """Counts what is read."""

    def __init__(self) -> None:
        super().__init__()
        self.reads = 0

    async def get(self, kind: Kind, namespace: str, name: str) -> Object | None:
        """As Api.get."""
        self.reads += 1
        return await super().get(kind, namespace, name)


@pytest.fixture
def server() -> Counting:
    """One with one object."""
    found = Counting()
    found.put(EPHEMERAL_STREAM, {"metadata": {"name": "one"}})
    return found


def known(server: Counting) -> Object:
    """The object as somebody has read it."""
    body = server.body(EPHEMERAL_STREAM, "one")
    assert body is not None
    return copy.deepcopy(body)


def add(server: Counting, body: Object) -> bool:
    """Put the finalizer on it."""
    return asyncio.run(
        finalizers.add(server.api, EPHEMERAL_STREAM, "default", "one", MARK, known=body)
    )


def remove(server: Counting, body: Object) -> None:
    """Take it off."""
    asyncio.run(finalizers.remove(server.api, EPHEMERAL_STREAM, "default", "one", MARK, known=body))


def test_what_is_known_is_not_read_again(server: Counting) -> None:
    """And stays known after a change, so that the next one reads nothing either."""
    body = known(server)
    assert add(server, body)
    assert server.finalizers(EPHEMERAL_STREAM, "one") == [MARK]
    remove(server, body)
    assert server.finalizers(EPHEMERAL_STREAM, "one") == []
    assert server.reads == 0


def test_what_was_changed_since_is_read(server: Counting) -> None:
    """Another's finalizer is not lost."""
    body = known(server)
    change = {"metadata": {"finalizers": [THEIRS]}}
    asyncio.run(server.patch(EPHEMERAL_STREAM, "default", "one", change))
    assert add(server, body)
    assert server.finalizers(EPHEMERAL_STREAM, "one") == [THEIRS, MARK]
    assert server.reads == 1


def test_what_is_gone_is_left_alone(server: Counting) -> None:
    """However well it was known."""
    body = known(server)
    asyncio.run(server.delete(EPHEMERAL_STREAM, "default", "one"))
    assert not add(server, body)
