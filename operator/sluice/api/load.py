"""Read resources from YAML, with errors that name the document, the field and the remedy."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Final

import yaml
from pydantic import ValidationError
from pydantic.alias_generators import to_camel

from sluice.api.fields.common import GROUP, VERSION, Resource
from sluice.api.kinds.scopecopy import ScopeCopy
from sluice.api.kinds.streamarchive import StreamArchive
from sluice.api.kinds.streamcopy import StreamCopy
from sluice.api.kinds.streamquery import StreamQuery
from sluice.api.kinds.streamstore import StreamStore
from sluice.api.registry import DRIVEN, KINDS
from sluice.errors import InvalidSpec

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from pydantic_core import ErrorDetails

    from sluice.api.fields.common import StoreRef

_MODELS: Final = {kind.name: kind.model for kind in KINDS}
"""The models of the kinds that a file may hold. EphemeralStreams are checked and then ignored:
only the operator handles them.
"""

_NAMES: Final = [kind.name for kind in DRIVEN]


@dataclass(slots=True)
class Resources:
    """The resources of a file.

    Attributes:
        order: the StreamCopies, ScopeCopies and StreamArchives, in the file's order.
        queries: the StreamQueries, in the file's order.
        stores: the StreamStores, by (namespace, name).
    """

    order: list[StreamCopy | ScopeCopy | StreamArchive] = field(default_factory=list)
    queries: list[StreamQuery] = field(default_factory=list)
    stores: dict[tuple[str, str], StreamStore] = field(default_factory=dict)

    @property
    def copies(self) -> list[StreamCopy]:
        """The copies of streams."""
        return [copy for copy in self.order if isinstance(copy, StreamCopy)]

    @property
    def scopes(self) -> list[ScopeCopy]:
        """The copies of whole scopes."""
        return [copy for copy in self.order if isinstance(copy, ScopeCopy)]

    @property
    def archives(self) -> list[StreamArchive]:
        """The archives."""
        return [archive for archive in self.order if isinstance(archive, StreamArchive)]

    def store(
        self,
        copy: StreamCopy | ScopeCopy | StreamArchive | StreamQuery,
        ref: StoreRef,
        *,
        field: str,
    ) -> StreamStore:
        """Return the StreamStore that a copy, an archive or a query names in a field.

        Raises:
            InvalidSpec: the file has no such StreamStore.
        """
        namespace = ref.namespace or copy.metadata.namespace
        found = self.stores.get((namespace, ref.name))
        if found is None:
            raise InvalidSpec(
                f"{copy.kind} {copy.metadata.name!r} names StreamStore {ref.name!r}, which is not "
                f"in the file (namespace {namespace!r})",
                field=field,
                remedy="Add the StreamStore to the file, or correct the name.",
            )
        return found


def load(text: str, *, copies: bool = True) -> Resources:
    """Read Sluice's resources from a YAML text of one or more documents. Skip other API groups.

    Args:
        text: the text.
        copies: whether the text must have a StreamCopy, a ScopeCopy or a StreamArchive.

    Raises:
        InvalidSpec: the text is no YAML, a resource has a wrong, missing or unknown field, two
            resources have the same name, or a copy or archive is required and missing.
    """
    try:
        documents = list(yaml.safe_load_all(text))
    except (yaml.YAMLError, ValueError, RecursionError) as error:
        # ValueError: a date of month 13. RecursionError: nesting beyond reason.
        raise InvalidSpec(f"not YAML: {error}", remedy="Correct the file's syntax.") from error
    resources = Resources()
    for number, document in enumerate(documents, start=1):
        if document is not None:
            _add(resources, document, number)
    if copies and not resources.order:
        raise InvalidSpec(
            f"there is no {', no '.join(_NAMES[:-1])} and no {_NAMES[-1]} in the file",
            field="kind",
            remedy=f"Write a document with apiVersion {GROUP}/{VERSION} and kind "
            f"{', '.join(_NAMES[:-1])} or {_NAMES[-1]}.",
        )
    return resources


def _add(resources: Resources, document: Any, number: int) -> None:
    """Check one document, and add its resource."""
    where = f"document {number}"
    if not isinstance(document, dict):
        raise InvalidSpec(f"{where} is not a mapping", remedy="A resource begins with apiVersion.")
    group = str(document.get("apiVersion", "")).partition("/")[0]
    if group != GROUP:
        return
    kind = document.get("kind")
    model = _MODELS.get(str(kind))
    if model is None:
        raise InvalidSpec(
            f"{where} has the unknown kind {kind!r}",
            field="kind",
            remedy=f"Known kinds are {', '.join(sorted(_MODELS))}.",
        )
    try:
        resource = model.model_validate(document)
    except ValidationError as error:
        raise invalid(error, f"{kind} in {where}") from error
    _place(resources, resource)


def _place(resources: Resources, resource: Resource) -> None:
    """Add a resource; raise InvalidSpec if its name is taken."""
    if isinstance(resource, StreamStore):
        key = (resource.metadata.namespace, resource.metadata.name)
        if key in resources.stores:
            raise _twice(resource)
        resources.stores[key] = resource
    elif isinstance(resource, StreamQuery):
        if resource.metadata in [one.metadata for one in resources.queries]:
            raise _twice(resource)
        resources.queries.append(resource)
    elif isinstance(resource, StreamCopy | ScopeCopy | StreamArchive):
        if (resource.kind, resource.metadata) in [
            (one.kind, one.metadata) for one in resources.order
        ]:
            raise _twice(resource)
        resources.order.append(resource)


def _twice(resource: Resource) -> InvalidSpec:
    """Give the error for a second resource of the same kind, namespace and name."""
    many = f"{type(resource).__name__}s".replace("ys", "ies")
    return InvalidSpec(f"there are two {many} {resource.metadata.name!r}", field="metadata.name")


def invalid(error: ValidationError, where: str) -> InvalidSpec:
    """Give one error with all mistakes of a resource, the first field leading.

    Args:
        error: pydantic's.
        where: the resource, to name in the message.
    """
    found = error.errors(include_url=False, include_input=False)
    fields = [_path(_as_written(problem)) for problem in found]
    messages = [
        "there is no such field"
        if problem["type"] == "extra_forbidden"
        else problem["msg"].removeprefix("Value error, ")
        for problem in found
    ]
    more = zip(fields[1:], messages[1:], strict=True)
    return InvalidSpec(
        f"{messages[0]} ({where})" + "".join(f"; {name}: {message}" for name, message in more),
        field=fields[0],
    )


def _as_written(problem: ErrorDetails) -> Iterator[str | int]:
    """Yield the parts of a mistake's place, as users write them.

    When a validator of ours refuses a field that is left out, pydantic gives its Python name.
    """
    ours = problem["type"] == "value_error"
    for place in problem["loc"]:
        yield to_camel(place) if ours and isinstance(place, str) and "_" in place else place


def _path(places: Iterable[str | int]) -> str:
    """Write the path of a field as Kubernetes does: `spec.sources[1].stream`."""
    parts = [f"[{place}]" if isinstance(place, int) else f".{place}" for place in places]
    return "".join(parts).removeprefix(".")
