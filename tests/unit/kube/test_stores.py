from __future__ import annotations

import base64
from typing import TYPE_CHECKING, Any

import pytest

from sluice.errors import SecretNotFound
from sluice.kube.objects import IN_USE_FINALIZER, STAGING_FINALIZER
from sluice.kube.storekeeper import _secret, _users
from sluice.kube.stores import _credentials, _fingerprint
from sluice.stores.credentials import Credentials
from support.resources import COPY, STORE, changed

if TYPE_CHECKING:
    from sluice.kube.client import Object


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
    assert _users(copies, "local") == ["StreamCopy a", "StreamCopy b"]
    assert _users(copies, "far") == ["StreamCopy a"]
    assert _users(copies, "none") == []


def test_a_store_names_its_secret() -> None:
    """Or none; one that cannot be read names none."""
    basic = {"secretRef": {"name": "login"}}
    body = changed(STORE, "spec.pravega.auth", {"basic": basic})
    assert _secret(body) == "login"
    assert _secret(STORE) is None
    assert _secret(changed(STORE, "spec.pravega.controllerURI", "?")) is None
