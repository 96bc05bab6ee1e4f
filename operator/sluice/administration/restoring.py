"""Make the resource that restores an archive, or a folder of archives, in a cluster."""

from __future__ import annotations

import json
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final

from pydantic import ValidationError

from sluice.administration.naming import Named, missing
from sluice.api.fields.common import API_VERSION
from sluice.api.kinds.scopecopy import ScopeCopy
from sluice.api.kinds.streamcopy import StreamCopy
from sluice.api.load import invalid
from sluice.api.registry import KINDS
from sluice.core.values.text import short_hash
from sluice.errors import InvalidSpec
from sluice.kube.api.kinds import STREAM_STORE
from sluice.kube.api.responses import Refused

if TYPE_CHECKING:
    from sluice.kube.api.client import Api
    from sluice.kube.api.kinds import Object

RESTORED: Final = tuple(kind for kind in KINDS if kind.name in {"StreamArchive", "ScopeCopy"})
"""The kinds that make archives."""

_MOST_NAME: Final = 40
"""Characters of the archive's name in the name of its restore, which may have 63."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Restore:
    """What to restore, and where to.

    Attributes:
        store: the name of the StreamStore to restore to.
        scope: the scope to restore to.
        stream: the stream to restore to; None for a scope.
        run: the number of a run; None for the last one.
        until: a time; None for the last run.
        options: further fields of the spec.
        in_target: further fields of the spec's target.
        name: the name of the resource; None for one that follows from all of this.
    """

    store: str
    scope: str
    stream: str | None
    run: int | None
    until: str | None
    options: Object
    in_target: Object
    name: str | None = None


def restore_of(archive: Named, body: Object, wish: Restore) -> Object:
    """Return the StreamCopy that restores a StreamArchive, or the ScopeCopy that restores a scope.

    The same wish gives the same resource, so that a command may be repeated.

    Args:
        archive: the resource that made the archive.
        body: the resource, as the API server has it.
        wish: what to restore, and where to.

    Raises:
        InvalidSpec: the resource makes no archive, or the wish is not one for it.
    """
    place = _place(archive, body)
    model: type[StreamCopy | ScopeCopy] = StreamCopy
    target: Object = {"storeRef": {"name": wish.store}, "scope": wish.scope}
    if archive.spec.name == "ScopeCopy":
        model = ScopeCopy
    if (wish.stream is None) == (model is StreamCopy):
        form = "STORE:SCOPE/STREAM" if model is StreamCopy else "STORE:SCOPE"
        raise InvalidSpec(
            f"{archive} is restored to a {'stream' if model is StreamCopy else 'scope'}",
            field="--to",
            remedy=f"Write {form}, with the name of a StreamStore in the archive's namespace.",
        )
    scheduled = (body.get("spec") or {}).get("schedule") is not None
    if wish.run is not None and model is ScopeCopy and not scheduled:
        raise InvalidSpec(
            "only a ScopeCopy with a schedule numbers runs of the whole scope",
            field="--run",
            remedy="Take --until, which is a time for all of its archives.",
        )
    if wish.stream is not None:
        target["stream"] = wish.stream
    source = place | {
        key: value for key, value in (("run", wish.run), ("until", wish.until)) if value is not None
    }
    spec = {"source": {"archive": source}, "target": target | wish.in_target, **wish.options}
    digest = short_hash(json.dumps(spec, sort_keys=True))
    name = wish.name or f"restore-{archive.name[:_MOST_NAME].rstrip('-.')}-{digest}"
    made: Object = {
        "apiVersion": API_VERSION,
        "kind": model.__name__,
        "metadata": {"name": name, "namespace": archive.namespace},
        "spec": spec,
    }
    try:
        model.model_validate(made)
    except ValidationError as error:
        raise invalid(error, f"the {model.__name__} that restores {archive}") from error
    return made


def _place(archive: Named, body: Object) -> Object:
    """Return the StreamStore and the path of a resource's archives."""
    spec: Object = body.get("spec") or {}
    if archive.spec.name == "StreamArchive":
        place: Any = spec.get("destination")
    else:
        place = (spec.get("target") or {}).get("archive")
    if not place:
        raise InvalidSpec(
            f"{archive} copies to a scope, and makes no archives",
            field="NAME",
            remedy="Name a StreamArchive, or a ScopeCopy whose spec.target has archive.",
        )
    return {"storeRef": place.get("storeRef"), "path": place.get("path")}


async def require_store(api: Api, namespace: str, name: str) -> None:
    """Check that a StreamStore exists. Users who may not read it are not refused.

    Raises:
        InvalidSpec: there is no such StreamStore.
        ApiUnavailable: the API server cannot be asked.
    """
    (spec,) = (kind for kind in KINDS if kind.name == STREAM_STORE.name)
    try:
        found = await api.get(STREAM_STORE, namespace, name)
    except Refused as error:
        if not error.forbidden:
            raise
        return
    if found is None:
        absent = await missing(api, [spec], namespace, name)
        absent.field = "--to"
        raise absent


async def create(api: Api, made: Object) -> tuple[Named, Object, bool]:
    """Create the resource of a restore, if it does not exist.

    Returns:
        The resource, its body, and whether it is new.

    Raises:
        InvalidSpec: another resource has the name.
        ApiUnavailable: the API server cannot be asked, or refuses.
    """
    spec = next(kind for kind in KINDS if kind.name == made["kind"])
    meta = made["metadata"]
    resource = Named(spec, meta["namespace"], meta["name"])
    created = await api.create(resource.kind, resource.namespace, made)
    if created is not None:
        return resource, created, True
    found = await api.get(resource.kind, resource.namespace, resource.name)
    if found is None or not _is_same(found, made):
        raise InvalidSpec(
            f"{resource} exists, and is not this restore, or was deleted at this moment",
            field="--name",
            remedy="Give the restore another name: --name NAME.",
        )
    return resource, found, False


def _is_same(found: Object, made: Object) -> bool:
    """Tell whether a resource restores the same to the same place."""
    model = StreamCopy if made["kind"] == "StreamCopy" else ScopeCopy
    try:
        mine, other = model.model_validate(made), model.model_validate(_written(found))
    except ValidationError:
        return False
    return mine.spec.source == other.spec.source and mine.spec.target == other.spec.target


def _written(body: Object) -> Object:
    """Return the part of a resource that a user writes."""
    meta = {key: body["metadata"][key] for key in ("name", "namespace")}
    return {key: body[key] for key in ("apiVersion", "kind", "spec")} | {"metadata": meta}
