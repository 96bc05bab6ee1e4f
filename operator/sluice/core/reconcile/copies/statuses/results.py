"""Split the results of a scope's streams into ConfigMaps of bounded size."""

from __future__ import annotations

import hashlib
from typing import TYPE_CHECKING, Final

from sluice.core.values import text

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from sluice.core.scope.scope import StreamResult

MOST_IN_SHARD: Final = 500
"""The most streams in one ConfigMap."""

MOST_SHARD_BYTES: Final = 640 << 10
"""The most bytes of results in one ConfigMap, as JSON; it takes 1 MiB."""


def results_name(name: str, uid: str, number: int) -> str:
    """Return the name of a copy's ConfigMap of results; `number` counts from 0."""
    return f"{name[:40].rstrip('-.')}-results-{text.short_hash(uid)}-{number}"


def results_hash(results: Iterable[StreamResult]) -> str:
    """Return the SHA-256 over the results in their order, in hexadecimal digits."""
    whole = hashlib.sha256()
    for result in results:
        whole.update(result.model_dump_json().encode() + b"\n")
    return whole.hexdigest()


def shards(results: Sequence[StreamResult]) -> tuple[tuple[StreamResult, ...], ...]:
    """Split the results, in their order, into groups that fit into one ConfigMap each.

    There is always at least one group: a copy of no streams publishes an empty result.
    """
    found: list[tuple[StreamResult, ...]] = []
    shard: list[StreamResult] = []
    size = 0
    for result in results:
        length = len(result.model_dump_json().encode())
        if shard and (len(shard) == MOST_IN_SHARD or size + length > MOST_SHARD_BYTES):
            found.append(tuple(shard))
            shard, size = [], 0
        shard.append(result)
        size += length
    return (*found, tuple(shard))
