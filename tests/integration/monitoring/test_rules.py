"""The times at which the chart's alerts fire, by Prometheus' own tool."""

from __future__ import annotations

import json
import subprocess
from typing import TYPE_CHECKING, Any

import pytest

from promserver import programs
from support.kube.chart import NAMESPACE, render

if TYPE_CHECKING:
    from collections.abc import Mapping
    from pathlib import Path

    Fired = set[tuple[str, str]]
    """Alerts that fire, each with the name of its resource."""

(
    OLD,
    NEVER,
    MISSED,
    LEFT_OUT,
    LAG,
    PROOF,
    NOT_FOLLOWED,
    DRILL_FAILED,
    DRILL_LATE,
    BEHIND,
    LATE,
) = (
    "SluiceBackupTooOld",
    "SluiceBackupNeverSucceeded",
    "SluiceScheduleMissed",
    "SluiceSchedulesLeftOut",
    "SluiceLagRises",
    "SluiceProofStands",
    "SluiceStreamNotFollowed",
    "SluiceRestoreDrillFailed",
    "SluiceRestoreDrillLate",
    "SluiceQueryLagRises",
    "SluiceQueryEventsLate",
)
DIFFER = "SluiceQueryResultsDiffer"
DAY = 24 * 3600
ALWAYS = "x4000"
"""The same value at each step of the test's time, for two weeks."""
UP = {f'up{{namespace="{NAMESPACE}", job="sluice-metrics"}}': f"1{ALWAYS}"}

SIGNS: dict[str, dict[str, str]] = {
    "SluiceOperatorAbsent": {"unrelated": f"1{ALWAYS}"},
    "SluiceNoLeader": {
        f'sluice_leader{{namespace="{NAMESPACE}", job="sluice-metrics", pod="{pod}"}}': f"0{ALWAYS}"
        for pod in "ab"
    },
    "SluiceQueueStuck": {"sluice_queue_oldest_age_seconds": f"121{ALWAYS}"},
    "SluiceWatchBehind": {'sluice_watch_behind{kind="Job"}': f"1{ALWAYS}"},
    "SluiceReconcileFails": {
        'sluice_reconcile_total{kind="ScopeCopy", result="error"}': "0+2x4000",
        'sluice_reconcile_total{kind="ScopeCopy", result="ok"}': "0+8x4000",
    },
    "SluiceCopyFailed": {'sluice_copies{kind="ScopeCopy", state="Failed"}': f"1{ALWAYS}"},
    "SluiceQueryFailed": {'sluice_queries{state="Failed"}': f"1{ALWAYS}"},
    LEFT_OUT: {'sluice_left_out{series="schedules"}': f"3{ALWAYS}"},
    "SluiceStoreNotReady": {'sluice_stores{ready="false"}': f"1{ALWAYS}"},
    "SluiceStreamsOrphaned": {'sluice_orphaned_total{kind="StreamCopy"}': "_x20 1x4"},
    "SluiceEphemeralStreamFailed": {'sluice_ephemeral_streams{state="Failed"}': f"1{ALWAYS}"},
    "SluiceEphemeralStreamNotReleased": {
        'sluice_ephemeral_streams{state="Deleting"}': f"2{ALWAYS}"
    },
}
"""Series that fire each alert that is about no single resource."""


def schedule(
    name: str, *, instance: str = "a", steps: str = ALWAYS, **times: int | None
) -> dict[str, str]:
    """Return the series of a scheduled resource, with times in seconds since the test began."""
    labels = f'kind="StreamArchive", namespace="shop", name="{name}", instance="{instance}"'
    return {
        f"sluice_schedule_{metric}_timestamp_seconds{{{labels}}}": f"{time}{steps}"
        for metric, time in times.items()
        if time is not None
    }


def check(
    folder: Path,
    series: Mapping[str, str],
    expected: Mapping[str, Fired],
    *,
    values: Mapping[str, Any] | None = None,
) -> None:
    """Compare the alerts that fire at some times with the expected ones."""
    _run(
        folder,
        series,
        values or {},
        promql_expr_test=[
            {
                "expr": 'count by (alertname, name) (ALERTS{alertstate="firing"})',
                "eval_time": time,
                "exp_samples": [
                    {
                        "labels": f'{{alertname="{alert}"{name and f", name={json.dumps(name)}"}}}',
                        "value": 1,
                    }
                    for alert, name in sorted(fired)
                ],
            }
            for time, fired in expected.items()
        ],
    )


def rule_of(alert: str) -> dict[str, Any]:
    """Return an alert's rule."""
    found = render({"monitoring": {"prometheusRule": {"enabled": True}}})
    (group,) = found.one("PrometheusRule")["spec"]["groups"]
    (rule,) = [one for one in group["rules"] if one["alert"] == alert]
    return dict(rule)


def _run(folder: Path, series: Mapping[str, str], values: Mapping[str, Any], **asked: Any) -> None:
    """Check the rules that values give, and run a test of them."""
    objects = render({"monitoring": {"prometheusRule": {"enabled": True} | dict(values)}})
    rules, tests = folder / "rules.json", folder / "tests.json"
    rules.write_text(json.dumps(objects.one("PrometheusRule")["spec"]))
    inputs = [{"series": name, "values": value} for name, value in series.items()]
    test = {"interval": "5m", "input_series": inputs} | asked
    tests.write_text(
        json.dumps({"rule_files": [rules.name], "evaluation_interval": "5m", "tests": [test]})
    )
    _promtool(folder, "check", "rules", rules.name)
    _promtool(folder, "test", "rules", tests.name)


def _promtool(folder: Path, *words: str) -> None:
    done = subprocess.run(
        [programs().promtool, *words],
        cwd=folder,
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
    )
    assert done.returncode == 0, done.stdout + done.stderr


def test_every_alert_has_its_case_here() -> None:
    """Each alert has series in the table, or a test of its own."""
    objects = render({"monitoring": {"prometheusRule": {"enabled": True}}})
    (group,) = objects.one("PrometheusRule")["spec"]["groups"]
    assert {rule["alert"] for rule in group["rules"]} == {
        *(
            *SIGNS,
            OLD,
            NEVER,
            MISSED,
            LAG,
            PROOF,
            NOT_FOLLOWED,
            DRILL_FAILED,
            DRILL_LATE,
            BEHIND,
            LATE,
            DIFFER,
        )
    }


@pytest.mark.parametrize("alert", SIGNS)
def test_an_alert_fires_by_its_sign(alert: str, tmp_path: Path) -> None:
    """The series fire their alert within two hours, and no other alert."""
    up = {} if alert == "SluiceOperatorAbsent" else UP
    check(tmp_path, SIGNS[alert] | up, {"2h": {(alert, "")}})


@pytest.mark.exhaustive
def test_backups_in_time_alert_nobody(tmp_path: Path) -> None:
    """Backups in time fire no alert: a recent, a weekly, a running and a new one."""
    series = (
        schedule("daily", created=0, last_success=6 * DAY, due=7 * DAY)
        | schedule("weekly", created=0, last_success=0, due=7 * DAY)
        | schedule("goes-on", created=0, last_success=5 * DAY, due=6 * DAY)
        | schedule("new", created=6 * DAY, due=7 * DAY)
    )
    check(tmp_path, UP | series, {"6d5h": set()})


@pytest.mark.exhaustive
def test_a_run_that_is_not_good_in_time_is_a_missed_schedule(tmp_path: Path) -> None:
    """A late run is a missed schedule after six hours, and a too old backup after eight days."""
    missed = {(MISSED, "nightly")}
    check(
        tmp_path,
        UP | schedule("nightly", created=0, last_success=60, due=DAY),
        {"1d5h": set(), "1d7h": missed, "7d23h": missed, "8d1h": missed | {(OLD, "nightly")}},
    )


@pytest.mark.exhaustive
def test_a_schedule_without_any_good_run_alerts(tmp_path: Path) -> None:
    """A schedule without a good run alerts from its first scheduled time on."""
    never = {(NEVER, "new")}
    check(
        tmp_path,
        UP | schedule("new", created=0, due=2 * DAY),
        {"2d5h": set(), "2d7h": never, "8d1h": never | {(OLD, "new")}},
    )


@pytest.mark.exhaustive
def test_a_forgotten_suspended_schedule_grows_too_old(tmp_path: Path) -> None:
    """A suspended schedule misses no run, but its backup becomes too old, also the first."""
    check(
        tmp_path,
        UP | schedule("good", created=0, last_success=DAY) | schedule("never", created=0),
        {"7d": set(), "8d1h": {(OLD, "never")}, "9d1h": {(OLD, "never"), (OLD, "good")}},
    )


def test_the_alerts_of_a_deleted_resource_end(tmp_path: Path) -> None:
    """The alerts of a deleted resource end with its series."""
    gone = schedule("gone", created=0, last_success=0, due=60, steps="x120 stale")
    check(tmp_path, UP | gone, {"9h": {(MISSED, "gone")}, "11h": set()})


def test_an_operator_that_moved_makes_no_second_alert(tmp_path: Path) -> None:
    """An alert is about the resource. A new pod of the operator makes no second alert."""
    old = schedule("nightly", created=0, last_success=0, due=60, steps="x120 stale")
    new = schedule("nightly", instance="b", created=0, last_success=0, due=60)
    both = {(MISSED, "nightly")}
    check(tmp_path, UP | old | new, {"7h": both, "9h": both, "11h": both})


def test_thresholds_are_values(tmp_path: Path) -> None:
    """The thresholds of both ages are values of the chart."""
    check(
        tmp_path,
        UP | schedule("nightly", created=0, last_success=0, due=3600),
        {
            "1h30m": set(),
            "2h30m": {(MISSED, "nightly")},
            "4h": {(MISSED, "nightly"), (OLD, "nightly")},
        },
        values={"backupAgeSeconds": 3 * 3600, "scheduleLateSeconds": 3600},
    )


def test_an_alert_names_the_resource_and_the_age(tmp_path: Path) -> None:
    """An alert's text names the resource and the age."""
    description = rule_of(MISSED)["annotations"]["description"]
    labels = {"kind": "StreamArchive", "namespace": "shop", "name": "nightly"}
    alert = {
        "exp_labels": labels | {"severity": "warning"},
        "exp_annotations": {
            "summary": "StreamArchive shop/nightly missed its schedule.",
            "description": description.replace("{{ $value | humanizeDuration }}", "7h 0m 0s"),
        },
    }
    series = UP | schedule("nightly", created=0, last_success=0, due=3600)
    expected = [{"eval_time": "8h", "alertname": MISSED, "exp_alerts": [alert]}]
    _run(tmp_path, series, {}, alert_rule_test=expected)


def drill(name: str, *, failed: int, due: int) -> dict[str, str]:
    """Return the series of an archive with drills; `due` is in seconds since the test began."""
    labels = f'kind="StreamArchive", namespace="shop", name="{name}"'
    return {
        f"sluice_drill_failed{{{labels}}}": f"{failed}{ALWAYS}",
        f"sluice_drill_due_timestamp_seconds{{{labels}}}": f"{due}{ALWAYS}",
    }


def test_a_drill_that_failed_and_one_that_is_late_alert(tmp_path: Path) -> None:
    """Failed and late drills have separate alerts. A drill that is just due has no alert."""
    series = (
        drill("damaged", failed=1, due=9 * DAY)
        | drill("late", failed=0, due=DAY)
        | drill("now", failed=0, due=2 * DAY)
    )
    expected = {"2d1h": {(DRILL_FAILED, "damaged"), (DRILL_LATE, "late")}}
    check(tmp_path, UP | series, expected)


def followed(name: str, lag: str, proved: str = "0+300x4000") -> dict[str, str]:
    """Return the series of a copy that follows its source, with values as promtool takes them."""
    labels = f'kind="StreamCopy", namespace="shop", name="{name}"'
    return {
        f"sluice_lag_seconds{{{labels}}}": lag,
        f"sluice_follow_proved_timestamp_seconds{{{labels}}}": proved,
    }


def test_a_lag_that_rises_alerts_and_one_that_stands_or_falls_does_not(tmp_path: Path) -> None:
    """A lag that rises for fifteen minutes alerts. A constant or falling lag does not."""
    series = (
        followed("rises", "2x12 100+300x20")
        | followed("stands", "600x40")
        | followed("falls", "6000-100x40")
        | followed("swings", "2 60 2 60 2 60 2 60 2 60 2 60 2 60 2 60 2 60 2 60 2x40")
    )
    expected = {"70m": set[tuple[str, str]](), "90m": {(LAG, "rises")}}
    check(tmp_path, UP | series, expected)


def test_wrong_results_of_a_query_alert_until_a_verification_finds_them_right(
    tmp_path: Path,
) -> None:
    """A query whose results match never alerts."""

    def query(name: str, differ: str) -> dict[str, str]:
        labels = f'kind="StreamQuery", namespace="shop", name="{name}"'
        return {f"sluice_query_results_differ{{{labels}}}": differ}

    series = query("wrong", "0x2 1x9 0x20") | query("right", f"0{ALWAYS}")
    expected = {"5m": set[tuple[str, str]](), "30m": {(DIFFER, "wrong")}, "90m": set()}
    check(tmp_path, UP | series, expected)


def test_a_query_that_falls_behind_alerts(tmp_path: Path) -> None:
    """A query that falls behind alerts. A burst that the query works off does not."""

    def query(name: str, lag: str) -> dict[str, str]:
        labels = f'kind="StreamQuery", namespace="shop", name="{name}"'
        return {f"sluice_query_lag_bytes{{{labels}}}": lag}

    series = query("rises", "0x12 100+300x20") | query("burst", "0x12 9000-600x15 0x20")
    check(tmp_path, UP | series, {"70m": set[tuple[str, str]](), "90m": {(BEHIND, "rises")}})


def test_late_events_alert_for_an_hour(tmp_path: Path) -> None:
    """Late events alert for an hour. Old ones, or those before the start, do not alert."""

    def query(name: str, late: str) -> dict[str, str]:
        labels = f'kind="StreamQuery", namespace="shop", name="{name}"'
        return {f"sluice_query_late_events{{{labels}}}": late}

    series = query("late", "0x6 7x40") | query("was-late", "_x6 7x40")
    check(tmp_path, UP | series, {"60m": {(LATE, "late")}, "110m": set()})


def test_a_stream_of_a_scope_that_has_failed_alerts_and_one_that_is_gone_does_not(
    tmp_path: Path,
) -> None:
    """A failed stream alerts under its ScopeCopy's name. A deleted stream does not."""

    def scope(name: str, state: str) -> dict[str, str]:
        labels = f'kind="ScopeCopy", namespace="shop", name="{name}", state="{state}"'
        return {f"sluice_follow_streams{{{labels}}}": "0x2 1x9 0x20"}

    series = scope("failed", "Failed") | scope("gone", "Gone") | scope("going-on", "Following")
    expected = {"5m": set[tuple[str, str]](), "30m": {(NOT_FOLLOWED, "failed")}, "90m": set()}
    check(tmp_path, UP | series, expected)


def test_a_comparison_that_stands_still_alerts(tmp_path: Path) -> None:
    """A comparison that stands still alerts, even if the reported lag is 0."""
    series = followed("compared", "2x40") | followed("stands", "2x40", "0+300x12 3600x28")
    check(tmp_path, UP | series, {"85m": set(), "95m": {(PROOF, "stands")}})
