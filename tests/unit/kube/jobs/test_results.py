"""The published results of each stream of a scope, at an API server in memory."""

from __future__ import annotations

import asyncio
import json
from typing import TYPE_CHECKING

import pytest

from sluice.core.reconcile.copies.statuses.results import MOST_IN_SHARD, results_hash, results_name
from sluice.core.scope.scope import StreamResult, StreamState
from sluice.core.values.trouble import Trouble
from sluice.errors import SourceNotFound
from sluice.kube.api.kinds import CONFIG_MAP, SCOPE_COPY
from sluice.kube.api.names import Child
from sluice.kube.api.responses import Refused
from sluice.kube.jobs import results
from support.kube.api_server import ApiServer
from support.reconcile.copies import UID

if TYPE_CHECKING:
    from sluice.kube.api.kinds import Kind, Object

CHILD = Child(kind=SCOPE_COPY, namespace="default", name="shop", uid=UID)
GONE = Trouble.of(SourceNotFound("there is no stream in/s"))


def found(count: int, *, state: StreamState = StreamState.COPIED) -> tuple[StreamResult, ...]:
    """Make `count` results of streams."""
    return tuple(
        StreamResult(
            stream=f"s-{number}",
            target=f"t-{number}",
            state=state,
            bytes=number,
            digest="d" * 64 if state is StreamState.COPIED else None,
            trouble=GONE if state is StreamState.FAILED else None,
        )
        for number in range(count)
    )


def write(server: ApiServer, these: tuple[StreamResult, ...]) -> None:
    """Publish results."""
    asyncio.run(results.write(server.api, CHILD, these))


def read(server: ApiServer) -> str | None:
    """Return the hash of the published results."""
    return asyncio.run(results.read(server.api, CHILD))


def body(server: ApiServer, number: int) -> Object:
    """Return one of the ConfigMaps."""
    return server.objects[CONFIG_MAP.name, "default", results_name("shop", UID, number)]


@pytest.mark.parametrize("count", [0, 1, MOST_IN_SHARD, 2 * MOST_IN_SHARD + 1])
@pytest.mark.parametrize("state", list(StreamState))
def test_results_read_back(count: int, state: StreamState) -> None:
    """Any number fits, in ConfigMaps of bounded size that are deleted with the copy."""
    server, these = ApiServer(), found(count, state=state)
    assert read(server) is None
    write(server, these)
    assert read(server) == results_hash(these)
    assert len(server.objects) == max(1, -(-count // MOST_IN_SHARD))
    written = [one for _, one in sorted(server.objects.items(), key=lambda item: item[0])]
    assert all(len(json.dumps(one)) < 1 << 20 for one in written)
    assert {one["metadata"]["ownerReferences"][0]["kind"] for one in written} == {"ScopeCopy"}


def test_a_result_is_what_a_program_can_read() -> None:
    """It is JSON as Kubernetes writes it, without unknown fields."""
    server = ApiServer()
    write(server, found(1, state=StreamState.FAILED))
    (one,) = json.loads(body(server, 0)["data"]["streams.json"])
    trouble = one.pop("trouble")
    assert one == {"stream": "s-0", "target": "t-0", "state": "Failed", "bytes": 0, "lost": 0}
    assert (trouble["reason"], trouble["retryable"]) == ("SourceNotFound", False)


def test_a_shorter_list_takes_the_place_of_a_longer_one() -> None:
    """No part of the longer list stays."""
    server = ApiServer()
    write(server, found(5 * MOST_IN_SHARD))
    assert len(server.objects) == 5
    these = found(MOST_IN_SHARD + 1)
    write(server, these)
    assert read(server) == results_hash(these)
    assert len(server.objects) == 2


class Dying(ApiServer):
    """An API server that refuses all calls after a number of calls."""

    calls = 1000

    def _call(self) -> None:
        self.calls -= 1
        if self.calls < 0:
            raise Refused("cut off", status=500, why="")

    async def apply(self, kind: Kind, namespace: str, body: Object, **_: object) -> Object | None:
        """See Api.apply."""
        self._call()
        return await super().apply(kind, namespace, body)

    async def delete(self, kind: Kind, namespace: str, name: str) -> bool:
        """See Api.delete."""
        self._call()
        return await super().delete(kind, namespace, name)


@pytest.mark.parametrize("calls", range(5))
def test_a_list_that_was_cut_off_is_none(calls: int) -> None:
    """A half-written list does not count as complete, and the next write replaces it all."""
    server, these = Dying(), found(2 * MOST_IN_SHARD + 1, state=StreamState.FAILED)
    write(server, found(5 * MOST_IN_SHARD))
    server.calls = calls
    with pytest.raises(Refused):
        write(server, these)
    assert read(server) != results_hash(these)
    server.calls = 1000
    write(server, these)
    assert read(server) == results_hash(these)
    assert len(server.objects) == 3


@pytest.mark.parametrize("number", [0, 1, 2])
@pytest.mark.parametrize(
    ("key", "value"),
    [
        ("data", None),
        ("data", {"streams.json": "[]"}),
        ("data", {"streams.json": "{"}),
        ("annotations", None),
        ("annotations", {results.HASH_ANNOTATION: "x", results.COUNT_ANNOTATION: "3"}),
        ("annotations", {results.COUNT_ANNOTATION: "many"}),
        ("gone", None),
    ],
)
def test_results_that_somebody_spoiled_are_none(number: int, key: str, value: object) -> None:
    """They count as missing, so they are written again."""
    server, these = ApiServer(), found(2 * MOST_IN_SHARD + 1)
    write(server, these)
    one = body(server, number)
    if key == "gone":
        del server.objects[CONFIG_MAP.name, "default", one["metadata"]["name"]]
    else:
        (one["metadata"] if key == "annotations" else one)[key] = value
    assert read(server) is None
    write(server, these)
    assert read(server) == results_hash(these)


def test_a_number_that_somebody_wrote_is_bounded() -> None:
    """The number bounds how many ConfigMaps the operator deletes."""
    server = ApiServer()
    write(server, found(1))
    body(server, 0)["metadata"]["annotations"][results.COUNT_ANNOTATION] = "9" * 40
    assert read(server) is None
    before = len(server.changes)
    write(server, found(1))
    assert len(server.changes) - before <= 1 + 1_000


def test_more_than_a_copy_can_have_is_not_read() -> None:
    """A user who may write ConfigMaps cannot fill the operator's memory."""
    server, these = ApiServer(), found(MOST_IN_SHARD + 1)
    write(server, these)
    assert read(server) == results_hash(these)
    first, second = body(server, 0), body(server, 1)
    whole = json.loads(first["data"]["streams.json"]) + json.loads(second["data"]["streams.json"])
    first["data"]["streams.json"] = json.dumps(whole)
    second["data"]["streams.json"] = "[]"
    assert read(server) is None
