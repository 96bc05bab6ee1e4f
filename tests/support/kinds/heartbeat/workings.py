"""The look, the decision and the actions of a Heartbeat."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any, Final, Literal

from sluice.core.reconcile.shared import conditions
from sluice.core.reconcile.shared.conditions import Saying
from sluice.kube.api import finalizers
from sluice.kube.api.kinds import OWN
from sluice.kube.api.objects import FINALIZERS, has_finalizer, is_deleting, parse
from sluice.kube.loop.reconciler import Reconciler
from support.kinds.heartbeat.resource import HEARTBEAT, Heartbeat, HeartbeatStatus

if TYPE_CHECKING:
    from sluice.core.values.trouble import Trouble
    from sluice.handlers.reconcilers import Parts
    from sluice.kube.api.client import Api
    from sluice.kube.api.kinds import Object
    from sluice.kube.loop.controller import Reconciles

Action = Literal["hold", "release"]


@dataclass(frozen=True, slots=True)
class Seen:
    """A Heartbeat as the operator saw it at a look."""

    body: Object
    resource: Heartbeat


@dataclass(frozen=True, slots=True)
class Decision:
    """The operator's decision about a Heartbeat after a look."""

    status: HeartbeatStatus
    actions: tuple[Action, ...]
    again: float | None


class HeartbeatWorkings:
    """The workings of Heartbeats: see `reconciler.Workings`."""

    kind: Final = OWN[HEARTBEAT.name]
    status: Final = HeartbeatStatus
    finalizer: Final = FINALIZERS[kind]

    def __init__(self, api: Api) -> None:
        self._api = api

    def is_bounded(self, body: Object) -> bool:  # noqa: ARG002 - none of the kind ends
        """Return False: the work goes on as long as the resource exists."""
        return False

    async def look(self, body: Object, *, glance: bool = False) -> Seen:  # noqa: ARG002
        """Read the resource. Nothing else concerns it."""
        return Seen(body, parse(body, Heartbeat))

    def decide(self, situation: Seen) -> Decision:
        """Beat once more, or release a deleted Heartbeat."""
        body = situation.body
        before = HeartbeatStatus.read(body.get("status"))
        if is_deleting(body):
            return Decision(before, ("release",), None)
        beats = before.beats + 1
        said = conditions.merge(
            before.conditions,
            conditions.ready(Saying("Beating", "The heart beats.")),
            generation=body["metadata"]["generation"],
            now=datetime.now(UTC),
        )
        status = before.model_copy(
            update={
                "beats": beats,
                "conditions": said,
                "observed_generation": body["metadata"]["generation"],
            }
        )
        hold: tuple[Action, ...] = () if has_finalizer(body, self.finalizer) else ("hold",)
        return Decision(status, hold, situation.resource.spec.period_milliseconds / 1000)

    def after_failure(self, situation: Seen, decided: Decision, trouble: Trouble) -> Decision:
        """Raise an AssertionError: no look at a Heartbeat fails."""
        raise AssertionError(f"{situation.body['metadata']['name']}: {trouble} ({decided})")

    async def perform(self, situation: Seen, action: Action) -> None:
        """Add the finalizer, or remove it."""
        change: Any = finalizers.add if action == "hold" else finalizers.remove
        meta = situation.body["metadata"]
        await change(self._api, self.kind, meta["namespace"], meta["name"], self.finalizer)

    def written(self, before: HeartbeatStatus, after: HeartbeatStatus) -> None:
        """Count nothing."""

    async def refuse(self, body: Object) -> None:
        """Do nothing: a Heartbeat has no objects in other namespaces."""

    def forget(self, namespace: str, name: str) -> None:
        """Remember nothing."""


def build(parts: Parts) -> Reconciles:
    """Build the reconciler of Heartbeats."""
    workings = HeartbeatWorkings(parts.api)
    return Reconciler(parts.api, workings, parts.statuses, parts.mirror)
