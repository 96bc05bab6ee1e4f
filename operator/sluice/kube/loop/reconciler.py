"""Reconcile a resource of any kind: look, decide, write the status, act.

`core.reconcile` decides, without I/O. What a kind needs besides is in its `Workings`.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final, Generic, Protocol, TypeVar

import structlog

from sluice import tracing
from sluice.core.values.trouble import Trouble
from sluice.errors import InvalidSpec, SluiceError
from sluice.kube.api import finalizers
from sluice.kube.api.objects import is_deleting, wants_orphan
from sluice.kube.api.rest import is_settled
from sluice.kube.api.status import of_invalid
from sluice.kube.loop.decided import Decided
from sluice.kube.loop.traces import Traces

if TYPE_CHECKING:
    from sluice.api.status.common import ResourceStatus
    from sluice.kube.api.cache import Mirror
    from sluice.kube.api.client import Api
    from sluice.kube.api.kinds import Kind, Object
    from sluice.kube.api.status import StatusWriter
    from sluice.kube.loop.queue import Key

_log = structlog.get_logger()

CONFLICT_DELAY: Final = 0.1
"""Seconds before the next look at a resource that changed during a look."""


LONG: Final = 30.0
"""Seconds until the next look from which on nothing is likely to have changed by then."""


class Seen(Protocol):
    """A resource and its surroundings, as they were seen."""

    @property
    def body(self) -> Object:
        """The object."""
        ...


S = TypeVar("S", bound=Seen)
D = TypeVar("D", bound=Decided)


class Workings(Protocol[S, D]):
    """Part of reconciling that differs by kind."""

    @property
    def kind(self) -> Kind:
        """The kind."""
        ...

    @property
    def status(self) -> type[ResourceStatus]:
        """The model of its status."""
        ...

    @property
    def finalizer(self) -> str:
        """The finalizer of a resource that has something in a store."""
        ...

    def is_bounded(self, body: Object) -> bool:
        """Tell whether a resource ends some day by itself, and so has the condition Succeeded."""
        ...

    async def look(self, body: Object, *, glance: bool = False) -> S:
        """Look at an object's surroundings, without a change.

        Args:
            body: the object.
            glance: whether what the watches have shown is enough, since nothing is done by it.

        Raises:
            InvalidSpec: this version cannot read the object.
            ApiUnavailable: the API server could not be asked.
        """
        ...

    def decide(self, situation: S) -> D:
        """Decide what to do."""
        ...

    def after_failure(self, situation: S, decided: D, action: Any, trouble: Trouble) -> D:
        """Decide what to do after an action of `decided` that failed."""
        ...

    async def perform(self, situation: S, action: Any) -> None:
        """Carry out one action, or raise a SluiceError."""
        ...

    def written(self, before: Any, after: Any) -> None:
        """Count in the metrics what a newly written status means."""
        ...

    async def refuse(self, body: Object) -> None:
        """Stop what works for a resource in other namespaces: its spec cannot be read any more."""
        ...

    def forget(self, namespace: str, name: str) -> None:
        """Forget a resource that is gone."""
        ...


class Reconciler(Generic[S, D]):
    """Reconciler of the resources of a kind.

    Args:
        api: the API server.
        workings: the part that differs by kind.
        statuses: writes statuses.
        mirror: the objects that the watches have shown.
    """

    def __init__(
        self, api: Api, workings: Workings[S, D], statuses: StatusWriter, mirror: Mirror
    ) -> None:
        self._api = api
        self._workings = workings
        self._statuses = statuses
        self._mirror = mirror
        self._calm: dict[tuple[str, str], str] = {}
        self._traces = Traces()

    async def reconcile(self, key: Key) -> float | None:
        """Reconcile one resource.

        Returns:
            Seconds until it is looked at again; None to wait for an event.

        Raises:
            SluiceError: a server could not be asked, or a status not written; try again.
        """
        calm = await self._glance(key)
        if calm is not None:
            return calm.again
        self._calm.pop(key[1:], None)
        body = await self._api.get(self._workings.kind, key.namespace, key.name)
        if body is None:
            self._workings.forget(key.namespace, key.name)
            self._traces.forget(key.namespace, key.name)
            return None
        began = tracing.now()
        try:
            situation = await self._workings.look(body)
        except InvalidSpec as error:
            await self._refuse(body, error)
            return None
        decided = self._workings.decide(situation)
        attempt = getattr(decided.status, "attempts", None)
        with (
            structlog.contextvars.bound_contextvars(attempt=attempt),
            self._traces.acting(body, decided, began),
        ):
            return await self._carry_out(situation, decided)

    async def _glance(self, key: Key) -> D | None:
        """Look at a resource as the watches have shown it, if nothing is likely to be done.

        This is so if it is settled, or if the last look left it in this version, and changed
        nothing or waits for long. Most looks are such, and need no call for the resource itself.
        The watches may lag, so anything else than nothing is decided once more, on what the API
        server says.

        Returns:
            The decision to do nothing; None if the resource has to be read.
        """
        kind = self._workings.kind
        known = self._mirror.get(kind, key.namespace, key.name)
        if known is None or is_deleting(known):
            return None
        if (
            not is_settled(known)
            and self._calm.get(key[1:]) != known["metadata"]["resourceVersion"]
        ):
            return None
        body = self._mirror.whole(kind, key.namespace, key.name)
        if body is None:
            return None
        try:
            decided = self._workings.decide(await self._workings.look(body, glance=True))
        except InvalidSpec:
            return None
        same = decided.status == self._workings.status.read(body.get("status"))
        return decided if same and not decided.actions else None

    async def _refuse(self, body: Object, error: InvalidSpec) -> None:
        """Report that this version cannot read a resource.

        If it is being deleted with the annotation sluice.dev/force-orphan, remove the finalizer.
        """
        before = self._workings.status.read(body.get("status"))
        after = of_invalid(before, body, error, bounded=self._workings.is_bounded(body))
        await self._statuses.write(self._workings.kind, body, before, after)
        await self._workings.refuse(body)
        if is_deleting(body) and wants_orphan(body):
            _log.error("orphaned", left=f"whatever the resource had in a store: {error}")
            meta = body["metadata"]
            await finalizers.remove(
                self._api,
                self._workings.kind,
                meta["namespace"],
                meta["name"],
                self._workings.finalizer,
            )

    async def _carry_out(self, situation: S, decided: D) -> float | None:
        """Write the status, then act; return the seconds until the next look."""
        meta = situation.body["metadata"]
        before = self._workings.status.read(situation.body.get("status"))
        if not await self._write(situation, before, decided.status):
            return CONFLICT_DELAY
        waits = decided.again is None or decided.again >= LONG
        if not decided.actions and (waits or before == decided.status):
            self._calm[meta["namespace"], meta["name"]] = meta["resourceVersion"]
        for action in decided.actions:
            try:
                with tracing.span(type(action).__name__):
                    await self._workings.perform(situation, action)
            except SluiceError as error:
                _log.warning("not done", action=type(action).__name__, error=str(error))
                return await self._after_failure(situation, decided, action, Trouble.of(error))
        return decided.again

    async def _after_failure(
        self, situation: S, decided: D, action: Any, trouble: Trouble
    ) -> float | None:
        """Report a failed action, and carry out the decision that follows from it."""
        then = self._workings.after_failure(situation, decided, action, trouble)
        # An earlier action may have changed the object, so another version is accepted.
        if not await self._write(situation, decided.status, then.status, insist=False):
            return CONFLICT_DELAY
        for following in then.actions:
            await self._workings.perform(situation, following)
        return then.again

    async def _write(
        self, situation: S, before: ResourceStatus, after: ResourceStatus, *, insist: bool = True
    ) -> bool:
        """Write a status and count what it means; return False if the resource has changed."""
        kind = self._workings.kind
        if not await self._statuses.write(kind, situation.body, before, after, insist=insist):
            return False
        self._workings.written(before, after)
        return True
