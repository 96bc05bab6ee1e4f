"""Find resources by the names that people type: NAME, KIND/NAME, or KIND and NAMEs."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from sluice.api.fields.common import GROUP
from sluice.api.registry import KINDS
from sluice.core.values.text import nearest
from sluice.errors import ApiUnavailable, InvalidSpec
from sluice.kube.api.kinds import OWN
from sluice.kube.api.responses import Refused

if TYPE_CHECKING:
    from collections.abc import Sequence

    from sluice.api.registry import KindSpec
    from sluice.kube.api.client import Api
    from sluice.kube.api.kinds import Kind

ALL: Final = "all"
"""The word for all kinds."""


@dataclass(frozen=True, slots=True)
class Named:
    """A resource in a cluster.

    Attributes:
        spec: the record of its kind.
        namespace: its namespace.
        name: its name.
    """

    spec: KindSpec
    namespace: str
    name: str

    def __str__(self) -> str:
        """Return the resource as a user writes it."""
        return f"{self.spec.name.lower()}/{self.name}"

    @property
    def full(self) -> str:
        """The resource as `kubectl -o name` prints it."""
        return f"{self.spec.name.lower()}.{GROUP}/{self.name}"

    @property
    def kind(self) -> Kind:
        """The kind, for calls of the API."""
        return OWN[self.spec.name]


@dataclass(frozen=True, slots=True)
class WantedResources:
    """Resources that a user asks for.

    Attributes:
        spec: the record of their kind.
        name: the name of the only one; None for all of the kind.
    """

    spec: KindSpec
    name: str | None = None


def words_of(kind: KindSpec) -> tuple[str, ...]:
    """Return all names of a kind, as kubectl knows them."""
    single = kind.name.lower()
    return single, kind.plural, kind.short, f"{single}.{GROUP}", f"{kind.plural}.{GROUP}"


def kinds_of(word: str, kinds: Sequence[KindSpec] = KINDS) -> list[KindSpec]:
    """Return the kinds that a word names: `all`, a kind, or several with commas between them.

    Raises:
        InvalidSpec: a name is no kind.
    """
    if word.lower() == ALL:
        return [*kinds]
    return [_kind_of(part, kinds) for part in word.split(",")]


def _kind_of(word: str, kinds: Sequence[KindSpec]) -> KindSpec:
    for kind in kinds:
        if word.lower() in words_of(kind):
            return kind
    near = nearest(word.lower(), (one for kind in kinds for one in words_of(kind)))
    known = ", ".join(kind.name.lower() for kind in kinds)
    raise InvalidSpec(
        f"{word!r} is no kind that this command knows",
        field="KIND",
        remedy=f"Did you mean {near}? Kinds are {known}." if near else f"Take one of {known}.",
    )


def wanted(words: Sequence[str]) -> list[WantedResources]:
    """Read what to show, in kubectl's way: nothing, KIND[,KIND] [NAME...], or KIND/NAME...

    Raises:
        InvalidSpec: a name is no kind, or the words are of another form.
    """
    if not words:
        return [WantedResources(kind) for kind in KINDS]
    if any("/" in word for word in words):
        return [_one(word) for word in words]
    first, *names = words
    kinds = kinds_of(first)
    if not names:
        return [WantedResources(kind) for kind in kinds]
    return [WantedResources(kind, name) for kind in kinds for name in names]


def require_one_place(
    wanted: Sequence[WantedResources], *, everywhere: bool, labels: str | None
) -> None:
    """Check that resources with names are looked for in one namespace, and without labels.

    Raises:
        InvalidSpec: they are not.
    """
    if any(one.name is not None for one in wanted) and (everywhere or labels is not None):
        raise InvalidSpec(
            "a resource with a name is in one namespace, and needs no labels",
            field="NAME",
            remedy="Leave out the name, or --all-namespaces and --selector.",
        )


def _one(word: str) -> WantedResources:
    kind, _, name = word.rpartition("/")
    if not kind or not name:
        raise InvalidSpec(
            f"{word!r} is no KIND/NAME",
            field="NAME",
            remedy="Write KIND/NAME for each of them, or KIND NAME NAME.",
        )
    return WantedResources(_kind_of(kind, KINDS), name)


async def find(api: Api, namespace: str, text: str, *, kinds: Sequence[KindSpec] = KINDS) -> Named:
    """Find a resource by `NAME`, or by `KIND/NAME` with any name of the kind.

    Args:
        api: the API server.
        namespace: the namespace.
        text: the name as it was typed.
        kinds: the kinds that are meant.

    Raises:
        InvalidSpec: there is no such resource, or a name without a kind means several.
        ApiUnavailable: the API server cannot be asked, or refuses.
    """
    word, slash, name = text.rpartition("/")
    meant = [_kind_of(word, kinds)] if slash else kinds
    found, forbidden = [], None
    for kind in meant:
        try:
            if await api.get(OWN[kind.name], namespace, name) is not None:
                found.append(Named(kind, namespace, name))
        except Refused as error:
            if not error.forbidden:
                raise
            forbidden = error  # a user may have rights on some kinds only
    if not found and forbidden is not None:
        raise forbidden
    if not found:
        raise await missing(api, meant, namespace, name)
    if len(found) > 1:
        raise InvalidSpec(
            f"{name!r} may be {' or '.join(map(str, found))}",
            field="NAME",
            remedy="Write the kind before the name.",
        )
    return found[0]


async def missing(
    api: Api, kinds: Sequence[KindSpec], namespace: str | None, name: str
) -> InvalidSpec:
    """Return the error about a resource that is not there, with a name that is like it.

    Args:
        api: the API server.
        kinds: the kinds that were looked through.
        namespace: the namespace; None for all.
        name: the name.
    """
    names = [known for kind in kinds for known in await names_of(api, kind, namespace)]
    near = nearest(name, names)
    what = kinds[0].name if len(kinds) == 1 else "resource"
    where = "any namespace" if namespace is None else f"namespace {namespace!r}"
    return InvalidSpec(
        f"there is no {what} {name!r} in {where}",
        field="NAME",
        remedy=f"Did you mean {near}? " * bool(near)
        + "sluice get --all-namespaces shows names; --namespace chooses another namespace.",
    )


async def names_of(api: Api, kind: KindSpec, namespace: str | None) -> list[str]:
    """Return names of a kind's resources, some hundred at most; none if they cannot be listed."""
    try:
        found = await api.table(OWN[kind.name], namespace)
    except ApiUnavailable:
        return []  # they only help to complete or correct a name
    rows = found.get("rows") or []
    return [str(row["object"]["metadata"]["name"]) for row in rows]
