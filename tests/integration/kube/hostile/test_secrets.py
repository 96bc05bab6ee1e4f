"""A hostile tenant's attempts at Secrets: the neighbour's, and its own that are held."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Final

import pytest

from sluice.kube.api.objects import IN_USE_FINALIZER
from support.tenants.evil import HELD, LOGIN, PRECIOUS
from support.tenants.evil_resources import copy, store
from support.until import until

if TYPE_CHECKING:
    from support.tenants.evil import Evil

pytestmark = pytest.mark.timeout(400)


def test_the_stranger_hears_what_tenants_send_him_themselves(evil: Evil) -> None:
    """The stranger receives a tenant's own Secret. So it would receive a neighbour's, too."""
    evil.make(store("mine", evil.stranger.uri, secret="mine"))  # noqa: S106 - its name
    until("he hears it", lambda: "open-sesame" in str(evil.stranger.heard))


def test_a_secret_is_looked_for_in_the_namespace_of_its_store_only(evil: Evil) -> None:
    """A Secret is read only in its store's namespace, although a neighbour has one of that name."""
    evil.make(store("namesake", evil.hidden.uri, secret=LOGIN))
    evil.look("streamstore", "namesake")
    found = evil.get("streamstore", "namesake")
    assert found is not None
    assert "SecretNotFound" in json.dumps(found["status"])


WAYS: Final = ["WAY", "../secrets/precious", "%2e%2e/secrets", PRECIOUS, "", "x" * 300]


@pytest.mark.parametrize("number", range(len(WAYS)))
def test_an_annotation_lets_no_secret_go(evil: Evil, number: int) -> None:
    """An annotation releases no Secret, since the status lists the held ones."""
    name, held = f"holder-{number}", WAYS[number].replace("WAY", evil.way)
    meta = {"finalizers": [IN_USE_FINALIZER], "annotations": {HELD: held}}
    evil.make(store(name, evil.stranger.uri, **meta))
    evil.delete("streamstore", name)
    until("it goes", lambda: evil.get("streamstore", name) is None)
    _is_held(evil)


def test_a_status_that_comes_with_a_new_store_lets_no_secret_go(evil: Evil) -> None:
    """A forged status of a new store releases no Secret, since the API server drops it."""
    made = store("stated", evil.stranger.uri, finalizers=[IN_USE_FINALIZER])
    evil.make(made | {"status": {"heldSecrets": [PRECIOUS]}})
    evil.delete("streamstore", "stated")
    until("it goes", lambda: evil.get("streamstore", "stated") is None)
    _is_held(evil)


def _is_held(evil: Evil) -> None:
    found = evil.get("secret", PRECIOUS)
    assert found is not None
    assert found["metadata"].get("finalizers") == [IN_USE_FINALIZER]


def test_a_copy_owned_by_the_neighbours_secret_takes_nothing_along(evil: Evil) -> None:
    """A copy with the neighbour's Secret as owner leaves that Secret unchanged."""
    owner = {"apiVersion": "v1", "kind": "Secret", "name": LOGIN}
    owner["uid"] = evil.login()["metadata"]["uid"]
    evil.make(copy("adopted", ownerReferences=[owner]))
    evil.delete("streamcopy", "adopted")
    until("it goes", lambda: evil.get("streamcopy", "adopted") is None)
