"""Publish the result of each stream of a ScopeCopy in ConfigMaps, for users and programs.

There may be thousands of streams, so there are several ConfigMaps. Their names follow from the copy
and a number. Each has the number of ConfigMaps and the hash of all results. So a list that was
written only in part is not taken for a complete one.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from pydantic import TypeAdapter, ValidationError

from sluice.api.fields.common import GROUP
from sluice.core.reconcile.copies.statuses.results import (
    MOST_IN_SHARD,
    results_hash,
    results_name,
    shards,
)
from sluice.core.scope.scope import StreamResult
from sluice.kube.api.kinds import CONFIG_MAP

if TYPE_CHECKING:
    from collections.abc import Sequence

    from sluice.kube.api.client import Api
    from sluice.kube.api.kinds import Object
    from sluice.kube.api.names import Child

RESULTS_KEY: Final = "streams.json"
HASH_ANNOTATION: Final = f"{GROUP}/results-hash"
COUNT_ANNOTATION: Final = f"{GROUP}/results-count"

_MOST: Final = 100
"""The most ConfigMaps that are read: more than any copy has.

A user may have forged the ConfigMaps, and all results are in memory at once. So both their number
and the number of streams in each are limited.
"""

_STREAMS: Final = TypeAdapter(tuple[StreamResult, ...])


def config_maps(child: Child, results: Sequence[StreamResult]) -> list[Object]:
    """Build the ConfigMaps that publish results."""
    parts = shards(results)
    notes = {HASH_ANNOTATION: results_hash(results), COUNT_ANNOTATION: str(len(parts))}
    return [
        {
            "apiVersion": "v1",
            "kind": "ConfigMap",
            "metadata": child.metadata(results_name(child.name, child.uid, number), "results")
            | {"annotations": dict(notes)},
            "data": {RESULTS_KEY: _STREAMS.dump_json(part, exclude_none=True).decode()},
        }
        for number, part in enumerate(parts)
    ]


async def read(api: Api, child: Child) -> str | None:
    """Return the hash of the published results; None if they are missing or incomplete.

    The hash is made of the results, not read from the annotation. So results that a user has edited
    are written again.

    Raises:
        ApiUnavailable: the API server could not be asked.
    """
    found = await published(api, child)
    return None if found is None else results_hash(found)


async def published(api: Api, child: Child) -> tuple[StreamResult, ...] | None:
    """Return the published results; None if they are missing or incomplete.

    Raises:
        ApiUnavailable: the API server could not be asked.
    """
    found: list[StreamResult] = []
    number, count, said = 0, 1, None
    while number < count:
        name = results_name(child.name, child.uid, number)
        body = await api.get(CONFIG_MAP, child.namespace, name) or {}
        notes = _notes(body)
        if number == 0:
            count, said = _count(body), notes.get(HASH_ANNOTATION)
        if notes.get(HASH_ANNOTATION) != said or _count(body) != count:
            return None
        try:
            part = _STREAMS.validate_json((body.get("data") or {}).get(RESULTS_KEY, ""))
        except ValidationError:
            return None
        if len(part) > MOST_IN_SHARD:
            return None
        found += part
        number += 1
    return tuple(found) if said is not None and said == results_hash(found) else None


async def write(api: Api, child: Child, results: Sequence[StreamResult]) -> None:
    """Publish results in place of earlier ones.

    Raises:
        ApiUnavailable: the API server refuses.
    """
    bodies = config_maps(child, results)
    name = results_name(child.name, child.uid, 0)
    before = _count(await api.get(CONFIG_MAP, child.namespace, name) or {})
    # The surplus ConfigMaps of a longer list go first, while the first ConfigMap still has their
    # number: an operator that is killed in between finds them again.
    for number in range(len(bodies), before):
        name = results_name(child.name, child.uid, number)
        await api.delete(CONFIG_MAP, child.namespace, name)
    for body in bodies:
        await api.apply(CONFIG_MAP, child.namespace, body)


def _notes(body: Object) -> dict[str, str]:
    return body.get("metadata", {}).get("annotations") or {}


def _count(body: Object) -> int:
    """Return the number of ConfigMaps as the annotation of one has it; 1 if it has none."""
    said = _notes(body).get(COUNT_ANNOTATION, "")
    return min(int(said), _MOST) if said.isdecimal() and said.isascii() and int(said) else 1
