from __future__ import annotations

import asyncio
import time
from email.utils import formatdate
from types import SimpleNamespace
from typing import TYPE_CHECKING, Any, cast

import pytest

from sluice.errors import InvalidSpec
from sluice.kube.api.client import Api
from sluice.kube.api.kinds import EPHEMERAL_STREAM, EVENT, NAMESPACE, SECRET
from sluice.kube.api.responses import asked

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable


@pytest.mark.parametrize(
    ("method", "path", "told"),
    [
        ("GET", EPHEMERAL_STREAM.object("team", "one"), ("get", "ephemeralstreams")),
        ("GET", EPHEMERAL_STREAM.collection("team"), ("list", "ephemeralstreams")),
        ("GET", EPHEMERAL_STREAM.collection(None), ("list", "ephemeralstreams")),
        (
            "PATCH",
            EPHEMERAL_STREAM.object("team", "one", "status"),
            ("patch", "ephemeralstreams/status"),
        ),
        ("POST", EVENT.collection("team"), ("create", "events")),
        ("DELETE", SECRET.object("team", "login"), ("delete", "secrets")),
        ("GET", NAMESPACE.object(None, "team"), ("get", "namespaces")),
        ("GET", "/apis/apps/v1", ("get", "discovery")),
    ],
)
def test_a_call_is_told_by_verb_and_resource(method: str, path: str, told: tuple[str, str]) -> None:
    """The label has neither name nor namespace, so few series exist."""
    assert asked(method, path, watch=False) == told


def test_a_watch_is_no_list() -> None:
    """It is one call, however long it lasts."""
    assert asked("GET", SECRET.collection("team"), watch=True) == ("watch", "secrets")


class Unasked:
    """A connection that refuses all calls."""

    async def param_serialize(self, *asked: object, **_: object) -> None:
        """Fail: the name got into a URL."""
        raise AssertionError(asked)


HOSTILE = {
    "nothing": "",
    "here": ".",
    "up": "..",
    "another namespace": "../../victim/secrets/login",
    "another namespace, escaped": "%2e%2e%2f%2e%2e%2fvictim%2fsecrets%2flogin",
    "escaped twice": "%252e%252e",
    "half escaped": ".%2e",
    "a subresource": "login/status",
    "a subresource, escaped": "login%2fstatus",
    "back": "login\\..\\other",
    "a query": "login?force=true",
    "a fragment": "login#",
    "parameters": "login;a=b",
    "a host": "@evil.example",
    "upper case": "Login",
    "a line": "login\n",
    "a header": "login\r\nX-Remote-User: admin",
    "a zero": "login\x00",
    "a blank": "log in",
    "a full stop that is none": "\uff0e\uff0e",
    "a slash that is none": "a\u2215b",
    "letters that are none": "l\u03bfgin",
    "too long": "a" * 300,
    "a dot in front": ".login",
    "a dash at the end": "login-",
}


@pytest.mark.parametrize("name", HOSTILE.values(), ids=HOSTILE.keys())
@pytest.mark.parametrize("where", ["name", "namespace", "group"])
def test_no_name_that_is_none_gets_into_a_url(name: str, where: str) -> None:
    """The call is refused before a request is sent, and the error names it."""
    api = Api(cast("Any", Unasked()))
    kind = SECRET._replace(group=name or "/") if where == "group" else SECRET
    namespace = name if where == "namespace" else "team"
    own = name if where == "name" else "login"
    body = {"metadata": {"name": own}}

    async def opened() -> None:
        async with api.watch(kind, namespace, "1", seconds=1, silence=1):
            pass

    async def read_log() -> None:
        async with api.log(namespace, own, "driver"):
            pass

    acts: dict[str, Callable[[], Awaitable[object]]] = {
        "get": lambda: api.get(kind, namespace, own),
        "apply": lambda: api.apply(kind, namespace, body),
        "apply status": lambda: api.apply(kind, namespace, body, subresource="status"),
        "patch": lambda: api.patch(kind, namespace, own, {}),
        "delete": lambda: api.delete(kind, namespace, own),
        "table": lambda: api.table(kind, namespace, name=own),
    }
    if where != "group":
        acts["log"] = read_log
    if where != "name":
        acts |= {
            "list": lambda: api.list(kind, namespace),
            "page": lambda: api.page(kind, namespace),
            "watch": opened,
            "create": lambda: api.create(kind, namespace, {}),
        }
    if where == "namespace" and not name:
        return  # the name stands for all namespaces
    if where == "group" and name:
        acts = {"resources": lambda: api.resources(f"{name}/v1"), **acts}
    for act in acts.values():
        with pytest.raises(InvalidSpec) as caught:
            asyncio.run(cast("Any", act()))
        assert caught.value.remedy is not None


@pytest.mark.parametrize("name", ["login", "a.b", "a--b", "0", "system:node", "a" * 253])
def test_names_of_kubernetes_get_into_a_url(name: str) -> None:
    """None of their characters has a meaning there."""
    assert SECRET.object("team", name) == f"/api/v1/namespaces/team/secrets/{name}"


@pytest.mark.parametrize("ahead", [-90.0, 0.0, 90.0])
def test_the_api_servers_time_is_told_by_its_answers(ahead: float) -> None:
    """Ages follow that server's clock, to the second, and not this machine's."""

    class Answer:
        status = 200
        response = SimpleNamespace(
            headers={"Date": formatdate(time.time() - ahead, usegmt=True)}, close=lambda: None
        )

        async def read(self) -> bytes:
            return b"{}"

    class Connection:
        async def param_serialize(self, *_: object, **__: object) -> tuple[()]:
            return ()

        async def call_api(self, *_: object, **__: object) -> Answer:
            return Answer()

    api = Api(cast("Any", Connection()))
    assert abs(api.time() - time.time()) < 1, "before there is an answer, it is our own"
    asyncio.run(api.get(SECRET, "team", "login"))
    assert -0.1 < time.time() - ahead - api.time() < 1.1
