"""Names that people type, and waits, while the API server refuses or is away."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Any, cast

import pytest

from sluice.administration import resources
from sluice.administration.naming import Named
from sluice.administration.resources import until
from sluice.api.registry import KINDS
from sluice.api.status.common import ConditionType
from sluice.errors import ApiUnavailable, InvalidSpec
from sluice.kube.api.objects import REQUESTED_AT
from sluice.kube.api.responses import Refused

if TYPE_CHECKING:
    from sluice.kube.api.client import Api
    from sluice.kube.api.kinds import Kind

    Answer = dict[str, Any] | Exception | None

COPY = next(kind for kind in KINDS if kind.name == "StreamCopy")
ORDERS = Named(COPY, "team", "orders")
FORBIDDEN = Refused("not you", status=403, why="Forbidden")


class Script:
    """An API server that gives these answers in turn and repeats the last one.

    Args:
        answers: its answers for each kind.
    """

    def __init__(self, **answers: list[Answer]) -> None:
        self._answers = answers

    async def get(self, kind: Kind, namespace: str, name: str) -> Any:
        """Answer, or raise the error that stands in the answer's place."""
        assert (namespace, name) == ("team", "orders")
        left = self._answers.get(kind.name, [None])
        answer = left.pop(0) if len(left) > 1 else left[0]
        if isinstance(answer, Exception):
            raise answer
        return answer

    @property
    def api(self) -> Api:
        """Return the server as the client that the code expects."""
        return cast("Api", self)


def body(condition: str, *, requested: str = "", handled: str | None = None) -> dict[str, Any]:
    """Return a copy with a condition that is True."""
    found = {
        "type": condition,
        "status": "True",
        "reason": "Copied",
        "observedGeneration": 1,
        "lastTransitionTime": "2026-01-01T00:00:00Z",
    }
    status = {"conditions": [found], "lastHandledRequestedAt": handled}
    notes = {REQUESTED_AT: requested} if requested else {}
    return {"metadata": {"generation": 1, "annotations": notes}, "status": status}


def wait(script: Script, *, seconds: float | None = None) -> resources.Awaited:
    """Wait until the copy is ready."""
    return asyncio.run(until(script.api, ORDERS, ConditionType.READY, seconds=seconds))


@pytest.fixture(autouse=True)
def _fast(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(resources, "LOOK", 0)


def test_a_wait_outlives_an_api_server_that_starts_anew() -> None:
    """The wait repeats its calls, but a refusal of the user ends it."""
    away = [ApiUnavailable("away"), *(Refused("later", status=code, why="") for code in (429, 503))]
    assert wait(Script(StreamCopy=[*away, body("Ready")])).met
    with pytest.raises(Refused, match="not you"):
        wait(Script(StreamCopy=[FORBIDDEN]))


def test_a_condition_from_before_a_request_does_not_end_a_wait() -> None:
    """The wait ends only once the operator has handled the request, of which it keeps a part."""
    old, new = (
        body("Stalled", requested="2", handled="1"),
        body("Ready", requested="2", handled="2"),
    )
    assert wait(Script(StreamCopy=[old, new])).met
    long = body("Ready", requested="x" * 600, handled="x" * 512)
    assert wait(Script(StreamCopy=[long])).met
    assert not wait(Script(StreamCopy=[old]), seconds=0).met


def test_a_resource_that_is_deleted_ends_a_wait() -> None:
    """The error has the resource's name and namespace."""
    with pytest.raises(InvalidSpec, match=r"streamcopy/orders was deleted.*'team'"):
        wait(Script(StreamCopy=[body("Reconciling"), None]))


def test_a_stalled_resource_is_told_with_the_sentence_of_ready() -> None:
    """Stalled has a short message of its own: only Ready has the full sentence."""
    found = body("Stalled")
    (stalled,) = found["status"]["conditions"]
    ready = {**stalled, "type": "Ready", "status": "False", "message": "No such stream. Make it."}
    found["status"]["conditions"] = [ready, {**stalled, "message": "It cannot go on."}]
    end = wait(Script(StreamCopy=[found]))
    assert (end.met, end.message) == (False, "No such stream. Make it.")
    assert end.condition is not None
    assert end.condition.type == "Stalled"
