"""Every reason, event and metric, with the sentence that says what it means and what to do.

Conditions and events share their reasons. Those of failures are the names of the errors
(`sluice.errors`), whose texts stand there; the others are here. `docs/conditions.md` is generated
from both.
"""

from __future__ import annotations

from enum import StrEnum
from typing import Final, NamedTuple

from sluice import errors
from sluice.errors import Category

PAGE: Final = "docs/conditions.md"
"""Where each reason is explained; see `anchor`."""


class Place(StrEnum):
    """Where a reason is said."""

    READY = "Ready"
    """In the condition Ready and those that go with it, and in an event when it is news."""
    VERIFIED = "Verified"
    """In the condition Verified."""
    DRIFTED = "Drifted"
    """In the condition Drifted."""
    EVENT = "event"
    """In an event only."""
    HISTORY = "history"
    """In status.history only, as the reason of an attempt's end."""


class Reason(NamedTuple):
    """A reason of conditions and events.

    Attributes:
        name: one CamelCase word.
        kinds: the kinds that say it.
        means: what it means.
        remedy: what to do.
        warning: whether events say it as a warning.
        place: where it is said.
    """

    name: str
    kinds: tuple[str, ...]
    means: str
    remedy: str = "Nothing."
    warning: bool = False
    place: Place = Place.READY


class Failure(NamedTuple):
    """A reason that is a failure. Events say it as a warning.

    Attributes:
        name: one CamelCase word, of an error or of the driver.
        kinds: the kinds that say it.
        means: what it means.
        remedy: what to do, where the error does not know better.
        category: whose move it is.
        retryable: whether trying again can help.
        waits: whether a StreamCopy waits for it to pass, and does not count it as a failure.
    """

    name: str
    kinds: tuple[str, ...]
    means: str
    remedy: str
    category: Category
    retryable: bool
    waits: bool = False


_COPY, _STORE, _EPHEMERAL = ("StreamCopy",), ("StreamStore",), ("EphemeralStream",)

NORMAL: Final = (
    Reason("Reachable", _STORE, "The store answers, and knows the user."),
    Reason("InUse", _STORE, "It was deleted, and waits for the copies and streams that need it."),
    Reason("Starting", _COPY, "The plan is written, and the driver of an attempt starts."),
    Reason("Copying", _COPY, "A driver stages bytes; readers see none of them yet."),
    Reason("Verifying", _COPY, "All bytes are staged; they are read again and compared."),
    Reason("Publishing", _COPY, "The bytes are in the target; the driver tidies up."),
    Reason("Copied", _COPY, "The target is whole and was verified before it was published."),
    Reason(
        "DigestsMatch",
        _COPY,
        "What was staged is, byte for byte, what the source holds.",
        place=Place.VERIFIED,
    ),
    Reason(
        "Suspended",
        (*_COPY, *_EPHEMERAL),
        "Nothing runs, is made or released; what is staged, and each stream, stays.",
        "Set spec.suspend to false to go on.",
    ),
    Reason("Stopping", _COPY, "The driver is being stopped; what is staged stays."),
    Reason(
        "SpecChanged",
        _COPY,
        "spec.runtime was changed before the attempt's driver ran: another attempt took its place.",
        place=Place.HISTORY,
    ),
    Reason(
        "Deleting",
        (*_COPY, *_EPHEMERAL),
        "It was deleted: a copy's driver stops and its staging is dropped, streams are let go.",
    ),
    Reason(
        "Orphaned",
        (*_COPY, *_EPHEMERAL),
        "It was let go, and what it had is left in a store: what was staged, or the streams.",
        "When the store can be reached again, drop what a copy staged with `sluice abort`, and "
        "streams with `sluice streams stale --delete`.",
        warning=True,
        place=Place.EVENT,
    ),
    Reason(
        "WaitingForOwner",
        _EPHEMERAL,
        "None of the owners was there yet, so no stream is made.",
        "Apply an owner, or correct spec.owners.",
    ),
    Reason("Making", _EPHEMERAL, "The stream is made or adopted, or a prefix is marked."),
    Reason("Configuring", _EPHEMERAL, "The stream is given the configuration of the spec."),
    Reason("Claimed", _EPHEMERAL, "The streams that are there are owned."),
    Reason(
        "StreamMissing",
        _EPHEMERAL,
        "Somebody else deleted the stream, with what was in it. It is made again.",
        "Find out who deletes streams of Sluice.",
        warning=True,
    ),
    Reason(
        "ConfigDrifted",
        _EPHEMERAL,
        "Somebody else changed the configuration of the stream.",
        "Change spec.config, or annotate the resource with sluice.dev/requestedAt to have the "
        "stream changed back.",
        place=Place.DRIFTED,
    ),
    Reason(
        "Conflict",
        _EPHEMERAL,
        "An older resource, or another one that has the stream, claims the same.",
        "Delete one of the two, or name other streams.",
        warning=True,
    ),
    Reason(
        "OwnersDeleted",
        _EPHEMERAL,
        "The owners are gone, and Kubernetes' garbage collector deletes the resource next.",
    ),
    Reason(
        "OwnerOrphaned",
        _EPHEMERAL,
        "The owners were deleted with --cascade=orphan, so the streams stay.",
        "Make an owner again, which takes the streams over, or delete the resource.",
        warning=True,
    ),
    Reason(
        "GracePeriod",
        _EPHEMERAL,
        "Nobody needs the streams any more, and a successor may still take them over.",
    ),
    Reason(
        "StillRead",
        _EPHEMERAL,
        "The streams are released when copies have read them, or after an hour.",
    ),
    Reason("Releasing", _EPHEMERAL, "The streams are let go, and the resource stays."),
    Reason(
        "Released",
        _EPHEMERAL,
        "The streams were let go for good. No stream is made again.",
        "Nothing; the resource can be deleted.",
    ),
)

_DRIVERS_OWN: Final = (
    Failure(
        "Interrupted",
        _COPY,
        "The driver was told to stop before the copy was complete.",
        "Nothing: the next attempt goes on where this one stopped.",
        Category.INFRASTRUCTURE,
        retryable=True,
    ),
    Failure(
        "InternalError",
        _COPY,
        "A bug of the driver.",
        "Report it with the log of the driver's pod.",
        Category.INFRASTRUCTURE,
        retryable=True,
    ),
)

ABSTRACT: Final = frozenset(
    {"SluiceError", "SpecError", "BackendError", "SegmentError", "SchedulingError"}
)
"""Errors that only group others: nobody raises them, so no condition says them."""

OF_COMMANDS: Final = frozenset({"ReaderGroupNotFound", "ReaderGroupBusy", "ReaderGroupExists"})
"""What only the command line comes to, so no condition says it either."""

_SAID_BY_STORES: Final = frozenset(
    {
        "InvalidSpec",
        "SecretNotFound",
        "StoreUnavailable",
        "StoreTimeout",
        "StoreBusy",
        "AuthenticationFailed",
        "PermissionDenied",
        "StoreRejected",
        "ProtocolError",
        "ApiUnavailable",
    }
)
"""What asking a StreamStore whether it is there can come to."""

_SAID_BY_EPHEMERALS: Final = _SAID_BY_STORES | {
    "AccessDenied",
    "StoreNotFound",
    "StoreNotReady",
    "ScopeNotFound",
    "ResourceChanged",
    "StreamExists",
    "OwnerForbidden",
    "OwnerKindNotFound",
}
"""What keeps an EphemeralStream from making, changing or releasing streams."""

_OF_EPHEMERALS: Final = frozenset(
    {"ResourceChanged", "StreamExists", "OwnerForbidden", "OwnerKindNotFound"}
)
"""What nothing else says."""

_WAITED_FOR: Final = frozenset({"StoreNotFound", "StoreNotReady"})
"""What a copy is woken up for when it has passed."""

_PLAINLY: Final = {
    "SegmentTruncated": "Bytes that were asked for are gone from the segment.",
    "WrongHost": "Another server owns the segment now.",
    "InvalidEventNumber": "Another driver of the same copy was faster.",
    "ConditionFailed": "The segment holds another value than was expected.",
}
"""What errors mean whose own texts speak to programmers."""

_ERRORS: Final = {
    cls.__name__: cls
    for cls in (getattr(errors, name) for name in errors.__all__)
    if isinstance(cls, type) and issubclass(cls, errors.SluiceError)
}


def _kinds(name: str) -> tuple[str, ...]:
    """The kinds that can say a failure."""
    return (
        *(_STORE if name in _SAID_BY_STORES else ()),
        *(_COPY if name not in _OF_EPHEMERALS else ()),
        *(_EPHEMERAL if name in _SAID_BY_EPHEMERALS else ()),
    )


def failures() -> tuple[Failure, ...]:
    """The reasons that are failures: errors in the order of their tree, then the driver's own."""
    return (
        *(
            Failure(
                name,
                _kinds(name),
                _PLAINLY.get(name) or " ".join((cls.__doc__ or "").strip().splitlines()[0].split()),
                cls.default_remedy,
                cls.category,
                retryable=cls.retryable,
                waits=name in _WAITED_FOR,
            )
            for name, cls in _ERRORS.items()
            if name not in ABSTRACT | OF_COMMANDS
        ),
        *_DRIVERS_OWN,
    )


_WARNINGS: Final = frozenset(
    {reason.name for reason in NORMAL if reason.warning}
    | {failure.name for failure in failures()}
    | ABSTRACT
)


def is_warning(reason: str) -> bool:
    """Whether an event with this reason is a warning."""
    return reason in _WARNINGS


def anchor(reason: str) -> str:
    """Where a reason is explained: a page of the project and a place in it."""
    return f"{PAGE}#{reason.lower()}"


OUTCOMES: Final = (
    ("Succeeded", "The target was whole afterwards."),
    ("Failed", "The reason is a failure."),
    ("Suspended", "spec.suspend was set while it ran."),
    ("Replaced", "spec.runtime was changed before its driver ran."),
)
"""How attempts end, in status.history and in the metric sluice_attempts_total."""


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
    Metric("sluice_copies", "gauge", ("state",), "StreamCopies by what their condition says."),
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
