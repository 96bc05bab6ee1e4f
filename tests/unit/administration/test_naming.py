"""Names that users type: their resources, and the errors for wrong names."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Any, cast

import pytest

from sluice.administration.naming import Named, WantedResources, find, require_one_place, wanted
from sluice.api.registry import DRIVEN, KINDS
from sluice.errors import InvalidSpec
from sluice.kube.api.kinds import OWN
from sluice.kube.api.responses import Refused
from support.cases import resources
from support.kube.api_server import ApiServer

if TYPE_CHECKING:
    from sluice.kube.api.client import Api
    from sluice.kube.api.kinds import Kind, Object

STORE, COPY, SCOPE, ARCHIVE, EPHEMERAL, _QUERY = KINDS
FORBIDDEN = Refused("not you", status=403, why="Forbidden")


class Guarded(ApiServer):
    """A server that lets a user read some kinds only.

    Args:
        allowed: the names of these kinds.
    """

    def __init__(self, *allowed: str) -> None:
        super().__init__()
        self._allowed = allowed

    async def get(self, kind: Kind, namespace: str | None, name: str) -> Object | None:
        """See Api.get."""
        if kind.name not in self._allowed:
            raise FORBIDDEN
        return await super().get(kind, namespace, name)

    async def table(self, kind: Kind, namespace: str | None, more: str = "", **how: Any) -> Object:
        """See Api.table."""
        if kind.name not in self._allowed:
            raise FORBIDDEN
        return await super().table(kind, namespace, more, **how)


def put(server: ApiServer, like: Object, name: str) -> None:
    """Make a resource in the namespace team."""
    meta = {"name": name, "namespace": "team"}
    server.put(OWN[like["kind"]], resources.changed(like, "metadata", meta))


def found(server: ApiServer, text: str, kinds: Any = KINDS) -> Named:
    """Find a resource of the namespace team."""
    return asyncio.run(find(cast("Api", server), "team", text, kinds=kinds))


def test_every_name_of_a_kind_is_understood() -> None:
    """Names are understood in any case as kubectl does, and in the form of `-o name`."""
    server = ApiServer()
    put(server, resources.COPY, "orders")
    words = (
        "scopy",
        "StreamCopy",
        "streamcopies",
        "streamcopy.sluice.dev",
        "streamcopies.sluice.dev",
    )
    expected = Named(COPY, "team", "orders")
    assert found(server, "orders") == expected
    assert all(found(server, f"{word}/orders") == expected for word in words)
    assert (str(expected), expected.full) == ("streamcopy/orders", "streamcopy.sluice.dev/orders")


def test_a_name_is_found_by_users_with_rights_on_its_kind_only() -> None:
    """Forbidden kinds are skipped, unless no other kind has the name."""
    server = Guarded("StreamCopy")
    put(server, resources.COPY, "orders")
    assert found(server, "orders") == Named(COPY, "team", "orders")
    with pytest.raises(Refused, match="not you"):
        found(server, "order")


def test_a_missing_name_is_answered_with_one_that_is_like_it() -> None:
    """The remedy proposes a similar existing name; without any it only says where to look."""
    server = ApiServer()
    put(server, resources.COPY, "orders")
    with pytest.raises(InvalidSpec, match="no StreamCopy 'order' in namespace 'team'") as caught:
        found(server, "scopy/order")
    assert "Did you mean orders?" in caught.value.remedy
    with pytest.raises(InvalidSpec, match="no resource 'zzz'") as caught:
        found(server, "zzz")
    assert caught.value.remedy.startswith("sluice get --all-namespaces")


def test_a_name_of_two_resources_needs_its_kind() -> None:
    """The error names both resources; with its kind, each is found."""
    server = ApiServer()
    put(server, resources.COPY, "main")
    put(server, resources.STORE, "main")
    with pytest.raises(InvalidSpec, match="streamstore/main or streamcopy/main"):
        found(server, "main")
    assert found(server, "sst/main").spec is STORE


@pytest.mark.parametrize(
    ("words", "expected"),
    [
        ([], [WantedResources(kind) for kind in KINDS]),
        (["all"], [WantedResources(kind) for kind in KINDS]),
        (["scopy"], [WantedResources(COPY)]),
        (["scopy,sccp"], [WantedResources(COPY), WantedResources(SCOPE)]),
        (["scopy", "a", "b"], [WantedResources(COPY, "a"), WantedResources(COPY, "b")]),
        (["scopy,eps", "a"], [WantedResources(COPY, "a"), WantedResources(EPHEMERAL, "a")]),
        (["scopy/a", "sarc/b"], [WantedResources(COPY, "a"), WantedResources(ARCHIVE, "b")]),
    ],
    ids=str,
)
def test_words_mean_what_they_mean_to_kubectl(
    words: list[str], expected: list[WantedResources]
) -> None:
    """Users write kinds with commas, KIND NAME..., KIND/NAME..., or no word for all."""
    assert wanted(words) == expected


@pytest.mark.parametrize(
    ("words", "said", "remedy"),
    [
        (["streamcopis"], "'streamcopis' is no kind", "Did you mean streamcopies?"),
        (["pods"], "'pods' is no kind", "Take one of streamstore, streamcopy"),
        (["scopy/a", "b"], "'b' is no KIND/NAME", "Write KIND/NAME for each"),
        (["scopy/"], "'scopy/' is no KIND/NAME", "Write KIND/NAME for each"),
    ],
    ids=str,
)
def test_wrong_words_are_refused(words: list[str], said: str, remedy: str) -> None:
    """The error names the kind that was probably meant, or all kinds."""
    with pytest.raises(InvalidSpec, match=said) as caught:
        wanted(words)
    assert remedy in caught.value.remedy


def test_a_kind_that_a_command_does_not_take_is_refused() -> None:
    """The remedy lists the kinds that the command takes."""
    with pytest.raises(InvalidSpec, match="'sst' is no kind that this command") as caught:
        found(ApiServer(), "sst/main", DRIVEN)
    assert "streamarchive" in caught.value.remedy


def test_names_are_in_one_namespace_and_need_no_labels() -> None:
    """Without names, both are allowed."""
    require_one_place([WantedResources(COPY)], everywhere=True, labels="a=b")
    for how in ({"everywhere": True, "labels": None}, {"everywhere": False, "labels": "a=b"}):
        with pytest.raises(InvalidSpec, match="needs no labels"):
            require_one_place([WantedResources(COPY, "a")], **how)  # type: ignore[arg-type]
