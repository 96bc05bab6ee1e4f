"""Every situation that a StreamQuery can be in: a part of the table in `situations`."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any, Final

from sluice import errors
from sluice.api.status.query_status import StreamQueryStatus
from sluice.core.reconcile.shared.jobs import JobPhase
from sluice.core.values.trouble import Trouble
from sluice.kube.api.status import of_invalid
from support.situations.query_recorder import QueryRecorder
from support.situations.recorder import READY
from support.situations.situation import CURRENT, DOWN, FAILED, IN_PROGRESS, TERMINATING, Situation

if TYPE_CHECKING:
    from collections.abc import Callable

CHANGED: Final = errors.QueryChanged("spec.query.sql was changed", field="spec.query.sql")
LOST: Final = errors.DriverLost("the driver's pod is gone")

_made: list[Situation] = []


def _query(
    name: str, means: str, kstatus: str, **spec: Any
) -> Callable[[Callable[[QueryRecorder], None]], None]:
    """Add a state, into which the decorated function brings a new resource."""

    def add(play: Callable[[QueryRecorder], None]) -> None:
        query = QueryRecorder(name, **spec)
        play(query)
        _made.append(
            Situation(kind="StreamQuery", name=name, means=means, kstatus=kstatus, body=query.body)
        )

    return add


def _run(query: QueryRecorder) -> None:
    query.start()
    query.write()
    assert query.reason == "Running"


@_query("unseen", "applied, the operator has not looked yet", IN_PROGRESS)
def _(query: QueryRecorder) -> None:
    pass


@_query("unreadable", "this version cannot read its spec", FAILED, mode="Always")
def _(query: QueryRecorder) -> None:
    error = errors.InvalidSpec("'Always' is neither Continuous nor Once", field="spec.mode")
    before = StreamQueryStatus()
    query.body["status"] = of_invalid(before, query.body, error, bounded=False).dump()


@_query("no-store", "there is no such StreamStore", IN_PROGRESS)
def _(query: QueryRecorder) -> None:
    query.look(stores=(None, None))


@_query("store-not-ready", "the StreamStore is not ready", IN_PROGRESS)
def _(query: QueryRecorder) -> None:
    away = replace(READY, ready=False, why=str(Trouble.of(DOWN)))
    query.look(stores=(away, away))


@_query("no-claim", "the claim of its checkpoint is not there", FAILED)
def _(query: QueryRecorder) -> None:
    missing = errors.ClaimNotFound("there is no PersistentVolumeClaim 'checkpoints'")
    query.look(hindrance=Trouble.of(missing))


@_query("not-offered", "the administrator offers no queries", FAILED)
def _(query: QueryRecorder) -> None:
    refused = errors.QueriesNotOffered("this operator has no image for queries")
    query.look(hindrance=Trouble.of(refused))


@_query("starting", "its driver starts", IN_PROGRESS)
def _(query: QueryRecorder) -> None:
    query.start()


@_query("running", "it runs, and has written a batch", CURRENT)
def _(query: QueryRecorder) -> None:
    _run(query)


@_query("store-away", "it runs, and the operator cannot ask the store", IN_PROGRESS)
def _(query: QueryRecorder) -> None:
    _run(query)
    query.look(trouble=Trouble.of(DOWN))


@_query("retrying", "its driver was lost, and is made again", IN_PROGRESS)
def _(query: QueryRecorder) -> None:
    _run(query)
    query.end(LOST)


@_query("changed", "its text was changed; not looked at", IN_PROGRESS)
def _(query: QueryRecorder) -> None:
    _run(query)
    query.change(query={"sql": "SELECT upper(event) AS event FROM clicks"})


@_query("restarting", "the same, looked at: the driver is being stopped", IN_PROGRESS)
def _(query: QueryRecorder) -> None:
    _run(query)
    query.change(query={"sql": "SELECT upper(event) AS event FROM clicks"})
    query.becomes(JobPhase.RUNNING, outdated=True)
    query.look()


@_query("change-refused", "the same, and the next driver has refused the change", FAILED)
def _(query: QueryRecorder) -> None:
    _run(query)
    query.change(query={"sql": "SELECT upper(event) AS event FROM clicks"})
    query.jobs = ()
    query.start()
    query.end(CHANGED)


@_query("suspending", "spec.suspend was set: the driver is being stopped", IN_PROGRESS)
def _(query: QueryRecorder) -> None:
    _run(query)
    query.change(suspend=True)
    query.look(pods=1)


@_query("suspended", "it is suspended, and no pod of it runs", IN_PROGRESS)
def _(query: QueryRecorder) -> None:
    _run(query)
    query.change(suspend=True)
    query.jobs = ()
    query.look()


@_query("once", "mode: Once: it runs", IN_PROGRESS, mode="Once")
def _(query: QueryRecorder) -> None:
    query.start()
    query.write()


@_query("completed", "mode: Once: it is done", CURRENT, mode="Once")
def _(query: QueryRecorder) -> None:
    query.start()
    query.write()
    query.becomes(JobPhase.SUCCEEDED)
    query.look()


@_query("completed-tidied", "the same, once its Job is gone", CURRENT, mode="Once")
def _(query: QueryRecorder) -> None:
    query.start()
    query.write()
    query.becomes(JobPhase.SUCCEEDED)
    query.look()
    query.jobs = ()
    query.look()


@_query("asked-again", "the driver is asked for anew after a failure; not looked at", IN_PROGRESS)
def _(query: QueryRecorder) -> None:
    query.start()
    query.end(CHANGED)
    query.request("2026-05-05")
    query.look()


@_query("deleting", "it was deleted: the driver is being stopped", TERMINATING)
def _(query: QueryRecorder) -> None:
    _run(query)
    query.delete()
    query.look(pods=1)


QUERIES: Final = tuple(_made)
"""The states of StreamQueries."""
