"""List the operator's metrics."""

from __future__ import annotations

from typing import Final, NamedTuple


class Metric(NamedTuple):
    """A metric: its name, kind, labels and meaning."""

    name: str
    kind: str
    labels: tuple[str, ...]
    means: str


BY_NAME: Final = ("kind", "namespace", "name")
"""Labels of the metrics that have a series for each resource. `handlers.by_name` bounds them."""

METRICS: Final = (
    Metric("sluice_queue_depth", "gauge", ("lane",), "Resources that wait for a worker."),
    Metric(
        "sluice_queue_oldest_age_seconds",
        "gauge",
        (),
        "Longest time that a resource now waits for a worker.",
    ),
    Metric(
        "sluice_reconcile_total",
        "counter",
        ("kind", "result"),
        "Reconciliations by result: ok, or error, which is retried.",
    ),
    Metric(
        "sluice_reconcile_seconds",
        "histogram",
        ("kind",),
        "Time of one reconciliation of a resource.",
    ),
    Metric(
        "sluice_queue_wait_seconds",
        "histogram",
        ("lane",),
        "Time that resources waited for a worker.",
    ),
    Metric(
        "sluice_store_call_seconds",
        "histogram",
        ("call",),
        "Time of calls to stores' controllers, by gRPC method.",
    ),
    Metric(
        "sluice_api_calls_total",
        "counter",
        ("resource", "verb"),
        "Calls to the API server, without the watches of Sluice's own kinds.",
    ),
    Metric("sluice_watch_behind", "gauge", ("kind",), "1 while a watch has missed changes."),
    Metric(
        "sluice_leader",
        "gauge",
        (),
        "1 for the replica of the operator that works, 0 for one that waits to take over.",
    ),
    Metric(
        "sluice_copies",
        "gauge",
        ("kind", "state"),
        "StreamCopies, ScopeCopies and StreamArchives: Active, Succeeded, Failed or Suspended.",
    ),
    Metric(
        "sluice_ephemeral_streams",
        "gauge",
        ("state",),
        "EphemeralStreams: Ready, Released, Waiting, Failed, Suspended or Deleting.",
    ),
    Metric(
        "sluice_queries",
        "gauge",
        ("state",),
        "StreamQueries: Running, Starting, Succeeded, Failed or Suspended.",
    ),
    Metric("sluice_stores", "gauge", ("ready",), "StreamStores that are ready, or not."),
    Metric(
        "sluice_schedule_created_timestamp_seconds",
        "gauge",
        BY_NAME,
        "When a resource with a schedule was made, as Unix time.",
    ),
    Metric(
        "sluice_schedule_last_success_timestamp_seconds",
        "gauge",
        BY_NAME,
        "End of its last good run, as Unix time. Absent before the first.",
    ),
    Metric(
        "sluice_schedule_due_timestamp_seconds",
        "gauge",
        BY_NAME,
        "First scheduled time after its last good run, or after it was made, as Unix time. In the "
        "past, a run is late. Absent while it is suspended.",
    ),
    Metric(
        "sluice_drill_last_success_timestamp_seconds",
        "gauge",
        BY_NAME,
        "End of the last restore drill that passed, as Unix time. Absent before the first.",
    ),
    Metric(
        "sluice_drill_failed",
        "gauge",
        BY_NAME,
        "1 if a restore drill found that a run cannot be restored, and none has passed since; "
        "else 0.",
    ),
    Metric(
        "sluice_drill_due_timestamp_seconds",
        "gauge",
        BY_NAME,
        "First scheduled time of a restore drill after the last one that passed, or after "
        "spec.verify was first seen, as Unix time. In the past, a drill is late. Absent while the "
        "resource is suspended.",
    ),
    Metric(
        "sluice_lag_bytes",
        "gauge",
        BY_NAME,
        "Bytes that the source of a copy with mode: Continuous has and its target has not; of a "
        "ScopeCopy, of all its streams. Absent before it follows, while it is suspended, and once "
        "it is done.",
    ),
    Metric(
        "sluice_lag_seconds",
        "gauge",
        BY_NAME,
        "For how long the target has lacked the oldest of these bytes; 2 stands for less, too. Of "
        "a ScopeCopy, the target that is behind most. Absent while it is unknown.",
    ),
    Metric(
        "sluice_follow_proved_timestamp_seconds",
        "gauge",
        BY_NAME,
        "All that the source held at this Unix time is in the target, and was compared.",
    ),
    Metric(
        "sluice_follow_streams",
        "gauge",
        (*BY_NAME, "state"),
        "Streams of a ScopeCopy with mode: Continuous: Following, CatchingUp while what they had "
        "is copied, Failed, or Gone from the source.",
    ),
    Metric(
        "sluice_query_rows",
        "gauge",
        BY_NAME,
        "Rows that all versions of a StreamQuery have written. Absent before the first batch.",
    ),
    Metric(
        "sluice_query_lag_bytes",
        "gauge",
        BY_NAME,
        "Bytes that the sources of a StreamQuery have behind its last batch. Absent while it is "
        "suspended, once it is done, and while they are unknown.",
    ),
    Metric(
        "sluice_query_late_events",
        "gauge",
        BY_NAME,
        "Events of a StreamQuery that came later than its eventTime.latenessSeconds allows. Those "
        "of closed windows are left out.",
    ),
    Metric(
        "sluice_query_watermark_timestamp_seconds",
        "gauge",
        BY_NAME,
        "Windows of a StreamQuery that end before this Unix time are closed. Absent without "
        "windows.",
    ),
    Metric(
        "sluice_query_malformed_events",
        "gauge",
        BY_NAME,
        "Events of a StreamQuery that did not fit format and schema, and were left out "
        "(malformed: Drop).",
    ),
    Metric(
        "sluice_query_state_bytes",
        "gauge",
        BY_NAME,
        "Bytes in memory of what a StreamQuery keeps between batches: windows that are not closed, "
        "and joins.",
    ),
    Metric(
        "sluice_query_batch_seconds",
        "gauge",
        (*BY_NAME, "quantile"),
        "Seconds from the beginning of a batch of a StreamQuery until the next one can begin: the "
        "quantiles 0.5 and 0.99 of the last hundred batches.",
    ),
    Metric(
        "sluice_query_results_differ",
        "gauge",
        BY_NAME,
        "1 if a verification found that the results of a StreamQuery are wrong, and none has found "
        "them right since; else 0. Only with spec.verify.",
    ),
    Metric(
        "sluice_query_verified_timestamp_seconds",
        "gauge",
        BY_NAME,
        "End of the last verification that found the results of a StreamQuery right, as Unix time. "
        "Absent before the first.",
    ),
    Metric(
        "sluice_resource_state",
        "gauge",
        (*BY_NAME, "state"),
        "1 for the state of each resource. Only with operator.metrics.resources.",
    ),
    Metric(
        "sluice_left_out",
        "gauge",
        ("series",),
        "Resources without series of their own, beyond operator.metrics.maxResources: of "
        "schedules, of drills, of followed, of queries, or of resources.",
    ),
    Metric("sluice_attempts_total", "counter", ("outcome", "reason"), "Attempts that ended."),
    Metric(
        "sluice_follow_restarts_total",
        "counter",
        (),
        "Pods that have taken over the following of a source from another pod.",
    ),
    Metric("sluice_copied_bytes_total", "counter", (), "Bytes of completed copies."),
    Metric("sluice_copied_events_total", "counter", (), "Events of completed copies."),
    Metric(
        "sluice_copy_seconds",
        "histogram",
        (),
        "Time from a copy's first attempt to its completion.",
    ),
    Metric(
        "sluice_scope_streams_total",
        "counter",
        ("state",),
        "Streams of ScopeCopies by result: Copied, Failed or Stopped.",
    ),
    Metric(
        "sluice_streams_deleted_total",
        "counter",
        (),
        "Streams that EphemeralStreams sealed and deleted.",
    ),
    Metric(
        "sluice_orphaned_total",
        "counter",
        ("kind",),
        "Resources that left staged bytes, streams or archives in a store.",
    ),
    Metric(
        "sluice_notices_total",
        "counter",
        ("result",),
        "CloudEvents about final states: Sent, Refused by the sink, Failed after all tries, or "
        "Dropped while too many waited.",
    ),
)
