"""A user's request for a drill, and the wait for its result."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Any, cast

import pytest

from sluice.administration import drilling, resources
from sluice.administration.drilling import DRILLED, Drilled, request, until
from sluice.administration.naming import Named
from sluice.errors import ApiUnavailable, InvalidSpec
from sluice.kube.api.kinds import STREAM_ARCHIVE
from sluice.kube.api.objects import DRILL_REQUESTED_AT
from sluice.kube.api.responses import Refused
from support.cases.resources import ARCHIVE, changed
from support.kube.api_server import ApiServer

if TYPE_CHECKING:
    from sluice.kube.api.client import Api

ORDERS = Named(DRILLED[0], "default", "orders")
DRILLS = changed(ARCHIVE, "spec.verify", {"schedule": {"cron": "@weekly"}})


@pytest.fixture(autouse=True)
def _fast(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(resources, "LOOK", 0)


def seen(
    requested: str | None,
    handled: str | None,
    result: str | None = None,
    *,
    verdict: str = "True",
    message: str = "",
) -> dict[str, Any]:
    """Return an archive as the API server has it in the course of a drill."""
    said = {
        "type": "RestoreVerified",
        "status": verdict,
        "reason": "DrillPassed" if verdict == "True" else "ArchiveDamaged",
        "lastTransitionTime": "2026-01-01T00:00:00Z",
    }
    drill = {"lastHandledRequestedAt": handled, "result": result, "message": message}
    notes = {DRILL_REQUESTED_AT: requested} if requested else {}
    return {
        "metadata": {"annotations": notes},
        "spec": {"verify": {}},
        "status": {"drill": drill, "conditions": [said]},
    }


def waited(
    *answers: dict[str, Any] | Exception | None, seconds: float | None = None
) -> tuple[Drilled, list[str]]:
    """Wait while the API server gives these answers in turn; return the messages."""
    left, said = list(answers), list[str]()

    class Script:
        async def get(self, *_: object) -> Any:
            answer = left.pop(0) if len(left) > 1 else left[0]
            if isinstance(answer, Exception):
                raise answer
            return answer

    api = cast("Api", Script())
    return asyncio.run(until(api, ORDERS, seconds=seconds, told=said.append)), said


def test_a_request_is_an_annotation() -> None:
    """The annotation holds the time, so each command asks for a drill of its own."""
    server = ApiServer()
    server.put(STREAM_ARCHIVE, DRILLS)
    body = asyncio.run(request(server.api, ORDERS))
    assert body["metadata"]["annotations"][DRILL_REQUESTED_AT].startswith("20")


@pytest.mark.parametrize(
    ("body", "field", "remedy"),
    [
        (ARCHIVE, "spec.verify", "Set spec.verify.schedule"),
        (changed(DRILLS, "spec.suspend", value=True), "spec.suspend", "sluice resume"),
    ],
)
def test_an_archive_that_begins_no_drill_is_told_with_the_field(
    body: dict[str, Any], field: str, remedy: str
) -> None:
    """The archive stays unchanged: a request would begin an unwanted drill later."""
    server = ApiServer()
    server.put(STREAM_ARCHIVE, body)
    changes = list(server.changes)
    with pytest.raises(InvalidSpec) as caught:
        asyncio.run(request(server.api, ORDERS))
    assert caught.value.field == field
    assert remedy in caught.value.remedy
    assert server.changes == changes


def test_an_earlier_result_does_not_end_the_wait() -> None:
    """Only the result of the requested drill counts, and each step is reported once."""
    found, said = waited(
        ApiUnavailable("away"),
        Refused("later", status=503, why=""),
        seen("2", "1", "Passed", message="before"),
        seen("2", "2", message="It is restored."),
        seen("2", "2", message="It is restored."),
        seen("2", "2", "Passed"),
    )
    assert found.drill is not None
    assert (found.drill.result, found.reason) == ("Passed", None)
    assert said == ["before", "It is restored."]


def test_a_later_request_of_another_client_is_waited_for() -> None:
    """Its drill begins later than this client's would."""
    found, _ = waited(seen("2", None), seen("3", "2", "Passed"), seen("3", "3", "Failed"))
    assert found.drill is not None
    assert found.drill.result == "Failed"


def test_the_reason_is_that_of_this_drill() -> None:
    """A drill that could not run neither repeats an earlier failure nor withdraws it."""
    failed, _ = waited(seen("2", "2", "Failed", verdict="False"))
    assert failed.reason == "ArchiveDamaged"
    unknown, _ = waited(seen("2", "2", "NotRun", verdict="False"))
    assert unknown.reason is None


def test_a_wait_ends_with_its_time_or_its_request() -> None:
    """A withdrawn request or a deleted archive can have no result any more."""
    assert waited(seen("2", "2"), seconds=0)[0] == Drilled(ORDERS, None)
    with pytest.raises(InvalidSpec, match="called off"):
        waited(seen(None, "2"))
    with pytest.raises(InvalidSpec, match="was deleted"):
        waited(seen("2", "1"), None)
    with pytest.raises(Refused):
        waited(Refused("not you", status=403, why="Forbidden"))


def test_only_archives_have_drills() -> None:
    """So the command finds no other kind by a name."""
    assert [kind.name for kind in drilling.DRILLED] == ["StreamArchive"]
