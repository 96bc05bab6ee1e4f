"""Metrics that have a series for each resource."""

from __future__ import annotations

import re
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any

import pytest

from sluice.handlers.by_name import ByName
from sluice.kube.api.cache import Mirror
from sluice.kube.api.kinds import (
    SCOPE_COPY,
    STREAM_ARCHIVE,
    STREAM_COPY,
    STREAM_QUERY,
    STREAM_STORE,
)
from sluice.kube.loop.settings import MetricsSettings, OperatorSettings
from sluice.metrics import Metrics

if TYPE_CHECKING:
    from sluice.kube.api.kinds import Kind

CREATED, LAST_SUCCESS, DUE = (
    f"sluice_schedule_{name}_timestamp_seconds" for name in ("created", "last_success", "due")
)
MADE = "2026-01-02T03:04:05Z"
DAILY = {"cron": "0 3 * * *"}


class Bench:
    """An operator's mirror, and the scrapes of its metrics."""

    def __init__(self, **settings: Any) -> None:
        self.mirror, self.metrics = Mirror(), Metrics()
        asked = MetricsSettings(**settings.pop("metrics", {}))
        self._by_name = ByName(
            self.mirror, self.metrics, OperatorSettings(image="i", metrics=asked, **settings)
        )

    def see(
        self, name: str, kind: Kind = STREAM_ARCHIVE, *, gone: bool = False, **parts: Any
    ) -> None:
        """Show a resource to the operator's watch."""
        meta = {"namespace": "team", "name": name, "uid": name, "creationTimestamp": MADE}
        body = {"kind": kind.name, "metadata": meta | parts.pop("metadata", {})}
        spec = {} if kind != STREAM_ARCHIVE else {"schedule": DAILY}
        body["spec"] = spec | parts.pop("spec", {})
        self.mirror.see(kind, body | parts, gone=gone)

    def scrape(self, metric: str) -> dict[str, float]:
        """Return the series of a metric, by namespace and name, or by its only label."""
        self._by_name.update()
        text = self.metrics.text().decode()
        found = re.findall(rf"^{metric}{{([^}}]*)}} (\S+)$", text, re.MULTILINE)
        series: dict[str, float] = {}
        for labels, value in found:
            own = dict(re.findall(r'(\w+)="([^"]*)"', labels))
            shown = (own[one] for one in ("namespace", "name", "state", "series") if one in own)
            series["/".join(shown)] = float(value)
        return series


def unix(text: str) -> float:
    """Return a time in the form of metrics."""
    return datetime.fromisoformat(text).astimezone(UTC).timestamp()


def test_a_schedule_that_never_succeeded_tells_since_when_it_is_there() -> None:
    """Its first run is due by the schedule, and it has no success."""
    bench = Bench()
    bench.see("new")
    assert bench.scrape(CREATED) == {"team/new": unix(MADE)}
    assert bench.scrape(DUE) == {"team/new": unix("2026-01-03T03:00:00Z")}
    assert bench.scrape(LAST_SUCCESS) == {}


def test_a_schedule_tells_its_last_good_run_and_the_next_one_that_has_to_be() -> None:
    """The next time stays in the past while no run succeeds, however many times pass."""
    bench = Bench()
    bench.see("good", status={"lastSuccessTime": "2026-02-01T03:10:00Z"})
    assert bench.scrape(LAST_SUCCESS) == {"team/good": unix("2026-02-01T03:10:00Z")}
    assert bench.scrape(DUE) == {"team/good": unix("2026-02-02T03:00:00Z")}


def test_a_time_zone_counts() -> None:
    """The runs themselves use it, too."""
    bench = Bench()
    bench.see("new", spec={"schedule": DAILY | {"timeZone": "Europe/Berlin"}})
    assert bench.scrape(DUE) == {"team/new": unix("2026-01-03T02:00:00Z")}


def test_a_suspended_schedule_is_not_late_and_grows_old() -> None:
    """A schedule that was suspended and forgotten is a missing backup."""
    bench = Bench()
    good = {"lastSuccessTime": "2026-02-01T03:10:00Z"}
    bench.see("asleep", spec={"suspend": True}, status=good)
    assert bench.scrape(DUE) == {}
    assert list(bench.scrape(LAST_SUCCESS)) == list(bench.scrape(CREATED)) == ["team/asleep"]


def test_the_series_of_a_resource_go_with_it() -> None:
    """They end at the next scrape, once it is being deleted or loses its schedule."""
    bench = Bench()
    for name in ("kept", "gone", "going", "once"):
        bench.see(name, status={"lastSuccessTime": MADE})
    assert len(bench.scrape(LAST_SUCCESS)) == 4
    bench.see("gone", gone=True)
    bench.see("going", metadata={"deletionTimestamp": MADE})
    bench.see("once", spec={"schedule": None})
    for metric in (CREATED, LAST_SUCCESS, DUE):
        assert list(bench.scrape(metric)) == ["team/kept"]


def drilled(status: str, **drill: str) -> dict[str, Any]:
    """Return an archive with weekly drills, its condition RestoreVerified, and `status.drill`."""
    said = {"type": "RestoreVerified", "status": status}
    spec = {"schedule": None, "verify": {"schedule": {"cron": "@weekly"}}}
    return {"spec": spec, "status": {"conditions": [said], "drill": drill}}


def test_an_archive_with_drills_tells_of_the_last_good_one() -> None:
    """The metrics have its end, the next required drill, and whether one has failed since."""
    bench = Bench()
    bench.see("good", **drilled("True", since=MADE, lastSuccessTime="2026-02-01T03:10:00Z"))
    bench.see("failed", **drilled("False", since=MADE))
    bench.see("unknown", **drilled("Unknown", since="2026-02-01T00:00:01Z"))
    bench.see("none")
    last, failed, due = (
        f"sluice_drill_{name}"
        for name in ("last_success_timestamp_seconds", "failed", "due_timestamp_seconds")
    )
    assert bench.scrape(last) == {"team/good": unix("2026-02-01T03:10:00Z")}
    assert bench.scrape(failed) == {"team/good": 0, "team/failed": 1, "team/unknown": 0}
    assert bench.scrape(due) == {
        "team/good": unix("2026-02-08T00:00:00Z"),
        "team/failed": unix("2026-01-04T00:00:00Z"),
        "team/unknown": unix("2026-02-08T00:00:00Z"),
    }


@pytest.mark.parametrize("verify", [{"schedule": 3}, {"schedule": {"cron": []}}, [1], "x"])
def test_nonsense_about_drills_stops_no_scrape(verify: object) -> None:
    """Neither does an invalid status."""
    bench = Bench()
    bench.see("nonsense", spec={"verify": verify}, status={"drill": {"since": MADE}})
    bench.see("other", **drilled("False", since=MADE))
    assert bench.scrape("sluice_drill_failed")["team/other"] == 1


@pytest.mark.parametrize(
    ("spec", "status"),
    [
        ({"schedule": {"cron": "0 0 30 2 *"}}, {}),
        ({"schedule": {"cron": "no cron at all"}}, {}),
        ({"schedule": {"cron": ["x"], "timeZone": {"a": 1}}}, {}),
        ({"schedule": DAILY | {"timeZone": "Nowhere/Land"}}, {}),
        ({"schedule": DAILY, "suspend": True}, {"lastSuccessTime": "yesterday"}),
        ({"schedule": DAILY, "suspend": True}, {"lastSuccessTime": {"a": 1}}),
        ({"schedule": DAILY, "suspend": True}, {"lastSuccessTime": "2026-01-02T03:04:05"}),
    ],
)
def test_nonsense_of_a_tenant_stops_no_scrape(spec: dict[str, Any], status: dict[str, Any]) -> None:
    """Its resource has no such time; the others have theirs."""
    bench = Bench()
    bench.see("nonsense", spec=spec, status=status)
    bench.see("other", status={"lastSuccessTime": MADE})
    assert list(bench.scrape(CREATED)) == ["team/nonsense", "team/other"]
    assert list(bench.scrape(LAST_SUCCESS)) == list(bench.scrape(DUE)) == ["team/other"]


def test_thousands_of_one_namespace_hide_no_other() -> None:
    """The number of series is bounded, and the omitted ones are counted."""
    bench = Bench(metrics={"max_resources": 10})
    for number in range(3000):
        bench.see(f"a-{number}", metadata={"namespace": "evil"})
    for name in ("b", "c"):
        bench.see(name, status={"lastSuccessTime": MADE})
    found = bench.scrape(CREATED)
    assert len(found) == 10
    assert {"team/b", "team/c"} <= set(found)
    assert len(bench.scrape(DUE)) == 10
    assert bench.scrape("sluice_left_out") == {
        "schedules": 2992,
        "drills": 0,
        "followed": 0,
        "queries": 0,
    }


def test_new_resources_take_no_series_of_older_ones() -> None:
    """In a namespace the oldest come first, whatever their names are."""
    bench = Bench(metrics={"max_resources": 2})
    for name in ("y", "z"):
        bench.see(name)
    bench.see("a", metadata={"creationTimestamp": "2026-01-02T03:04:06Z"})
    assert list(bench.scrape(CREATED)) == ["team/y", "team/z"]


def test_only_namespaces_that_are_served_count() -> None:
    """Otherwise two operators would report the same resource."""
    bench = Bench(excluded_namespaces=["oth*"])
    bench.see("mine")
    bench.see("theirs", metadata={"namespace": "other"})
    assert list(bench.scrape(CREATED)) == ["team/mine"]


def test_states_by_name_are_an_option() -> None:
    """Each resource of any kind has one state."""
    ready = {"status": {"conditions": [{"type": "Ready", "status": "True"}]}}
    for asked, expected in (
        (False, set()),
        (True, {"team/copy/Active", "team/nightly/Active", "team/store/Ready"}),
    ):
        bench = Bench(metrics={"resources": asked})
        bench.see("copy", STREAM_COPY)
        bench.see("store", STREAM_STORE, **ready)
        bench.see("nightly")
        assert set(bench.scrape("sluice_resource_state")) == expected


def followed(**status: Any) -> dict[str, Any]:
    """Return a copy that follows its source, as the operator's watch shows it."""
    parts: dict[str, Any] = {"kind": STREAM_COPY, "spec": {"mode": "Continuous"}, "status": status}
    return parts


LAG, BEHIND, PROVED = (
    "sluice_lag_bytes",
    "sluice_lag_seconds",
    "sluice_follow_proved_timestamp_seconds",
)


def test_a_copy_that_follows_tells_how_far_it_is_behind() -> None:
    """The lag is in bytes and seconds, with the time of the last proof.

    Unknown values are absent.
    """
    bench = Bench()
    known = {"lagBytes": 70, "lagSeconds": 2, "provedTo": "2026-02-01T03:10:00Z"}
    bench.see("live", **followed(follow=known))
    bench.see("new", **followed(follow={"lagBytes": 5}))
    bench.see("begins", **followed())
    assert bench.scrape(LAG) == {"team/live": 70, "team/new": 5}
    assert bench.scrape(BEHIND) == {"team/live": 2}
    assert bench.scrape(PROVED) == {"team/live": unix("2026-02-01T03:10:00Z")}


def test_a_scope_that_is_followed_tells_its_lag_and_its_streams() -> None:
    """The lag has the metrics of one stream's lag, and the streams count by their states."""
    bench = Bench()
    known = {"lagBytes": 70, "lagSeconds": 2, "streams": 28, "coming": 1, "failed": 2, "gone": 1}
    bench.see("shop", **followed(follow=known) | {"kind": SCOPE_COPY})
    bench.see("live", **followed(follow={"lagBytes": 5}))
    assert bench.scrape(LAG) == {"team/shop": 70, "team/live": 5}
    assert bench.scrape(BEHIND) == {"team/shop": 2}
    assert bench.scrape("sluice_follow_streams") == {
        "team/shop/Following": 28,
        "team/shop/CatchingUp": 1,
        "team/shop/Failed": 2,
        "team/shop/Gone": 1,
    }


def test_a_copy_that_is_suspended_or_done_is_behind_nothing() -> None:
    """No client waits for its bytes."""
    bench = Bench()
    done = {"type": "Succeeded", "status": "True"}
    bench.see("done", **followed(follow={"lagBytes": 1}, conditions=[done]))
    asleep = followed(follow={"lagBytes": 1})
    asleep["spec"]["suspend"] = True
    bench.see("asleep", **asleep)
    bench.see("going", **followed(follow={"lagBytes": 1}), metadata={"deletionTimestamp": MADE})
    assert bench.scrape(LAG) == {}


def test_copies_that_follow_share_the_series() -> None:
    """Copies beyond the option's bound are counted."""
    bench = Bench(metrics={"maxResources": 2})
    for number in range(5):
        bench.see(f"live-{number}", **followed(follow={"lagBytes": number}))
    assert len(bench.scrape(LAG)) == 2
    assert bench.scrape("sluice_left_out")["followed"] == 3


def test_a_query_tells_its_rows_its_lag_and_its_watermark() -> None:
    """A suspended or finished query has no lag, and a query without a batch has no rows."""
    bench = Bench()
    progress = {
        "rows": 3,
        "lagBytes": 70,
        "watermark": "2026-05-04T12:00:00Z",
        "lateEvents": 2,
        "malformedEvents": 5,
        "stateBytes": 4096,
        "latency": {"p50Milliseconds": 700, "p99Milliseconds": 1250},
    }
    done = {"type": "Succeeded", "status": "True"}
    bench.see("runs", STREAM_QUERY, status={"progress": progress})
    bench.see("asleep", STREAM_QUERY, spec={"suspend": True}, status={"progress": progress})
    bench.see("done", STREAM_QUERY, status={"progress": progress, "conditions": [done]})
    bench.see("starts", STREAM_QUERY, status={})
    every = ("team/asleep", "team/done", "team/runs")
    assert bench.scrape("sluice_query_rows") == dict.fromkeys(every, 3)
    assert bench.scrape("sluice_query_lag_bytes") == {"team/runs": 70}
    assert bench.scrape("sluice_query_late_events") == dict.fromkeys(every, 2)
    assert bench.scrape("sluice_query_malformed_events") == dict.fromkeys(every, 5)
    assert bench.scrape("sluice_query_state_bytes") == dict.fromkeys(every, 4096)
    assert set(bench.scrape("sluice_query_batch_seconds").values()) <= {0.7, 1.25}
    marks = bench.scrape("sluice_query_watermark_timestamp_seconds")
    assert marks == dict.fromkeys(every, unix("2026-05-04T12:00:00Z"))


def test_a_query_that_is_verified_has_the_result_and_its_time() -> None:
    """Without spec.verify it has neither, whatever is left in its status."""
    bench = Bench()
    verification = {"lastSuccessTime": "2026-05-04T12:00:00Z", "message": "as it should be"}

    def see(name: str, condition: str, *, verify: bool = True, **status: Any) -> None:
        bench.see(
            name,
            STREAM_QUERY,
            spec={"verify": {}} if verify else {},
            status={
                "progress": {"rows": 3},
                "conditions": [{"type": "Verified", "status": condition}],
                **status,
            },
        )

    see("right", "True", verification=verification)
    see("wrong", "False")
    see("open", "Unknown", verification={"number": 1})
    see("not-asked", "False", verify=False, verification=verification)
    assert bench.scrape("sluice_query_results_differ") == {
        "team/open": 0,
        "team/right": 0,
        "team/wrong": 1,
    }
    times = bench.scrape("sluice_query_verified_timestamp_seconds")
    assert times == {"team/right": unix("2026-05-04T12:00:00Z")}
