"""The resource that `sluice restore` makes of an archive and the user's options."""

from __future__ import annotations

import asyncio
from dataclasses import replace
from typing import Any, Final

import pytest

from sluice.administration.naming import Named
from sluice.administration.restoring import Restore, create, require_store, restore_of
from sluice.api.registry import KINDS
from sluice.errors import InvalidSpec
from sluice.kube.api.kinds import STREAM_COPY, STREAM_STORE
from support.cases import resources
from support.kube.api_server import ApiServer

KIND: Final = {kind.name: kind for kind in KINDS}
ORDERS: Final = Named(KIND["StreamArchive"], "team", "orders")
SHOP: Final = Named(KIND["ScopeCopy"], "team", "shop")
ARCHIVES: Final = resources.changed(
    resources.SCOPE, "spec.target", {"archive": {"storeRef": {"name": "archives"}, "path": "shop"}}
)
WISH: Final = Restore(
    store="local", scope="out", stream="orders", run=None, until=None, options={}, in_target={}
)


def made(wish: Restore = WISH) -> dict[str, Any]:
    """Return the resource that restores the archive of a stream."""
    return restore_of(ORDERS, resources.ARCHIVE, wish)


def test_a_stream_is_restored_by_a_copy_from_its_archive() -> None:
    """The copy is in the archive's namespace, from its store and path, with the user's options."""
    wish = replace(
        WISH,
        run=3,
        in_target={"onExists": "Append", "sealWhenDone": True},
        name="again",
    )
    assert made(wish) == {
        "apiVersion": "sluice.dev/v1alpha1",
        "kind": "StreamCopy",
        "metadata": {"name": "again", "namespace": "team"},
        "spec": {
            "source": {
                "archive": {"storeRef": {"name": "archives"}, "path": "in/orders", "run": 3}
            },
            "target": {
                "storeRef": {"name": "local"},
                "scope": "out",
                "stream": "orders",
                "onExists": "Append",
                "sealWhenDone": True,
            },
        },
    }


def test_a_scope_is_restored_from_the_archives_of_a_scope() -> None:
    """The restore goes up to a time that holds for all streams."""
    wish = replace(WISH, stream=None, until="2026-05-04T12:00:00Z")
    found = restore_of(SHOP, ARCHIVES, wish)
    assert found["kind"] == "ScopeCopy"
    assert found["spec"] == {
        "source": {
            "archive": {
                "storeRef": {"name": "archives"},
                "path": "shop",
                "until": "2026-05-04T12:00:00Z",
            }
        },
        "target": {"storeRef": {"name": "local"}, "scope": "out"},
    }


def test_a_run_of_a_scope_is_restored_by_its_number() -> None:
    """Only a schedule makes runs of a whole scope, and only they have numbers."""
    hourly = resources.changed(ARCHIVES, "spec.schedule", {"cron": "0 * * * *"})
    found = restore_of(SHOP, hourly, replace(WISH, stream=None, run=3))
    assert found["spec"]["source"]["archive"]["run"] == 3


def test_the_same_wish_has_the_same_name() -> None:
    """Other options give another name, and the name of the longest archive fits."""
    name = made()["metadata"]["name"]
    assert name == made()["metadata"]["name"]
    assert name.startswith("restore-orders-")
    assert made(replace(WISH, run=1))["metadata"]["name"] != name
    longest = restore_of(replace(ORDERS, name="a" * 63), resources.ARCHIVE, WISH)
    assert len(longest["metadata"]["name"]) <= 63


@pytest.mark.parametrize(
    ("archive", "body", "wish", "said"),
    [
        (ORDERS, resources.ARCHIVE, {"stream": None}, "--to: .* restored to a stream"),
        (SHOP, ARCHIVES, {}, "--to: .* restored to a scope"),
        (SHOP, ARCHIVES, {"stream": None, "run": 1}, "--run: "),
        (SHOP, resources.SCOPE, {"stream": None}, "NAME: .* makes no archives"),
        (ORDERS, resources.ARCHIVE, {"run": 1, "until": "2026-05-04T12:00:00Z"}, "give one"),
        (ORDERS, resources.ARCHIVE, {"scope": "a b"}, "spec.target.scope: "),
        (ORDERS, resources.ARCHIVE, {"name": "A"}, "metadata.name: "),
    ],
    ids=lambda value: str(value)[:40],
)
def test_a_wish_that_does_not_fit_is_refused(
    archive: Named, body: dict[str, Any], wish: dict[str, Any], said: str
) -> None:
    """The refusal comes before anything is made, and names the option or the field."""
    with pytest.raises(InvalidSpec, match=said):
        restore_of(archive, body, replace(WISH, **wish))


def test_a_restore_is_made_once() -> None:
    """The same command finds the restore again, and rejects a resource that restores other data."""
    server = ApiServer()
    resource, _, new = asyncio.run(create(server.api, made()))
    assert (str(resource), new) == (f"streamcopy/{resource.name}", True)
    # The API server writes defaults into the stored object.
    kept = server.body(STREAM_COPY, resource.name, "team") or {}
    server.put(STREAM_COPY, resources.changed(kept, "spec.target.onExists", "Fail"))
    assert asyncio.run(create(server.api, made()))[2] is False
    other = made(replace(WISH, run=1, name=resource.name))
    with pytest.raises(InvalidSpec, match="exists, and is not this restore") as caught:
        asyncio.run(create(server.api, other))
    assert "--name" in caught.value.remedy


def test_the_store_to_restore_to_must_exist() -> None:
    """The error names the option and a similar store."""
    server = ApiServer()
    server.put(STREAM_STORE, resources.changed(resources.STORE, "metadata.namespace", "team"))
    asyncio.run(require_store(server.api, "team", "local"))
    with pytest.raises(InvalidSpec, match="--to: there is no StreamStore 'locl'") as caught:
        asyncio.run(require_store(server.api, "team", "locl"))
    assert "Did you mean local?" in caught.value.remedy
