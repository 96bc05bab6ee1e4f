"""From what was seen of a copy to the seconds of each of its phases. Pure."""

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
"""In the order in which they come; a phase is named by the moment at which it ends."""

_CHILDREN: Final = {("ConfigMap", "plan"): "plan written", ("Job", "driver"): "Job made"}
_LINES: Final = {
    "driver started": "driver's first line",
    "spark started": "Spark up",
    "stream done": "copied",
    "driver ended": "driver's last line",
}


class Seen(NamedTuple):
    """An object as a watch told of it.

    Attributes:
        at: when, in seconds since 1970, by this machine's clock.
        body: the object.
    """

    at: float
    body: Object


def moments(
    copy: str, seen: Iterable[Seen], log: str, *, kind: str = "StreamCopy"
) -> dict[str, float]:
    """When each moment of a copy was, as far as it was seen; APPLY is not seen from here.

    Args:
        copy: the copy's name; its namespace is the watches'.
        seen: what they told, in the order of time.
        log: its driver's, a JSON object a line; of several streams the last one counts.
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
    """Seconds from each moment to the next one that is known, named by the latter.

    Moments come from several clocks and watches, so one may seem to precede the one before it by a
    little: it is taken to be at the same time, and the sum stays what it is.
    """
    known = [moment for moment in MOMENTS if moment in when]
    found, last = {}, when[known[0]]
    for moment in known[1:]:
        at = max(last, when[moment])
        found[moment] = at - last
        last = at
    return found


def medians(runs: Sequence[Mapping[str, float]]) -> dict[str, float]:
    """The median of each phase, in the order of time."""
    return {
        moment: median(run[moment] for run in runs if moment in run)
        for moment in MOMENTS
        if any(moment in run for run in runs)
    }


def is_ready(copy: Object) -> bool:
    """Whether a copy says that it is Ready."""
    conditions = copy.get("status", {}).get("conditions", [])
    return any(c["type"] == "Ready" and c["status"] == "True" for c in conditions)


def is_driver(body: Object, uid: str) -> bool:
    """Whether an object is the pod of a copy's driver."""
    labels = body["metadata"].get("labels", {})
    found = (body["kind"], labels.get(UID_LABEL), labels.get("app.kubernetes.io/component"))
    return found == ("Pod", uid, "driver")


def _of_child(body: Object) -> Iterable[str]:
    """The moments that an object of the copy's is a sign of."""
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
    """The moments that lines of the driver's log are a sign of, by the clock of its node."""
    found: dict[str, float] = {}
    for text in log.splitlines():
        with suppress(ValueError, KeyError, TypeError):
            line = json.loads(text)
            at = datetime.fromisoformat(line["timestamp"]).timestamp()
            found[_LINES[line["event"]]] = at
    return found
