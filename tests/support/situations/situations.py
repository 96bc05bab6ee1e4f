"""Every situation that a resource can be in, as an object of the API server.

`SITUATIONS` is the table: a name, an account of what happened, the status that kstatus has to
compute, and the object. Golden files hold the health that Argo CD computes. `docs/gitops.md` shows
both.
"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any, Final

from sluice import errors
from sluice.api.status.copy_status import StreamCopyStatus
from sluice.core.reconcile.copies.actions import StartHook
from sluice.core.reconcile.copies.world import HookSeen
from sluice.core.reconcile.shared.jobs import JobPhase
from sluice.core.values.model import StoreHealth
from sluice.core.values.trouble import Trouble
from sluice.core.workloads import access
from sluice.core.workloads.answers import CopyGap, Planned
from sluice.kube.api.status import of_invalid
from support.situations.archive_situations import ARCHIVES
from support.situations.ephemeral_situations import EPHEMERALS
from support.situations.followed_scope_situations import FOLLOWED_SCOPES
from support.situations.followed_situations import FOLLOWED
from support.situations.query_situations import QUERIES
from support.situations.recorder import READY, WHOLE, CopyRecorder, StoreRecorder
from support.situations.scope_situations import SCOPES
from support.situations.situation import CURRENT, DOWN, FAILED, IN_PROGRESS, TERMINATING, Situation

if TYPE_CHECKING:
    from collections.abc import Callable

HEALTH = StoreHealth(latency=0.004, protocol=17)
LOST = errors.DriverLost("the driver's pod is gone")


HOOKS = {"before": {"cronJobRef": {"name": "quiesce"}}}

_made: list[Situation] = []


def _copy(
    name: str, means: str, kstatus: str, **spec: Any
) -> Callable[[Callable[[CopyRecorder], None]], None]:
    """Add a state, into which the decorated function brings a new StreamCopy."""

    def add(play: Callable[[CopyRecorder], None]) -> None:
        copy = CopyRecorder(name, **spec)
        play(copy)
        _made.append(
            Situation(kind="StreamCopy", name=name, means=means, kstatus=kstatus, body=copy.body)
        )

    return add


def _store(
    name: str, means: str, kstatus: str
) -> Callable[[Callable[[StoreRecorder], None]], None]:
    """Add a state, into which the decorated function brings a new StreamStore."""

    def add(play: Callable[[StoreRecorder], None]) -> None:
        store = StoreRecorder(name)
        play(store)
        _made.append(
            Situation(kind="StreamStore", name=name, means=means, kstatus=kstatus, body=store.body)
        )

    return add


def _stop(copy: CopyRecorder) -> None:
    copy.start()
    copy.run(0.4)
    copy.change(suspend=True)
    copy.look(jobs=(copy.job(JobPhase.RUNNING),))


def _succeed(copy: CopyRecorder) -> None:
    copy.start()
    copy.run(1.0)
    copy.finish()


def _hook(copy: CopyRecorder, phase: JobPhase) -> None:
    """Bring a copy to its hook, whose Job is in a phase."""
    decision = copy.look(answer=Planned(plan=copy.plan))
    (hook,) = [one.job for one in decision.actions if isinstance(one, StartHook)]
    words = "BackoffLimitExceeded: Job has reached the specified backoff limit"
    copy.look(hooks={"before": HookSeen(name=hook, phase=phase, made=copy.now, words=words)})


@_store("unseen", "applied, the operator has not looked yet", IN_PROGRESS)
def _(store: StoreRecorder) -> None:
    pass


@_store("reachable", "the store answers", CURRENT)
def _(store: StoreRecorder) -> None:
    store.look(HEALTH)


@_store("changed", "it was ready, then its spec was changed; not looked at since", IN_PROGRESS)
def _(store: StoreRecorder) -> None:
    store.look(HEALTH)
    store.change(pravega={"controllerURI": "tcp://127.0.0.2:9090"})


@_store("unavailable", "no connection; it is asked again and again", IN_PROGRESS)
def _(store: StoreRecorder) -> None:
    store.look(DOWN)


@_store("lost", "it was ready, and does not answer any more", IN_PROGRESS)
def _(store: StoreRecorder) -> None:
    store.look(HEALTH)
    store.look(DOWN)


@_store("wrong-password", "the store does not take the login", FAILED)
def _(store: StoreRecorder) -> None:
    store.look(errors.AuthenticationFailed("the store does not take the user 'writer'"))


@_store("no-secret", "there is no such Secret yet", IN_PROGRESS)
def _(store: StoreRecorder) -> None:
    field = "spec.pravega.auth.basic.secretRef.name"
    store.look(errors.SecretNotFound("there is no Secret 'login'", field=field))


@_store("deleted-in-use", "it was deleted, and copies need it still", TERMINATING)
def _(store: StoreRecorder) -> None:
    users = ("StreamCopy orders", "StreamCopy payments")
    store.look(HEALTH, users=users)
    store.delete()
    store.look(HEALTH, users=users)


@_copy("unseen", "applied, the operator has not looked yet", IN_PROGRESS)
def _(copy: CopyRecorder) -> None:
    pass


@_copy("no-store", "there is no such StreamStore", IN_PROGRESS)
def _(copy: CopyRecorder) -> None:
    copy.look(source=None)


@_copy("not-shared", "another namespace shares no such StreamStore", IN_PROGRESS)
def _(copy: CopyRecorder) -> None:
    field = "spec.source.storeRef.name"
    copy.look(source=Trouble.of(access.not_shared("platform/main", field=field)))


@_copy("access-denied", "the StreamStore's access does not allow what it needs", IN_PROGRESS)
def _(copy: CopyRecorder) -> None:
    denied = "StreamStore 'local' does not allow to Read"
    copy.look(source=Trouble.of(errors.AccessDenied(denied, field="spec.source.storeRef.name")))


@_copy("store-not-ready", "a StreamStore is not ready", IN_PROGRESS)
def _(copy: CopyRecorder) -> None:
    copy.look(target=replace(READY, ready=False, why=str(Trouble.of(DOWN))))


@_copy("starting", "the driver's Job was made", IN_PROGRESS)
def _(copy: CopyRecorder) -> None:
    copy.start()


@_copy("unschedulable", "no node takes the driver's pod", IN_PROGRESS)
def _(copy: CopyRecorder) -> None:
    copy.start()
    error = errors.Unschedulable("0/3 nodes are available: 3 Insufficient memory.")
    copy.look(jobs=(copy.job(JobPhase.PENDING, error=error),))


@_copy("copying", "the driver stages bytes", IN_PROGRESS)
def _(copy: CopyRecorder) -> None:
    copy.start()
    copy.run(0.4)


@_copy("unreadable-progress", "the driver runs, and the store tells no progress", IN_PROGRESS)
def _(copy: CopyRecorder) -> None:
    copy.start()
    copy.run(0.4)
    copy.look(jobs=(copy.job(JobPhase.RUNNING),), trouble=Trouble.of(DOWN))


@_copy("verifying", "all bytes are staged", IN_PROGRESS)
def _(copy: CopyRecorder) -> None:
    copy.start()
    copy.run(1.0)


@_copy("publishing", "the target is whole, the driver tidies up", IN_PROGRESS)
def _(copy: CopyRecorder) -> None:
    copy.start()
    copy.run(1.0)
    reading = copy.reading(1.0, published=True)
    copy.look(jobs=(copy.job(JobPhase.RUNNING),), reading=reading)


@_copy("retrying", "an attempt failed, another one follows", IN_PROGRESS)
def _(copy: CopyRecorder) -> None:
    copy.start()
    copy.run(0.2)
    copy.lose(LOST)


@_copy("no-source", "there is no such stream; it is looked for again now and then", FAILED)
def _(copy: CopyRecorder) -> None:
    error = errors.SourceNotFound("there is no stream in/orders", field="spec.source.stream")
    copy.look(trouble=Trouble.of(error))


@_copy("no-profile", "the administrator offers no such profile", FAILED, runtime={"profile": "big"})
def _(copy: CopyRecorder) -> None:
    error = errors.ProfileNotFound(
        "there is no runtime profile 'big'; offered are: default", field="spec.runtime.profile"
    )
    copy.look(profile=Trouble.of(error), answer=Planned(plan=copy.plan))


@_copy("damaged", "what was staged differs from the source", FAILED)
def _(copy: CopyRecorder) -> None:
    copy.start()
    copy.run(0.9)
    copy.lose(errors.DigestMismatch("chunk 3 of segment 1 differs from the source"), staged=1.0)


@_copy("gave-up", "more attempts failed in a row than spec.backoffLimit", FAILED, backoffLimit=0)
def _(copy: CopyRecorder) -> None:
    copy.start()
    copy.lose(LOST, staged=0.0)


@_copy("too-late", "spec.activeDeadlineSeconds are over", FAILED, activeDeadlineSeconds=60)
def _(copy: CopyRecorder) -> None:
    copy.start()
    copy.run(0.4)
    copy.later(60)
    copy.look(jobs=(copy.job(JobPhase.RUNNING),), reading=copy.reading(0.5))


@_copy("not-understood", "this version of the operator cannot read the spec", FAILED)
def _(copy: CopyRecorder) -> None:
    error = errors.InvalidSpec("is no field of a StreamCopy", field="spec.speed")
    copy.change(speed="Fast")
    copy.body["status"] = of_invalid(StreamCopyStatus(), copy.body, error, bounded=True).dump()


@_copy("mended", "it had failed, then its spec was changed; not looked at since", IN_PROGRESS)
def _(copy: CopyRecorder) -> None:
    error = errors.SourceNotFound("there is no stream in/orders", field="spec.source.stream")
    copy.look(trouble=Trouble.of(error))
    copy.change(backoffLimit=2)


@_copy("hook-runs", "the hook before the copy runs", IN_PROGRESS, hooks=HOOKS)
def _(copy: CopyRecorder) -> None:
    _hook(copy, JobPhase.RUNNING)


@_copy("hook-failed", "the hook before the copy failed", FAILED, hooks=HOOKS)
def _(copy: CopyRecorder) -> None:
    _hook(copy, JobPhase.FAILED)


@_copy("hook-missing", "there is no CronJob of the hook's name", FAILED, hooks=HOOKS)
def _(copy: CopyRecorder) -> None:
    field = "spec.hooks.before.cronJobRef.name"
    missing = errors.HookNotFound("there is no CronJob 'quiesce'", field=field)
    copy.look(answer=Planned(plan=copy.plan), hooks={"before": Trouble.of(missing)})


@_copy("suspended", "spec.suspend was true from the start", IN_PROGRESS, suspend=True)
def _(copy: CopyRecorder) -> None:
    copy.look(answer=Planned(plan=copy.plan))


@_copy("stopping", "spec.suspend was set while it ran: the driver is being stopped", IN_PROGRESS)
def _(copy: CopyRecorder) -> None:
    _stop(copy)


@_copy("stopping-pods", "the Job is gone, its pod has some seconds to end", IN_PROGRESS)
def _(copy: CopyRecorder) -> None:
    _stop(copy)
    copy.later(5)
    copy.look(pods=1)


@_copy("suspended-midway", "the driver is gone, what it staged stays", IN_PROGRESS)
def _(copy: CopyRecorder) -> None:
    _stop(copy)
    copy.later(5)
    copy.look()


@_copy("succeeded", "the target is whole", CURRENT)
def _(copy: CopyRecorder) -> None:
    _succeed(copy)


@_copy(
    "succeeded-gaps",
    "the source had lost bytes before they were read",
    CURRENT,
    onTruncation="Record",
)
def _(copy: CopyRecorder) -> None:
    copy.start()
    copy.run(1.0)
    copy.finish(replace(WHOLE, gaps=(CopyGap(0, 2, 1080, 2160),)))


@_copy("succeeded-changed", "it is done, then spec.suspend was set; not looked at", IN_PROGRESS)
def _(copy: CopyRecorder) -> None:
    _succeed(copy)
    copy.change(suspend=True)


@_copy("succeeded-changed-seen", "the same, looked at: what is done stays done", CURRENT)
def _(copy: CopyRecorder) -> None:
    _succeed(copy)
    copy.change(suspend=True)
    copy.look()


@_copy("asked-again", "it is done, then sluice.dev/requestedAt was set; not looked at", CURRENT)
def _(copy: CopyRecorder) -> None:
    _succeed(copy)
    copy.request("2026-05-05")


@_copy("asked-again-whole", "the same, looked at: the target is whole still", CURRENT)
def _(copy: CopyRecorder) -> None:
    _succeed(copy)
    copy.request("2026-05-05")
    copy.look(answer=WHOLE, positions=WHOLE.positions)


@_copy("asked-again-gone", "the same, looked at: the target is gone, it is copied", IN_PROGRESS)
def _(copy: CopyRecorder) -> None:
    _succeed(copy)
    copy.request("2026-05-05")
    copy.start()


@_copy("deleting", "it was deleted while it ran: the driver is being stopped", TERMINATING)
def _(copy: CopyRecorder) -> None:
    copy.start()
    copy.run(0.4)
    copy.delete()
    copy.look(jobs=(copy.job(JobPhase.RUNNING),), pods=1)


@_copy("deletion-stuck", "the same, and the store does not answer", TERMINATING)
def _(copy: CopyRecorder) -> None:
    copy.start()
    copy.run(0.4)
    copy.delete()
    copy.fail(DOWN)


SITUATIONS: Final = (
    *_made,
    *FOLLOWED,
    *SCOPES,
    *FOLLOWED_SCOPES,
    *ARCHIVES,
    *EPHEMERALS,
    *QUERIES,
)
