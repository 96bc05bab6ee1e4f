"""The seconds of each phase of a copy, from watches and the driver's log. Pure."""

from __future__ import annotations

import json
from contextlib import suppress
from datetime import datetime
from statistics import median
from typing import TYPE_CHECKING, Any, Final, NamedTuple

from sluice.kube.api.names import UID_LABEL

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

Object = dict[str, Any]

APPLY: Final = "apply"
CREATED: Final = "pod created"
READY: Final = "Ready"

MOMENTS: Final = (
    APPLY,
    "copy accepted",
    "plan written",
    "Job made",
    CREATED,
    "pod scheduled",
    "container started",
    "driver's first line",
    "Spark up",
    "copied",
    "driver's last line",
    "driver's end seen",
    READY,
)
"""The moments in the order of time. A phase is named after the moment at which it ends."""

_CHILDREN: Final = {("ConfigMap", "plan"): "plan written", ("Job", "driver"): "Job made"}
_LINES: Final = {
    "driver started": "driver's first line",
    "spark started": "Spark up",
    "stream done": "copied",
    "driver ended": "driver's last line",
}


class Seen(NamedTuple):
    """An object as a watch reported it.

    Attributes:
        at: time of the report, in seconds since 1970 by this machine's clock.
        body: the object.
    """

    at: float
    body: Object


def moments(
    copy: str, seen: Iterable[Seen], log: str, *, kind: str = "StreamCopy"
) -> dict[str, float]:
    """Return the time of each moment of a copy that was seen, except APPLY.

    Args:
        copy: the copy's name in the namespace of the watches.
        seen: the objects that the watches reported, in the order of time.
        log: the driver's log, one JSON object per line; of several streams, the last one counts.
        kind: the copy's kind.
    """
    found: dict[str, float] = {}
    uid = pod = None
    for at, body in seen:
        meta = body["metadata"]
        if body["kind"] == kind and meta["name"] == copy:
            uid = meta["uid"]
            found.setdefault("copy accepted", at)
            if is_ready(body):
                found.setdefault(READY, at)
        elif body["kind"] == "Event":
            if pod and (body["involvedObject"].get("uid"), body["reason"]) == (pod, "Started"):
                found.setdefault("container started", at)
        elif uid is not None and meta.get("labels", {}).get(UID_LABEL) == uid:
            pod = meta["uid"] if is_driver(body, uid) else pod
            for moment in _of_child(body):
                found.setdefault(moment, at)
    return found | _logged(log)


def phases(when: Mapping[str, float]) -> dict[str, float]:
    """Return the seconds from each moment to the next known moment, by the latter's name.

    Moments come from several clocks and watches, so their order may be slightly wrong. A moment
    that seems too early counts as simultaneous with its predecessor. The sum stays right.
    """
    known = [moment for moment in MOMENTS if moment in when]
    found, last = {}, when[known[0]]
    for moment in known[1:]:
        at = max(last, when[moment])
        found[moment] = at - last
        last = at
    return found


def medians(runs: Sequence[Mapping[str, float]]) -> dict[str, float]:
    """Return the median of each phase, in the order of time."""
    return {
        moment: median(run[moment] for run in runs if moment in run)
        for moment in MOMENTS
        if any(moment in run for run in runs)
    }


def is_ready(copy: Object) -> bool:
    """Tell whether a copy's status says that it is Ready."""
    conditions = copy.get("status", {}).get("conditions", [])
    return any(c["type"] == "Ready" and c["status"] == "True" for c in conditions)


def is_driver(body: Object, uid: str) -> bool:
    """Tell whether an object is the pod of a copy's driver."""
    labels = body["metadata"].get("labels", {})
    found = (body["kind"], labels.get(UID_LABEL), labels.get("app.kubernetes.io/component"))
    return found == ("Pod", uid, "driver")


def _of_child(body: Object) -> Iterable[str]:
    """Yield the moments that an object of the copy shows."""
    component = body["metadata"]["labels"].get("app.kubernetes.io/component")
    if (body["kind"], component) == ("Pod", "driver"):
        yield CREATED
        if body["spec"].get("nodeName"):
            yield "pod scheduled"
        if body.get("status", {}).get("phase") in {"Succeeded", "Failed"}:
            yield "driver's end seen"
    elif (body["kind"], component) in _CHILDREN:
        yield _CHILDREN[body["kind"], component]


def _logged(log: str) -> dict[str, float]:
    """Return the moments that the driver's log shows, by the clock of its node."""
    found: dict[str, float] = {}
    for text in log.splitlines():
        with suppress(ValueError, KeyError, TypeError):
            line = json.loads(text)
            at = datetime.fromisoformat(line["timestamp"]).timestamp()
            found[_LINES[line["event"]]] = at
    return found
