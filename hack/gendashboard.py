"""Generate the Grafana dashboard of the chart.

python hack/gendashboard.py           write helm/sluice/files/dashboard.json
python hack/gendashboard.py --check   fail if the file is out of date
"""

from __future__ import annotations

import argparse
import json
import sys
from itertools import count
from pathlib import Path
from typing import Any, Final, NamedTuple

FILE: Final = Path(__file__).resolve().parent.parent / "helm/sluice/files/dashboard.json"

_WIDTH, _HEIGHT, _COLUMNS = 8, 7, 24
_SOURCE = {"type": "prometheus", "uid": "${datasource}"}
_BY_NAME = "by (kind, namespace, name)"
_LAST_GOOD = (
    "sluice_schedule_last_success_timestamp_seconds or sluice_schedule_created_timestamp_seconds"
)
_P95 = "histogram_quantile(0.95, sum by (le, {0}) (rate({1}_bucket[$__rate_interval])))"


class Panel(NamedTuple):
    """A panel.

    Attributes:
        title: its title.
        query: its query in PromQL.
        legend: the name of a series, with labels in double braces; empty for a table.
        unit: Grafana's name of the values' unit.
        means: explanation, if the title does not say everything.
    """

    title: str
    query: str
    legend: str
    unit: str = "short"
    means: str = ""


ROWS: Final[dict[str, tuple[Panel, ...]]] = {
    "Copies": (
        Panel(
            "Copies",
            'sum by (kind, state) (sluice_copies{kind!="StreamArchive"})',
            "{{kind}} {{state}}",
        ),
        Panel(
            "Bytes copied",
            "sum(rate(sluice_copied_bytes_total[$__rate_interval]))",
            "copied",
            "Bps",
            "Counted when a copy is done.",
        ),
        Panel(
            "Events copied",
            "sum(rate(sluice_copied_events_total[$__rate_interval]))",
            "copied",
            "cps",
            "Counted when a copy is done.",
        ),
        Panel(
            "Attempts that ended",
            "sum by (outcome, reason) (sluice_attempts_total)",
            "{{outcome}} {{reason}}",
        ),
        Panel(
            "Time of a copy, 95 of 100",
            _P95.format("job", "sluice_copy_seconds"),
            "to its completion",
            "s",
        ),
        Panel(
            "Left in stores",
            "sum(sluice_orphaned_total) or vector(0)",
            "orphaned",
            means="Resources that were let go while a store held something of them.",
        ),
    ),
    "Live migration": (
        Panel(
            "Lag",
            f"max {_BY_NAME} (sluice_lag_seconds)",
            "{{namespace}}/{{name}}",
            "s",
            "How long ago the source got what the target still lacks; 2 s and less are one.",
        ),
        Panel(
            "Bytes behind",
            f"max {_BY_NAME} (sluice_lag_bytes)",
            "{{namespace}}/{{name}}",
            "bytes",
        ),
        Panel(
            "Age of the last comparison",
            f"time() - max {_BY_NAME} (sluice_follow_proved_timestamp_seconds)",
            "{{namespace}}/{{name}}",
            "s",
            "All that the source held then was read back from the target and compared.",
        ),
        Panel(
            "Streams of scopes that have failed",
            f'sum(max {_BY_NAME} (sluice_follow_streams{{state="Failed"}})) or vector(0)',
            "followed no more",
            means="status.failedStreams of their ScopeCopies names them. The others go on.",
        ),
        Panel(
            "Followers that were replaced",
            "sum(sluice_follow_restarts_total)",
            "replaced",
        ),
    ),
    "Queries": (
        Panel("StreamQueries", "sum by (state) (sluice_queries)", "{{state}}"),
        Panel(
            "Rows written",
            f"max {_BY_NAME} (rate(sluice_query_rows[$__rate_interval]))",
            "{{namespace}}/{{name}}",
            "cps",
        ),
        Panel(
            "Bytes that queries are behind",
            f"max {_BY_NAME} (sluice_query_lag_bytes)",
            "{{namespace}}/{{name}}",
            "bytes",
        ),
        Panel(
            "Late events",
            f"max {_BY_NAME} (increase(sluice_query_late_events[$__rate_interval]))",
            "{{namespace}}/{{name}}",
            "short",
            "They came later than latenessSeconds allows. Those of closed windows are left out.",
        ),
        Panel(
            "Age of the watermark",
            f"time() - max {_BY_NAME} (sluice_query_watermark_timestamp_seconds)",
            "{{namespace}}/{{name}}",
            "s",
            "Windows that end before the watermark are closed. It stands while no event comes.",
        ),
        Panel(
            "Time of a batch, 99 of 100",
            f'max {_BY_NAME} (sluice_query_batch_seconds{{quantile="0.99"}})',
            "{{namespace}}/{{name}}",
            "s",
        ),
        Panel(
            "Memory of open windows",
            f"max {_BY_NAME} (sluice_query_state_bytes)",
            "{{namespace}}/{{name}}",
            "bytes",
        ),
        Panel(
            "Malformed events",
            f"max {_BY_NAME} (increase(sluice_query_malformed_events[$__rate_interval]))",
            "{{namespace}}/{{name}}",
            "short",
            "They did not fit format and schema, and were left out (malformed: Drop).",
        ),
        Panel(
            "Queries with wrong results",
            f"sum(max {_BY_NAME} (sluice_query_results_differ))",
            "differ",
            means="As their last verification found. The condition Verified says more.",
        ),
    ),
    "Scopes": (
        Panel("ScopeCopies", 'sum by (state) (sluice_copies{kind="ScopeCopy"})', "{{state}}"),
        Panel("Streams of scopes", "sum by (state) (sluice_scope_streams_total)", "{{state}}"),
    ),
    "Archives": (
        Panel(
            "StreamArchives", 'sum by (state) (sluice_copies{kind="StreamArchive"})', "{{state}}"
        ),
        Panel(
            "Age of the last good run",
            f"time() - max {_BY_NAME} ({_LAST_GOOD})",
            "",
            "s",
            "Of each schedule; since it was made if there was no good run yet.",
        ),
        Panel(
            "Time until the next run is due",
            f"max {_BY_NAME} (sluice_schedule_due_timestamp_seconds) - time()",
            "",
            "s",
            "Negative: a run is late.",
        ),
        Panel(
            "Age of the last restore drill that passed",
            f"time() - max {_BY_NAME} (sluice_drill_last_success_timestamp_seconds)",
            "",
            "s",
            "Of each archive with spec.verify; none before the first drill has passed.",
        ),
        Panel(
            "Archives that a drill could not restore",
            f"sum(max {_BY_NAME} (sluice_drill_failed))",
            "failed",
            means="Until a drill passes. The condition RestoreVerified says why.",
        ),
        Panel(
            "Time until the next drill is due",
            f"max {_BY_NAME} (sluice_drill_due_timestamp_seconds) - time()",
            "",
            "s",
            "Negative: a drill is late.",
        ),
        Panel(
            "Schedules without metrics",
            'sum by (series) (sluice_left_out{series=~"schedules|drills|followed|queries"})',
            "{{series}} left out",
            means="Beyond operator.metrics.maxResources.",
        ),
    ),
    "Ephemeral streams": (
        Panel("EphemeralStreams", "sum by (state) (sluice_ephemeral_streams)", "{{state}}"),
        Panel("Streams deleted", "sum(sluice_streams_deleted_total)", "deleted"),
    ),
    "Stores": (
        Panel("StreamStores", "sum by (ready) (sluice_stores)", "ready: {{ready}}"),
        Panel(
            "Calls to stores, 95 of 100",
            _P95.format("call", "sluice_store_call_seconds"),
            "{{call}}",
            "s",
        ),
    ),
    "Operator": (
        Panel("Resources that wait", "sum by (lane) (sluice_queue_depth)", "{{lane}}"),
        Panel("Longest wait now", "max(sluice_queue_oldest_age_seconds)", "wait", "s"),
        Panel(
            "Reconciliations",
            "sum by (result) (rate(sluice_reconcile_total[$__rate_interval]))",
            "{{result}}",
            "cps",
        ),
        Panel(
            "Time of a reconciliation, 95 of 100",
            _P95.format("kind", "sluice_reconcile_seconds"),
            "{{kind}}",
            "s",
        ),
        Panel(
            "Calls to the API server",
            "sum by (verb) (rate(sluice_api_calls_total[$__rate_interval]))",
            "{{verb}}",
            "cps",
        ),
        Panel("Replicas that work", "sum(sluice_leader)", "replicas"),
        Panel("Watches that missed changes", "max by (kind) (sluice_watch_behind)", "{{kind}}"),
        Panel(
            "Memory",
            "sum(process_resident_memory_bytes and on (instance) sluice_queue_depth)",
            "operator",
            "bytes",
        ),
        Panel(
            "State of each resource",
            "max by (kind, namespace, name, state) (sluice_resource_state)",
            "",
            means="Only with operator.metrics.resources.",
        ),
    ),
}
"""The panels of each row, in order."""


def dashboard() -> dict[str, Any]:
    """Return the dashboard as Grafana imports it."""
    return {
        "uid": "sluice",
        "title": "Sluice",
        "tags": ["sluice"],
        "editable": True,
        "schemaVersion": 39,
        "refresh": "1m",
        "time": {"from": "now-6h", "to": "now"},
        "templating": {
            "list": [{"name": "datasource", "type": "datasource", "query": "prometheus"}]
        },
        "panels": _panels(),
    }


def _panels() -> list[dict[str, Any]]:
    numbers, top, made = count(1), 0, []
    for title, panels in ROWS.items():
        place = {"x": 0, "y": top, "w": _COLUMNS, "h": 1}
        made.append({"id": next(numbers), "type": "row", "title": title, "gridPos": place})
        top += 1
        for at, panel in enumerate(panels):
            down, across = divmod(at * _WIDTH, _COLUMNS)
            place = {"x": across, "y": top + down * _HEIGHT, "w": _WIDTH, "h": _HEIGHT}
            made.append({"id": next(numbers), "gridPos": place} | _panel(panel))
        top += -(-len(panels) * _WIDTH // _COLUMNS) * _HEIGHT
    return made


def _panel(panel: Panel) -> dict[str, Any]:
    """Return a graph over time, or a table of the present values if there is no legend."""
    target = {"refId": "A", "expr": panel.query}
    shown = {
        "title": panel.title,
        "description": panel.means,
        "datasource": _SOURCE,
        "fieldConfig": {"defaults": {"unit": panel.unit}},
    }
    if panel.legend:
        target["legendFormat"] = panel.legend
        return shown | {"type": "timeseries", "targets": [target]}
    hidden = {"id": "organize", "options": {"excludeByName": {"Time": True}}}
    now: dict[str, Any] = target | {"instant": True, "format": "table"}
    return shown | {"type": "table", "targets": [now], "transformations": [hidden]}


def generate() -> str:
    """Return the file's text, a line for each panel."""
    found = dashboard()
    panels = ",\n".join(f"    {json.dumps(panel)}" for panel in found.pop("panels"))
    head = json.dumps(found)[:-1]
    return f'{head}, "panels": [\n{panels}\n]}}\n'


def main() -> int:
    """Write or check the file. Return 1 if a check finds drift, else 0."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawTextHelpFormatter
    )
    parser.add_argument("--check", action="store_true", help="write nothing, fail on drift")
    check: bool = parser.parse_args().check
    if FILE.exists() and FILE.read_text(encoding="utf-8") == generate():
        return 0
    if check:
        print(f"{FILE.name} is out of date: run python hack/gendashboard.py", file=sys.stderr)
        return 1
    FILE.write_text(generate(), encoding="utf-8")
    print(f"wrote {FILE.name}")
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
