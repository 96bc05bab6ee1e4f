"""List the operator's metrics."""

from __future__ import annotations

from typing import Final, NamedTuple


class Metric(NamedTuple):
    """A metric: its name, kind, labels and meaning."""

    name: str
    kind: str
    labels: tuple[str, ...]
    means: str


METRICS: Final = (
    Metric("sluice_queue_depth", "gauge", ("lane",), "Resources that wait for a worker."),
    Metric(
        "sluice_queue_oldest_age_seconds",
        "gauge",
        (),
        "How long the resource that waits longest for a worker has waited.",
    ),
    Metric(
        "sluice_reconcile_total",
        "counter",
        ("kind", "result"),
        "Resources looked at, by what came of it: ok, or error and it is tried again.",
    ),
    Metric("sluice_reconcile_seconds", "histogram", ("kind",), "Time to look at a resource once."),
    Metric(
        "sluice_queue_wait_seconds",
        "histogram",
        ("lane",),
        "How long resources have waited for a worker.",
    ),
    Metric(
        "sluice_store_call_seconds",
        "histogram",
        ("call",),
        "Time of calls to the controllers of stores, by their gRPC method.",
    ),
    Metric(
        "sluice_api_calls_total",
        "counter",
        ("resource", "verb"),
        "Calls to the API server, but for the watches of Sluice's own kinds.",
    ),
    Metric("sluice_watch_behind", "gauge", ("kind",), "1 while a watch has missed changes."),
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
    Metric("sluice_stores", "gauge", ("ready",), "StreamStores, by whether they are ready."),
    Metric("sluice_attempts_total", "counter", ("outcome", "reason"), "Attempts that ended."),
    Metric("sluice_copied_bytes_total", "counter", (), "Bytes of copies that were completed."),
    Metric("sluice_copied_events_total", "counter", (), "Events of copies that were completed."),
    Metric(
        "sluice_copy_seconds", "histogram", (), "From a copy's first attempt to its completion."
    ),
    Metric(
        "sluice_scope_streams_total",
        "counter",
        ("state",),
        "Streams of ScopeCopies, by what became of them: Copied, Failed or Stopped.",
    ),
    Metric(
        "sluice_streams_deleted_total",
        "counter",
        (),
        "Streams that were sealed and deleted for EphemeralStreams.",
    ),
    Metric(
        "sluice_orphaned_total",
        "counter",
        ("kind",),
        "Resources that were let go while a store held something of theirs.",
    ),
)
