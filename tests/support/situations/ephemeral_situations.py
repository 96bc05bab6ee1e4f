"""Every situation that an EphemeralStream can be in: a part of the table in `situations`."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any, Final

from sluice import errors
from sluice.api.status.ephemeral_status import EphemeralStreamStatus
from sluice.core.claims.claim import Holding, Ownership
from sluice.core.reconcile.ephemeral.world import OwnerSeen, Rival
from sluice.core.values.trouble import Trouble
from sluice.kube.api.status import of_invalid
from support.situations.ephemeral_recorder import APP, HELPER, LOAD, EphemeralRecorder
from support.situations.recorder import READY
from support.situations.situation import CURRENT, DOWN, FAILED, IN_PROGRESS, TERMINATING, Situation

if TYPE_CHECKING:
    from collections.abc import Callable

FOREIGN: Final = Holding(scope=True, ownership=Ownership.UNOWNED, created=5)
TAKEN: Final = Holding(
    scope=True,
    ownership=Ownership.OTHERS,
    created=5,
    holder="EphemeralStream team-a/elder",
    holder_uid="uid-of-elder",
)
DRIFTED: Final = replace(HELPER, drift=("scaling is Fixed/0/0/5, not Fixed/0/0/1",))
READERS: Final = ("StreamCopy team-a/orders",)
OWNED: Final = {"owners": [APP]}
OBSERVED: Final = {"owners": [APP], "tracking": "Observe"}
RUN: Final = {"owners": [LOAD], "releaseWhen": "OwnersFinished"}

_made: list[Situation] = []


def _ephemeral(
    name: str, means: str, kstatus: str, **spec: Any
) -> Callable[[Callable[[EphemeralRecorder], None]], None]:
    """Add a state, into which the decorated function brings a new resource."""

    def add(play: Callable[[EphemeralRecorder], None]) -> None:
        stream = EphemeralRecorder(name, **spec)
        play(stream)
        _made.append(
            Situation(
                kind="EphemeralStream", name=name, means=means, kstatus=kstatus, body=stream.body
            )
        )

    return add


def _unreadable(error: errors.SluiceError) -> list[OwnerSeen]:
    return [OwnerSeen(trouble=Trouble.of(error))]


def _orphaned(stream: EphemeralRecorder) -> None:
    """Delete the owners with --cascade=orphan, which removes the references to them."""
    stream.claim()
    stream.lose_owners()
    del stream.body["metadata"]["ownerReferences"]
    stream.look()


@_ephemeral("unseen", "applied, the operator has not looked yet", IN_PROGRESS)
def _(stream: EphemeralRecorder) -> None:
    pass


@_ephemeral("no-owner", "no owner is there yet: no stream is made", IN_PROGRESS, **OWNED)
def _(stream: EphemeralRecorder) -> None:
    stream.owners = [OwnerSeen()]
    stream.look()


@_ephemeral("no-right", "the operator may not read the owner's kind", FAILED, **OWNED)
def _(stream: EphemeralRecorder) -> None:
    stream.owners = _unreadable(errors.OwnerForbidden("deployments.apps cannot be read"))
    stream.look()


@_ephemeral("no-kind", "the cluster does not know the owner's kind", FAILED, **OWNED)
def _(stream: EphemeralRecorder) -> None:
    stream.owners = _unreadable(errors.OwnerKindNotFound("the cluster knows no Deployment"))
    stream.look()


@_ephemeral("no-store", "there is no such StreamStore", IN_PROGRESS)
def _(stream: EphemeralRecorder) -> None:
    stream.look(store=None)


@_ephemeral("store-not-ready", "the StreamStore is not ready", IN_PROGRESS)
def _(stream: EphemeralRecorder) -> None:
    stream.look(store=replace(READY, ready=False, why=str(Trouble.of(DOWN))))


@_ephemeral("unavailable", "the store does not answer", IN_PROGRESS)
def _(stream: EphemeralRecorder) -> None:
    stream.look(holding=None, trouble=Trouble.of(DOWN))


@_ephemeral("no-scope", "there is no such scope, and it is not to be made", IN_PROGRESS)
def _(stream: EphemeralRecorder) -> None:
    stream.look(holding=Holding(scope=False))


@_ephemeral("refused", "the StreamStore's access does not allow it", FAILED)
def _(stream: EphemeralRecorder) -> None:
    error = errors.AccessDenied("StreamStore 'local' does not allow to Create")
    stream.look(refused=Trouble.of(error))


@_ephemeral("no-permission", "the store refuses its user to make the stream", FAILED)
def _(stream: EphemeralRecorder) -> None:
    stream.look()
    stream.fail(errors.PermissionDenied("the user 'writer' may not make in/helper"))


@_ephemeral("foreign", "a stream of the name is there, and Sluice did not make it", FAILED)
def _(stream: EphemeralRecorder) -> None:
    stream.look(holding=FOREIGN)


@_ephemeral("conflict", "an older EphemeralStream has the stream", FAILED)
def _(stream: EphemeralRecorder) -> None:
    rival = Rival(name="EphemeralStream team-a/elder", uid="uid-of-elder")
    stream.look(holding=TAKEN, rival=rival)


@_ephemeral("left", "an EphemeralStream that is gone has left the stream behind", FAILED)
def _(stream: EphemeralRecorder) -> None:
    stream.look(holding=TAKEN, left=True)


@_ephemeral("not-understood", "this version of the operator cannot read the spec", FAILED)
def _(stream: EphemeralRecorder) -> None:
    error = errors.InvalidSpec("is no field of an EphemeralStream", field="spec.mode")
    stream.change(mode="Shared")
    status = of_invalid(EphemeralStreamStatus(), stream.body, error, bounded=False)
    stream.body["status"] = status.dump()


@_ephemeral("making", "the stream is made", IN_PROGRESS, **OWNED)
def _(stream: EphemeralRecorder) -> None:
    stream.look()
    stream.look()


@_ephemeral("adopting", "a stream that was there is adopted", IN_PROGRESS, adopt="IfUnowned")
def _(stream: EphemeralRecorder) -> None:
    stream.look(holding=FOREIGN)


@_ephemeral("claimed", "the stream is there, and so is its owner", CURRENT, **OWNED)
def _(stream: EphemeralRecorder) -> None:
    stream.claim()


@_ephemeral("without-owners", "the stream is there; it lives as long as the resource", CURRENT)
def _(stream: EphemeralRecorder) -> None:
    stream.claim()


@_ephemeral(
    "prefix", "the streams under a prefix are counted", CURRENT, **OWNED, streamPrefix="app-"
)
def _(stream: EphemeralRecorder) -> None:
    stream.claim()


@_ephemeral("shared", "one of two owners is gone", CURRENT, owners=[APP, LOAD])
def _(stream: EphemeralRecorder) -> None:
    stream.claim()
    stream.owners[0] = OwnerSeen()
    stream.look(holding=HELPER)


@_ephemeral("owner-unreadable", "it is there, and its owner cannot be read now", CURRENT, **OWNED)
def _(stream: EphemeralRecorder) -> None:
    stream.claim()
    stream.owners = _unreadable(errors.ApiUnavailable("the API server said: 500"))
    stream.look(holding=HELPER)


@_ephemeral("drifted", "another client changed the stream's configuration", CURRENT)
def _(stream: EphemeralRecorder) -> None:
    stream.claim()
    stream.later(300)
    stream.look(holding=DRIFTED)


@_ephemeral("changed", "it was ready, then its spec was changed; not looked at", IN_PROGRESS)
def _(stream: EphemeralRecorder) -> None:
    stream.claim()
    stream.change(config={"scaling": {"minSegments": 3}})


@_ephemeral("configuring", "the same, looked at: the stream is changed", IN_PROGRESS)
def _(stream: EphemeralRecorder) -> None:
    stream.claim()
    stream.change(config={"scaling": {"minSegments": 3}})
    stream.look(holding=replace(HELPER, drift=("scaling is Fixed/0/0/1, not Fixed/0/0/3",)))


@_ephemeral("asked-again", "drifted, then sluice.dev/requestedAt was set; not looked at", CURRENT)
def _(stream: EphemeralRecorder) -> None:
    stream.claim()
    stream.later(300)
    stream.look(holding=DRIFTED)
    stream.request("2026-05-05")


@_ephemeral("asked-again-drifted", "the same, looked at: it is changed back", IN_PROGRESS)
def _(stream: EphemeralRecorder) -> None:
    stream.claim()
    stream.later(300)
    stream.look(holding=DRIFTED)
    stream.request("2026-05-05")
    stream.look(holding=DRIFTED)


@_ephemeral("missing", "another client deleted the stream: it is made again", IN_PROGRESS)
def _(stream: EphemeralRecorder) -> None:
    stream.claim()
    stream.later(300)
    stream.look()


@_ephemeral("suspended", "spec.suspend is true", IN_PROGRESS, suspend=True)
def _(stream: EphemeralRecorder) -> None:
    stream.look()


@_ephemeral("suspended-later", "spec.suspend was set; the stream stays", IN_PROGRESS, **OWNED)
def _(stream: EphemeralRecorder) -> None:
    stream.claim()
    stream.change(suspend=True)
    stream.look()


@_ephemeral("collected", "its owner is gone; Kubernetes deletes it next", IN_PROGRESS, **OWNED)
def _(stream: EphemeralRecorder) -> None:
    stream.claim()
    stream.lose_owners()
    stream.look()


@_ephemeral("orphaned", "its owner was deleted with --cascade=orphan", CURRENT, **OWNED)
def _(stream: EphemeralRecorder) -> None:
    _orphaned(stream)


@_ephemeral(
    "grace",
    "its owner, which is observed, is gone; a successor may come",
    IN_PROGRESS,
    **OBSERVED,
    gracePeriodSeconds=300,
)
def _(stream: EphemeralRecorder) -> None:
    stream.claim()
    stream.lose_owners()
    stream.look()


@_ephemeral(
    "releasing", "its owner, which is observed, is gone: it is released", IN_PROGRESS, **OBSERVED
)
def _(stream: EphemeralRecorder) -> None:
    stream.claim()
    stream.lose_owners()
    stream.look()


@_ephemeral("still-read", "the same, and a StreamCopy reads the stream", IN_PROGRESS, **OBSERVED)
def _(stream: EphemeralRecorder) -> None:
    stream.claim()
    stream.lose_owners()
    stream.look()
    stream.look(holding=HELPER, readers=READERS)


@_ephemeral("release-stuck", "the same, and the store does not answer", IN_PROGRESS, **OBSERVED)
def _(stream: EphemeralRecorder) -> None:
    stream.claim()
    stream.lose_owners()
    stream.look()
    stream.look(holding=None, trouble=Trouble.of(DOWN))


@_ephemeral("released", "the stream is deleted, the resource stays", CURRENT, **OBSERVED)
def _(stream: EphemeralRecorder) -> None:
    stream.claim()
    stream.lose_owners()
    stream.release()


@_ephemeral("finished", "its Job has finished: the stream is deleted", CURRENT, **RUN)
def _(stream: EphemeralRecorder) -> None:
    stream.claim()
    stream.finish_owners()
    stream.release()


@_ephemeral("too-old", "spec.maxAgeSeconds are over: deleted", CURRENT, maxAgeSeconds=60)
def _(stream: EphemeralRecorder) -> None:
    stream.claim()
    stream.later(60)
    stream.release()


@_ephemeral("retained", "released, and left to you", CURRENT, **OBSERVED, onRelease="Retain")
def _(stream: EphemeralRecorder) -> None:
    stream.claim()
    stream.lose_owners()
    stream.release()


@_ephemeral("deleting", "it was deleted: the stream goes first", TERMINATING)
def _(stream: EphemeralRecorder) -> None:
    stream.claim()
    stream.delete()
    stream.look(killed=True)


@_ephemeral(
    "deletion-grace",
    "it was deleted, and a successor may take the stream over",
    TERMINATING,
    gracePeriodSeconds=300,
)
def _(stream: EphemeralRecorder) -> None:
    stream.claim()
    stream.delete()
    stream.look()


@_ephemeral("deletion-read", "it was deleted, and a StreamCopy reads the stream", TERMINATING)
def _(stream: EphemeralRecorder) -> None:
    stream.claim()
    stream.delete()
    stream.look(readers=READERS)


@_ephemeral("deletion-stuck", "it was deleted, and the store does not answer", TERMINATING)
def _(stream: EphemeralRecorder) -> None:
    stream.claim()
    stream.delete()
    stream.look(killed=True)
    stream.fail(DOWN)


EPHEMERALS: Final = tuple(_made)
