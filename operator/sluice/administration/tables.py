"""Read the tables of `kubectl get`, whose columns the API server makes, and the objects in them."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from sluice.administration.naming import Named, missing
from sluice.kube.api.kinds import OWN
from sluice.kube.api.responses import Refused

if TYPE_CHECKING:
    from collections.abc import Iterable

    from sluice.administration.naming import WantedResources
    from sluice.api.registry import KindSpec
    from sluice.kube.api.client import Api
    from sluice.kube.api.kinds import Object

_NOT_FOUND = 404


@dataclass(frozen=True, slots=True)
class Heading:
    """The heading of a column.

    Attributes:
        name: its text.
        wide: whether only wide tables have the column.
    """

    name: str
    wide: bool


@dataclass(frozen=True, slots=True)
class ResourceRow:
    """A resource in a table.

    Attributes:
        resource: the resource.
        cells: its texts, one for each heading.
    """

    resource: Named
    cells: tuple[str, ...]


@dataclass(slots=True)
class Table:
    """The resources of a kind.

    Attributes:
        spec: the record of the kind.
        headings: the columns, the name first.
        rows: the resources, sorted as the API server has them.
    """

    spec: KindSpec
    headings: tuple[Heading, ...] = ()
    rows: list[ResourceRow] = field(default_factory=list)


async def tables(
    api: Api, wanted: Iterable[WantedResources], namespace: str | None, *, labels: str | None
) -> list[Table]:
    """Read the tables of resources, one for each kind, in the order of `wanted`.

    Args:
        api: the API server.
        wanted: the resources.
        namespace: the namespace; None for all.
        labels: a label selector, for resources without a name.

    Raises:
        InvalidSpec: a named resource does not exist.
        ApiUnavailable: the API server cannot be asked, or refuses.
    """
    found: dict[str, Table] = {}
    for one in wanted:
        table = found.setdefault(one.spec.name, Table(one.spec))
        more = ""
        while True:
            try:
                part = await api.table(
                    OWN[one.spec.name], namespace, more, labels=labels, name=one.name
                )
            except Refused as error:
                if one.name is None or error.status != _NOT_FOUND or error.why != "NotFound":
                    raise
                raise await missing(api, [one.spec], namespace, one.name) from error
            table.headings = _headings(part) or table.headings
            table.rows += _rows(one.spec, part)
            more = str((part.get("metadata") or {}).get("continue") or "")
            if not more:
                break
    return [*found.values()]


def _headings(part: Object) -> tuple[Heading, ...]:
    columns = part.get("columnDefinitions") or []
    return tuple(Heading(str(one["name"]), wide=bool(one.get("priority"))) for one in columns)


def _rows(spec: KindSpec, part: Object) -> list[ResourceRow]:
    found = []
    for row in part.get("rows") or []:
        meta = row["object"]["metadata"]
        resource = Named(spec, str(meta["namespace"]), str(meta["name"]))
        cells = ("" if cell is None else str(cell) for cell in row["cells"])
        found.append(ResourceRow(resource, tuple(cells)))
    return found


async def bodies(
    api: Api,
    wanted: Iterable[WantedResources],
    namespace: str | None,
    *,
    labels: str | None = None,
    strict: bool = True,
    most: int | None = None,
) -> list[tuple[Named, Object]]:
    """Read whole resources, in the order of `wanted`. See `tables`.

    Unless it is `strict`, named resources that do not exist are left out. Reading ends with
    the page that reaches `most` resources.
    """
    found: list[tuple[Named, Object]] = []
    for one in wanted:
        kind = OWN[one.spec.name]
        if one.name is not None and namespace is not None:
            body = await api.get(kind, namespace, one.name)
            if body is not None:
                found.append((Named(one.spec, namespace, one.name), body))
            elif strict:
                raise await missing(api, [one.spec], namespace, one.name)
            continue
        async for page in api.pages(kind, namespace, labels=labels):
            for body in page:
                meta = body["metadata"]
                found.append((Named(one.spec, meta["namespace"], meta["name"]), body))
            if most is not None and len(found) >= most:
                return found
    return found
