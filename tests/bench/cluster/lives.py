"""The lives of many EphemeralStreams, from the API server's watch, the log and the metrics. Pure.

A phase is a mean over the resources, so that phases add up.
"""

from __future__ import annotations

import json
from contextlib import suppress
from datetime import datetime
from statistics import fmean
from typing import TYPE_CHECKING, Final, NamedTuple

from prometheus_client.parser import text_string_to_metric_families

from bench.cluster.timeline import is_ready

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

    from bench.cluster.timeline import Object

READY: Final = "Ready"
DELETED: Final = "deletionTimestamp"
GONE: Final = "gone"

_SAID: Final = "said"
_RELEASED: Final = "released"

Samples = dict[tuple[str, tuple[tuple[str, str], ...]], float]


class Life(NamedTuple):
    """The moments of a resource, in seconds since 1970 by this machine's clock."""

    deleted: float
    said: float
    released: float
    gone: float


def note(known: dict[str, dict[str, float]], at: float, word: str, body: Object) -> None:
    """Record a line of the watch.

    Args:
        known: by name, the time when each moment was first seen.
        at: time when the line came.
        word: ADDED, MODIFIED or DELETED.
        body: the EphemeralStream.
    """
    mine = known.setdefault(body["metadata"]["name"], {})
    if is_ready(body):
        mine.setdefault(READY, at)
    if "deletionTimestamp" in body["metadata"]:
        mine.setdefault(DELETED, at)
    if word == "DELETED":
        mine.setdefault(GONE, at)


def logged(log: str) -> dict[str, dict[str, float]]:
    """Return by name when the release began and ended, from the operator's log."""
    found: dict[str, dict[str, float]] = {}
    for text in log.splitlines():
        with suppress(ValueError, KeyError, TypeError):
            line = json.loads(text)
            kind, _, name = line["resource"].split("/")
            if kind != "EphemeralStream":
                continue
            at = datetime.fromisoformat(line["timestamp"]).timestamp()
            if line["event"] == "released":
                found.setdefault(name, {}).setdefault(_RELEASED, at)
            elif line["event"] == "state" and line["reason"] == "Deleting":
                found.setdefault(name, {}).setdefault(_SAID, at)
    return found


def lives(
    watched: Mapping[str, Mapping[str, float]], log: Mapping[str, Mapping[str, float]]
) -> list[Life]:
    """Return the lives of which all moments were seen."""
    found = []
    for name, seen in watched.items():
        said = log.get(name, {})
        with suppress(KeyError):
            found.append(Life(seen[DELETED], said[_SAID], said[_RELEASED], seen[GONE]))
    return found


def percentile(values: Iterable[float], share: float) -> float:
    """Return the smallest value that this share of the values does not exceed."""
    ordered = sorted(values)
    return ordered[max(0, -int(-share * len(ordered) // 1) - 1)]


def samples(text: str) -> Samples:
    """Return the operator's metrics: values by name and labels."""
    return {
        (sample.name, tuple(sorted(sample.labels.items()))): sample.value
        for family in text_string_to_metric_families(text)
        for sample in family.samples
    }


def growth(before: Samples, after: Samples) -> Samples:
    """Return the growth of each value that has changed."""
    grown = {key: value - before.get(key, 0.0) for key, value in after.items()}
    return {key: value for key, value in grown.items() if value}


def calls(grown: Samples, count: int) -> tuple[dict[str, float], dict[str, float]]:
    """Return calls per resource: to the API server by verb and resource, and to the controller."""
    api, store = {}, {}
    for (name, pairs), value in sorted(grown.items()):
        labels = dict(pairs)
        if name == "sluice_api_calls_total":
            api[f"{labels['verb']} {labels['resource']}"] = value / count
        elif name == "sluice_store_call_seconds_count":
            store[labels["call"]] = value / count
    return api, store


def release_phases(all_of_them: Sequence[Life], grown: Samples) -> dict[str, float]:
    """Return the mean seconds of each phase, from deletionTimestamp until the resource is gone.

    Args:
        all_of_them: the lives of the resources.
        grown: growth of the operator's metrics meanwhile.
    """

    def mean(name: str, **labels: str) -> float:
        pairs = tuple(sorted(labels.items()))
        number = grown.get((f"{name}_count", pairs), 0.0)
        return grown.get((f"{name}_sum", pairs), 0.0) / number if number else 0.0

    waited = mean("sluice_queue_wait_seconds", lane="deletion")
    seal = mean("sluice_store_call_seconds", call="sealStream")
    delete = mean("sluice_store_call_seconds", call="deleteStream")
    begun = fmean(life.said - life.deleted for life in all_of_them)
    worked = fmean(life.released - life.said for life in all_of_them)
    return {
        "a worker takes it: the lane's queue": waited,
        "the status says so, and an event": max(0.0, begun - waited),
        "the stream is sealed": seal,
        "the stream is deleted": delete,
        "other questions to the store": max(0.0, worked - seal - delete),
        "the finalizer is off, and the resource gone": fmean(
            life.gone - life.released for life in all_of_them
        ),
    }
