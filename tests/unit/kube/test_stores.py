from __future__ import annotations

import asyncio
import base64
from typing import TYPE_CHECKING, Any

import pytest

from sluice.config import Settings
from sluice.core.model import StoreAddress
from sluice.errors import SecretNotFound
from sluice.kube import stores
from sluice.kube.objects import IN_USE_FINALIZER, STAGING_FINALIZER
from sluice.kube.storekeeper import _secret
from sluice.kube.stores import Connections, _credentials, _fingerprint
from sluice.kube.users import users
from sluice.stores.credentials import Credentials
from support.api_server import ApiServer
from support.resources import COPY, STORE, changed

if TYPE_CHECKING:
    from sluice.kube.kinds import Object


def secret(**values: bytes) -> Object:
    """A Secret as the API server gives it."""
    return {"data": {key: base64.b64encode(value).decode() for key, value in values.items()}}


def test_a_secret_gives_a_login() -> None:
    """A newline at the end, as editors leave it, does not count."""
    found = _credentials("login", secret(username=b"me\n", password="p\u00e4ss\r\n".encode()))
    assert (found.username, found.password) == ("me", "p\u00e4ss")


@pytest.mark.parametrize(
    ("body", "words"),
    [
        (None, "there is no Secret 'login'"),
        ({}, "no key 'username'"),
        (secret(username=b"me"), "no key 'password'"),
        (secret(username=b"me", password=b""), "no key 'password'"),
        (secret(username=b"me", password=b"\n"), "no key 'password'"),
        (secret(username=b"\xff\xfe", password=b"p"), "no key 'username'"),
        ({"data": {"username": "!", "password": "cA=="}}, "no key 'username'"),
    ],
)
def test_a_secret_without_a_login_is_none(body: Object | None, words: str) -> None:
    """The error names the Secret and the key, never what is in it."""
    with pytest.raises(SecretNotFound, match=words) as caught:
        _credentials("login", body)
    assert caught.value.field == "spec.pravega.auth.basic.secretRef.name"


def test_a_fingerprint_tells_logins_apart() -> None:
    """Also where user and password share their letters, and without giving them away."""
    logins = [Credentials("a", "bc"), Credentials("ab", "c"), Credentials("a", "bd")]
    prints = [_fingerprint(login) for login in logins]
    assert len(set(prints)) == 3
    assert prints == [_fingerprint(login) for login in logins]
    assert not any("bc" in one for one in prints)


def copy(name: str, *finalizers: str, target: str = "local") -> dict[str, Any]:
    """A StreamCopy with these finalizers."""
    body = changed(COPY, "spec.target.storeRef.name", target)
    return body | {"metadata": {"name": name, "namespace": "team", "finalizers": list(finalizers)}}


def test_who_has_something_in_a_store_uses_it() -> None:
    """By the finalizer that stands on a copy as long as it has; on either side."""
    copies = [
        copy("b", STAGING_FINALIZER, "other"),
        copy("a", STAGING_FINALIZER, target="far"),
        copy("done"),
        copy("held", IN_USE_FINALIZER),
    ]
    assert users(copies, "local") == ["StreamCopy a", "StreamCopy b"]
    assert users(copies, "far") == ["StreamCopy a"]
    assert users(copies, "none") == []


def test_a_store_names_its_secret() -> None:
    """Or none; one that cannot be read names none."""
    basic = {"secretRef": {"name": "login"}}
    body = changed(STORE, "spec.pravega.auth", {"basic": basic})
    assert _secret(body) == "login"
    assert _secret(STORE) is None
    assert _secret(changed(STORE, "spec.pravega.controllerURI", "?")) is None


# -- connections


class Connection:
    """A connection that can be closed."""

    def __init__(self) -> None:
        self.open = True

    def close(self) -> None:
        """As Store.close."""
        assert self.open
        self.open = False


def test_a_connection_is_closed_when_nobody_asks_for_it(monkeypatch: pytest.MonkeyPatch) -> None:
    """As long as somebody does, it is kept; who asks later has another one."""
    monkeypatch.setattr(stores, "connect", lambda *_, **__: Connection())
    here, there = StoreAddress(uri="tcp://here:1"), StoreAddress(uri="tcp://there:1")

    async def story() -> None:
        connections = Connections(ApiServer().api, Settings(), idle=1)
        used, idle = await connections.get("team", here), await connections.get("team", there)
        while idle.open:  # type: ignore[attr-defined]
            await asyncio.sleep(0.05)
            assert await connections.get("team", here) is used
        assert used.open  # type: ignore[attr-defined]
        anew = await connections.get("team", there)
        assert anew is not idle
        connections.close()
        assert [one.open for one in (used, anew)] == [False, False]  # type: ignore[attr-defined]
        await asyncio.sleep(1.2)  # what was to look for idle ones finds none

    asyncio.run(story())
