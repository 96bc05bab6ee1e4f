"""Every reason, event and metric, with the sentence that says what it means and what to do.

Conditions and events share their reasons. Those of failures are the names of the errors
(`sluice.errors`), whose texts stand there; the others are here. `docs/conditions.md` is generated
from both.
"""

from __future__ import annotations

from typing import Final, NamedTuple

from sluice import errors


class Reason(NamedTuple):
    """A reason of conditions and events.

    Attributes:
        name: one CamelCase word.
        kinds: the kinds that say it.
        means: what it means.
        remedy: what to do.
        warning: whether events say it as a warning.
    """

    name: str
    kinds: tuple[str, ...]
    means: str
    remedy: str = "Nothing."
    warning: bool = False


_COPY, _STORE = ("StreamCopy",), ("StreamStore",)

NORMAL: Final = (
    Reason("Reachable", _STORE, "The store answers, and knows the user."),
    Reason("InUse", _STORE, "It was deleted, and waits for the copies that need it."),
    Reason("Starting", _COPY, "The plan is written, and the driver of an attempt starts."),
    Reason("Copying", _COPY, "A driver stages bytes; readers see none of them yet."),
    Reason("Verifying", _COPY, "All bytes are staged; they are read again and compared."),
    Reason("Publishing", _COPY, "The bytes are in the target; the driver tidies up."),
    Reason("Copied", _COPY, "The target is whole and was verified before it was published."),
    Reason("DigestsMatch", _COPY, "What was staged is, byte for byte, what the source holds."),
    Reason(
        "Suspended",
        _COPY,
        "Nothing runs; the plan can be looked at, and what is staged stays.",
        "Set spec.suspend to false to go on.",
    ),
    Reason("Stopping", _COPY, "The driver is being stopped; what is staged stays."),
    Reason("Deleting", _COPY, "The copy was deleted: its driver stops, its staging is dropped."),
    Reason(
        "Orphaned",
        _COPY,
        "The copy was let go, and what it had staged is left in a store.",
        "Drop it with `sluice abort`, when the store can be reached again.",
        warning=True,
    ),
)

_FAILURES: Final = {
    cls.__name__: cls
    for cls in vars(errors).values()
    if isinstance(cls, type) and issubclass(cls, errors.SluiceError)
}


def failures() -> tuple[Reason, ...]:
    """The reasons that are errors, in the order of their tree."""
    return tuple(
        Reason(
            name,
            ("StreamCopy", "StreamStore"),
            " ".join((cls.__doc__ or "").strip().splitlines()[0].split()),
            cls.default_remedy,
            warning=True,
        )
        for name, cls in _FAILURES.items()
        if not name.endswith("Error")
    )


_WARNINGS: Final = frozenset(
    {reason.name for reason in NORMAL if reason.warning} | set(_FAILURES) | {"Interrupted"}
)


def is_warning(reason: str) -> bool:
    """Whether an event with this reason is a warning."""
    return reason in _WARNINGS


class Metric(NamedTuple):
    """A metric: its name, kind, labels, and what it means."""

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
        "Resources looked at, by what came of it: ok, waiting, failed, error.",
    ),
    Metric("sluice_reconcile_seconds", "histogram", ("kind",), "Time to look at a resource once."),
    Metric("sluice_watch_behind", "gauge", ("kind",), "1 while a watch has missed changes."),
    Metric("sluice_copies", "gauge", ("state",), "StreamCopies by what their condition says."),
    Metric("sluice_stores", "gauge", ("ready",), "StreamStores, by whether they are ready."),
    Metric("sluice_attempts_total", "counter", ("outcome", "reason"), "Attempts that ended."),
    Metric("sluice_copied_bytes_total", "counter", (), "Bytes of copies that were completed."),
    Metric("sluice_copied_events_total", "counter", (), "Events of copies that were completed."),
    Metric(
        "sluice_copy_seconds", "histogram", (), "From a copy's first attempt to its completion."
    ),
    Metric(
        "sluice_orphaned_total",
        "counter",
        ("kind",),
        "Resources that were let go while a store held something of theirs.",
    ),
)
