"""The rule that viewers see what their token allows, and strangers see nothing."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Any

import pytest

from sluice.errors import ApiUnavailable
from sluice.serving import access
from sluice.serving.access import KubernetesAccess, OneToken, Ruling, ViewRight

if TYPE_CHECKING:
    from pathlib import Path

    from sluice.kube.api.kinds import Kind

ROWS = ViewRight("get", "streamqueries", "shop", "counts", "results")


class Reviews:
    """An API server's reviews: the token `good` is that of alice, who may see `shop`."""

    def __init__(self) -> None:
        self.asked: list[dict[str, Any]] = []

    async def create(self, kind: Kind, namespace: None, body: dict[str, Any]) -> dict[str, Any]:
        """Answer a review."""
        assert namespace is None
        self.asked.append(body)
        spec = body["spec"]
        if kind.name == "TokenReview":
            if spec["token"] == "good":  # noqa: S105 - of these tests
                user = {"username": "alice", "groups": ["team"], "uid": "7"}
                return body | {"status": {"authenticated": True, "user": user}}
            return body | {"status": {"error": "no such token"}}
        wanted = spec["resourceAttributes"]
        allowed = spec["user"] == "alice" and wanted["namespace"] == "shop"
        return body | {"status": {"allowed": allowed}}


def decide(rule: KubernetesAccess | OneToken, token: str, right: ViewRight = ROWS) -> Ruling:
    """Return the verdict."""
    return asyncio.run(rule.decide(token, right))


def test_kubernetes_decides_who_sees_rows() -> None:
    """The user, the groups and the right decide."""
    reviews = Reviews()
    rule = KubernetesAccess(reviews.create)
    assert decide(rule, "good") is Ruling.ALLOWED
    assert reviews.asked[1]["spec"] == {
        "user": "alice",
        "uid": "7",
        "groups": ["team"],
        "extra": None,
        "resourceAttributes": {
            "group": "sluice.dev",
            "verb": "get",
            "resource": "streamqueries",
            "subresource": "results",
            "name": "counts",
            "namespace": "shop",
        },
    }
    assert decide(rule, "good", ROWS._replace(namespace="other")) is Ruling.FORBIDDEN
    assert decide(rule, "bad") is Ruling.UNKNOWN


@pytest.mark.parametrize("token", ["", "x" * 5000])
def test_what_is_no_token_is_not_asked_about(token: str) -> None:
    """A malformed token costs the API server no call."""
    reviews = Reviews()
    assert decide(KubernetesAccess(reviews.create), token) is Ruling.UNKNOWN
    assert not reviews.asked


def test_answers_count_for_a_while(monkeypatch: pytest.MonkeyPatch) -> None:
    """A page that reloads often does not cause a call each time; a revoked right ends."""
    reviews = Reviews()
    rule = KubernetesAccess(reviews.create)
    for _ in range(3):
        assert decide(rule, "good") is Ruling.ALLOWED
    assert len(reviews.asked) == 2
    monkeypatch.setattr(access, "AGAIN", -1.0)
    rule = KubernetesAccess(reviews.create)
    decide(rule, "good")
    decide(rule, "good")
    assert len(reviews.asked) == 6


def test_strangers_cost_no_memory() -> None:
    """The number of wrong tokens does not matter."""
    reviews = Reviews()
    rule = KubernetesAccess(reviews.create)

    async def play() -> None:
        for number in range(5000):
            await rule.decide(f"wrong-{number}", ROWS)

    asyncio.run(play())
    assert len(rule._wrong._kept) == 4096
    assert not rule._users._kept


def test_strangers_hold_up_nobody_whose_token_was_right(monkeypatch: pytest.MonkeyPatch) -> None:
    """Strangers wait in a queue of their own, and excess ones are rejected."""
    monkeypatch.setattr(access, "AGAIN", 0.0)
    reviews, held = Reviews(), asyncio.Event()

    async def create(kind: Kind, namespace: None, body: dict[str, Any]) -> dict[str, Any]:
        if body["spec"].get("token", "good") != "good":
            await held.wait()
        return await reviews.create(kind, namespace, body)

    async def play() -> None:
        rule = KubernetesAccess(create)
        assert await rule.decide("good", ROWS) is Ruling.ALLOWED
        strangers = [asyncio.create_task(rule.decide(f"wrong-{at}", ROWS)) for at in range(100)]
        await asyncio.sleep(0)
        async with asyncio.timeout(5):
            assert await rule.decide("good", ROWS) is Ruling.ALLOWED
        held.set()
        answers = await asyncio.gather(*strangers, return_exceptions=True)
        assert sum(isinstance(answer, ApiUnavailable) for answer in answers) == 100 - 64

    asyncio.run(play())


@pytest.mark.parametrize("status", [None, {}, {"authenticated": "true"}, {"authenticated": True}])
def test_an_answer_that_does_not_say_yes_is_a_no(status: object) -> None:
    """This holds for any answer of the API server."""

    async def create(kind: Kind, namespace: None, body: dict[str, Any]) -> dict[str, Any]:
        del kind, namespace
        return body | {"status": status}

    assert decide(KubernetesAccess(create), "good") is Ruling.UNKNOWN


def test_one_token_opens_all(tmp_path: Path) -> None:
    """The token may be replaced in its file. An empty file opens nothing."""
    file = tmp_path / "token"
    file.write_text("secret\n")
    rule = OneToken(file)
    assert decide(rule, "secret") is Ruling.ALLOWED
    assert decide(rule, "secre") is Ruling.UNKNOWN
    assert decide(rule, "") is Ruling.UNKNOWN
    file.write_text("other")
    assert decide(rule, "secret") is Ruling.UNKNOWN
    file.write_text("")
    assert decide(rule, "") is Ruling.UNKNOWN
    file.unlink()
    with pytest.raises(ApiUnavailable):
        decide(rule, "other")
    assert decide(OneToken("made"), "made") is Ruling.ALLOWED
    assert decide(OneToken("made"), "m\udcffde") is Ruling.UNKNOWN
