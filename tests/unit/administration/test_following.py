"""The end of a watch of many resources, and its result for each."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Any, Final

import pytest

from sluice.administration import following
from sluice.administration.following import FollowedResource, follow
from sluice.administration.naming import WantedResources, wanted
from sluice.errors import ApiUnavailable, InvalidSpec
from sluice.kube.api.kinds import STREAM_COPY
from sluice.kube.api.responses import Refused
from support.cases import resources
from support.kube.finalizing import FinalizingServer

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

TIME: Final = "2026-01-01T00:00:00Z"


@pytest.fixture(autouse=True)
def _fast(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(following, "LOOK", 0)


def put(server: FinalizingServer, name: str, condition: str | None = None) -> None:
    """Make a copy, or change its condition."""
    held = [] if condition is None else [condition]
    conditions = [
        {
            "type": kind,
            "status": "True",
            "reason": "Copied",
            "observedGeneration": 1,
            "lastTransitionTime": TIME,
        }
        for kind in held
    ]
    meta = {"name": name, "namespace": "team", "generation": 1}
    body = resources.changed(resources.COPY, "metadata", meta)
    server.put(STREAM_COPY, body | {"status": {"conditions": conditions}})


def looks(
    server: FinalizingServer,
    words: Sequence[str] = ("scopy",),
    *,
    seconds: float | None = None,
    after: Callable[[int], None] = lambda _: None,
) -> list[list[FollowedResource]]:
    """Follow copies; call `after` with the number of each look."""

    async def all_looks() -> list[list[FollowedResource]]:
        found = []
        async for look in follow(server.api, wanted(words), "team", seconds=seconds):
            found.append(look)
            after(len(found))
        return found

    return asyncio.run(all_looks())


def state(one: FollowedResource) -> tuple[str, bool | None, bool, bool]:
    """Return a followed resource's name, and whether it is met, suspended and gone."""
    return (one.resource.name, one.end and one.end.met, one.suspended, one.gone)


def test_a_watch_ends_when_all_are_at_rest() -> None:
    """At rest is ready, stalled or suspended. The watch waits for a copy that is made meanwhile."""
    server = FinalizingServer()
    put(server, "a", "Ready")
    put(server, "b")

    def after(number: int) -> None:
        match number:
            case 1:
                put(server, "b", "Stalled")
                put(server, "c")
            case 2:
                put(server, "c", "Suspended")

    found = looks(server, after=after)
    assert [len(look) for look in found] == [2, 3, 3]
    assert [state(one) for one in found[-1]] == [
        ("a", True, False, False),
        ("b", False, False, False),
        ("c", None, True, False),
    ]


def test_a_copy_that_is_deleted_early_is_gone() -> None:
    """A copy that had ended before its deletion counts as it ended."""
    server = FinalizingServer()
    put(server, "a", "Ready")
    put(server, "b")
    put(server, "c")

    def after(number: int) -> None:
        if number == 1:
            server.remove(STREAM_COPY, "a", "team")
            server.remove(STREAM_COPY, "b", "team")
            put(server, "c", "Ready")

    found = looks(server, after=after)
    assert [state(one) for one in found[-1]] == [
        ("a", True, False, False),
        ("b", None, False, True),
        ("c", True, False, False),
    ]
    put(server, "d")
    named = looks(server, ["scopy/d"], after=lambda _: server.destroy(STREAM_COPY, "d", "team"))
    assert state(named[-1][0]) == ("d", None, False, True)


def test_a_watch_ends_when_its_time_is_over() -> None:
    """The watch takes at least one look."""
    server = FinalizingServer()
    put(server, "a")
    (look,) = looks(server, seconds=0)
    assert [state(one) for one in look] == [("a", None, False, False)]


def test_a_name_that_is_wrong_from_the_beginning_ends_a_watch() -> None:
    """A wrong name is an error. An empty list of resources is none."""
    server = FinalizingServer()
    with pytest.raises(InvalidSpec, match="no StreamCopy 'a'"):
        looks(server, ["scopy/a"])
    assert looks(server) == [[]]


def test_a_watch_outlives_an_api_server_that_starts_anew() -> None:
    """A refusal of the user ends the watch. So does a server that is unreachable from the start."""
    server = FinalizingServer()
    put(server, "a")
    errors: list[Exception] = []

    def fail() -> None:
        if errors:
            raise errors.pop(0)

    server.meanwhile = fail

    def after(number: int) -> None:
        if number == 1:
            errors.extend([ApiUnavailable("away"), Refused("later", status=503, why="")])
        elif number == 3:
            put(server, "a", "Ready")

    assert len(looks(server, after=after)) == 4
    errors.append(ApiUnavailable("away"))
    with pytest.raises(ApiUnavailable, match="away"):
        looks(server)

    def forbid(_: int) -> None:
        errors.append(Refused("not you", status=403, why="Forbidden"))

    put(server, "a")
    with pytest.raises(Refused, match="not you"):
        looks(server, after=forbid)


def test_only_wanted_kinds_are_looked_at() -> None:
    """A kind without resources adds nothing."""
    server = FinalizingServer()
    put(server, "a", "Ready")
    every: Any = [*wanted([])]
    assert WantedResources in {type(one) for one in every}
    assert [state(one)[0] for one in looks(server, [])[-1]] == ["a"]
    assert looks(server, ["sccp"]) == [[]]
