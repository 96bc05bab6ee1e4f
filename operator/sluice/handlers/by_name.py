"""Give resources metrics of their own, by name, as they are when Prometheus asks.

A user who may create resources could make thousands of series. So their number is bounded, and
namespaces share it: one that has many resources hides none of another namespace.
"""

from __future__ import annotations

from collections import defaultdict
from datetime import datetime
from functools import lru_cache
from typing import TYPE_CHECKING, Any, Final

from pydantic import ValidationError

from sluice.api.fields.schedule import Schedule
from sluice.core.pace.sharing import dealt
from sluice.core.values.schedule import following
from sluice.errors import InvalidSpec
from sluice.handlers.states import count, says, state_of
from sluice.kube.api.kinds import (
    COPIES,
    OWN,
    SCOPE_COPY,
    STREAM_ARCHIVE,
    STREAM_COPY,
    STREAM_QUERY,
)
from sluice.kube.api.objects import is_deleting, is_drilled, is_followed, is_scheduled

if TYPE_CHECKING:
    from collections.abc import Iterable

    from sluice.kube.api.cache import Mirror
    from sluice.kube.api.kinds import Kind, Object
    from sluice.kube.loop.settings import OperatorSettings
    from sluice.metrics import Metrics

_STATES: Final = {
    "Following": "streams",
    "CatchingUp": "coming",
    "Failed": "failed",
    "Gone": "gone",
}
"""The states of a scope's streams, by the field of `status.follow` that counts them."""

_QUANTILES: Final = {"0.5": "p50Milliseconds", "0.99": "p99Milliseconds"}
"""The quantiles of the time of a query's batches, by the field of the status that has each."""

_KNOWN: Final = 16_384
"""Times that are kept: each is computed once for a run, and not at each scrape."""


class ByName:
    """The metrics that have a series for each resource.

    Args:
        mirror: the objects that the watches have shown.
        metrics: gets the series.
        settings: how many resources get series, and of which kinds.
    """

    def __init__(self, mirror: Mirror, metrics: Metrics, settings: OperatorSettings) -> None:
        self._mirror = mirror
        self._metrics = metrics
        self._served = settings.served
        self._settings = settings.metrics

    def update(self) -> None:
        """Replace all series. Those of deleted resources go. Count the resources by state, too."""
        count(self._mirror, self._metrics)
        self._schedules()
        self._drills()
        self._followed()
        self._queries()
        if self._settings.resources:
            self._resources()

    def _schedules(self) -> None:
        scheduled = [
            (kind, body)
            for kind in COPIES.values()
            for body in self._mirror.where(kind, is_scheduled, value=True)
            if not is_deleting(body)
        ]
        created: list[tuple[tuple[str, ...], float]] = []
        succeeded, due = created[:], created[:]
        for kind, body in self._shared("schedules", scheduled):
            labels = _labels(kind, body)
            made = _instant(body["metadata"].get("creationTimestamp"))
            good = _instant((body.get("status") or {}).get("lastSuccessTime"))
            if made is not None:
                created.append((labels, made.timestamp()))
            if good is not None:
                succeeded.append((labels, good.timestamp()))
            next_due = _next_due(body["spec"], body["spec"], made, good)
            if next_due is not None:
                due.append((labels, next_due.timestamp()))
        self._metrics.replace("sluice_schedule_created_timestamp_seconds", created)
        self._metrics.replace("sluice_schedule_last_success_timestamp_seconds", succeeded)
        self._metrics.replace("sluice_schedule_due_timestamp_seconds", due)

    def _drills(self) -> None:
        drilled = [
            (STREAM_ARCHIVE, body)
            for body in self._mirror.where(STREAM_ARCHIVE, is_drilled, value=True)
            if not is_deleting(body)
        ]
        succeeded: list[tuple[tuple[str, ...], float]] = []
        failed, due = succeeded[:], succeeded[:]
        for kind, body in self._shared("drills", drilled):
            labels = _labels(kind, body)
            drill = (body.get("status") or {}).get("drill") or {}
            since, good = _instant(drill.get("since")), _instant(drill.get("lastSuccessTime"))
            if good is not None:
                succeeded.append((labels, good.timestamp()))
            failed.append((labels, float(says(body, "RestoreVerified", "False"))))
            next_due = _next_due(body["spec"], body["spec"]["verify"], since, good)
            if next_due is not None:
                due.append((labels, next_due.timestamp()))
        self._metrics.replace("sluice_drill_last_success_timestamp_seconds", succeeded)
        self._metrics.replace("sluice_drill_failed", failed)
        self._metrics.replace("sluice_drill_due_timestamp_seconds", due)

    def _followed(self) -> None:
        followed = [
            (kind, body)
            for kind in (STREAM_COPY, SCOPE_COPY)
            for body in self._mirror.where(kind, is_followed, value=True)
            if not (is_deleting(body) or body["spec"].get("suspend"))
            and not says(body, "Succeeded", "True")
        ]
        size: list[tuple[tuple[str, ...], float]] = []
        age, proved, streams = size[:], size[:], size[:]
        for kind, body in self._shared("followed", followed):
            labels, follow = _labels(kind, body), body["status"]["follow"]
            # The API server checks the types. Fields may be absent.
            size.append((labels, float(follow.get("lagBytes", 0))))
            if "lagSeconds" in follow:
                age.append((labels, float(follow["lagSeconds"])))
            to = _instant(follow.get("provedTo"))
            if to is not None:
                proved.append((labels, to.timestamp()))
            if kind == SCOPE_COPY:
                streams += [
                    ((*labels, state), float(follow.get(field, 0)))
                    for state, field in _STATES.items()
                ]
        self._metrics.replace("sluice_lag_bytes", size)
        self._metrics.replace("sluice_lag_seconds", age)
        self._metrics.replace("sluice_follow_proved_timestamp_seconds", proved)
        self._metrics.replace("sluice_follow_streams", streams)

    def _queries(self) -> None:
        queries = [
            (STREAM_QUERY, body)
            for body in self._mirror.all(STREAM_QUERY)
            if not is_deleting(body) and (body.get("status") or {}).get("progress")
        ]
        rows: list[tuple[tuple[str, ...], float]] = []
        late, lag, watermark = rows[:], rows[:], rows[:]
        differ, verified, malformed, state, times = ([*rows] for _ in range(5))
        for kind, body in self._shared("queries", queries):
            labels, progress = _labels(kind, body), body["status"]["progress"]
            rows.append((labels, float(progress.get("rows", 0))))
            late.append((labels, float(progress.get("lateEvents", 0))))
            malformed.append((labels, float(progress.get("malformedEvents", 0))))
            state.append((labels, float(progress.get("stateBytes", 0))))
            times += [
                ((*labels, quantile), found / 1000)
                for quantile, field in _QUANTILES.items()
                if (found := (progress.get("latency") or {}).get(field)) is not None
            ]
            over = body["spec"].get("suspend") or says(body, "Succeeded", "True")
            if "lagBytes" in progress and not over:
                lag.append((labels, float(progress["lagBytes"])))
            until = _instant(progress.get("watermark"))
            if until is not None:
                watermark.append((labels, until.timestamp()))
            if body["spec"].get("verify") is not None:
                differ.append((labels, float(says(body, "Verified", "False"))))
                known = body["status"].get("verification") or {}
                good = _instant(known.get("lastSuccessTime"))
                if good is not None:
                    verified.append((labels, good.timestamp()))
        self._metrics.replace("sluice_query_rows", rows)
        self._metrics.replace("sluice_query_late_events", late)
        self._metrics.replace("sluice_query_lag_bytes", lag)
        self._metrics.replace("sluice_query_watermark_timestamp_seconds", watermark)
        self._metrics.replace("sluice_query_malformed_events", malformed)
        self._metrics.replace("sluice_query_state_bytes", state)
        self._metrics.replace("sluice_query_batch_seconds", times)
        self._metrics.replace("sluice_query_results_differ", differ)
        self._metrics.replace("sluice_query_verified_timestamp_seconds", verified)

    def _resources(self) -> None:
        every = [(kind, body) for kind in OWN.values() for body in self._mirror.all(kind)]
        shared = self._shared("resources", every)
        states = [((*_labels(kind, body), state_of(kind, body)), 1.0) for kind, body in shared]
        self._metrics.replace("sluice_resource_state", states)

    def _shared(
        self, series: str, found: Iterable[tuple[Kind, Object]]
    ) -> list[tuple[Kind, Object]]:
        """Choose the resources that get series, the oldest of each namespace first."""
        groups: dict[str, list[tuple[Kind, Object]]] = defaultdict(list)
        for kind, body in found:
            namespace = body["metadata"]["namespace"]
            if self._served.include(namespace):
                groups[namespace].append((kind, body))
        for group in groups.values():
            group.sort(key=_age)
        chosen = dealt([groups[name] for name in sorted(groups)], self._settings.max_resources)
        left = sum(map(len, groups.values())) - len(chosen)
        self._metrics.set("sluice_left_out", left, series=series)
        return chosen


def _labels(kind: Kind, body: Object) -> tuple[str, str, str]:
    return kind.name, body["metadata"]["namespace"], body["metadata"]["name"]


def _age(found: tuple[Kind, Object]) -> tuple[str, str, str]:
    """Order resources by age. Which ones have series must not change from scrape to scrape."""
    kind, body = found
    meta = body["metadata"]
    return str(meta.get("creationTimestamp")), kind.name, meta["name"]


def _instant(value: Any) -> datetime | None:
    """Read a time of the API; None if there is none."""
    try:
        found = datetime.fromisoformat(value)
    except (TypeError, ValueError):
        return None
    return None if found.tzinfo is None else found


def _next_due(
    spec: Object, part: Object, made: datetime | None, good: datetime | None
) -> datetime | None:
    """Return the time by which the next good run has to begin; None if no run is to begin.

    Args:
        spec: the resource's spec.
        part: the part of it that has the schedule.
        made: when the resource was made, or its schedule first seen.
        good: when the last good run ended.
    """
    since = max((at for at in (made, good) if at is not None), default=None)
    if spec.get("suspend") or since is None:
        return None
    schedule = part.get("schedule") or {}
    return _following(str(schedule.get("cron")), str(schedule.get("timeZone", "Etc/UTC")), since)


@lru_cache(_KNOWN)
def _following(cron: str, zone: str, since: datetime) -> datetime | None:
    """Return the first scheduled time after another time; None if the schedule is refused."""
    try:
        schedule = Schedule.model_validate({"cron": cron, "timeZone": zone})
        return following(schedule, since)
    except (InvalidSpec, ValidationError):
        return None  # the resource's condition says so; it has no good run, which alerts tell
