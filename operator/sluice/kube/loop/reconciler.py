"""The loop around the pure core, for any kind: look, decide, write the status, act."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final, Generic, Protocol, TypeVar

import structlog

from sluice.core.values.trouble import Trouble
from sluice.errors import InvalidSpec, SluiceError
from sluice.kube.api import finalizers
from sluice.kube.api.objects import is_deleting, wants_orphan
from sluice.kube.api.status import of_invalid

if TYPE_CHECKING:
    from collections.abc import Sequence

    from sluice.api.status.common import ResourceStatus
    from sluice.kube.api.client import Api
    from sluice.kube.api.kinds import Kind, Object
    from sluice.kube.api.status import StatusWriter
    from sluice.kube.loop.queue import Key

_log = structlog.get_logger()

CONFLICT_DELAY: Final = 0.1
"""Seconds before a resource is looked at again that changed while it was looked at."""


class Decided(Protocol):
    """What was decided about a resource: see `core.reconcile`."""

    @property
    def status(self) -> ResourceStatus:
        """To write before anything is done."""
        ...

    @property
    def actions(self) -> Sequence[Any]:
        """To do, in order."""
        ...

    @property
    def again(self) -> float | None:
        """Seconds until the resource is looked at in any case."""
        ...


class Seen(Protocol):
    """A resource and its surroundings, as they were looked at."""

    @property
    def body(self) -> Object:
        """The object."""
        ...


S = TypeVar("S", bound=Seen)
D = TypeVar("D", bound=Decided)


class Workings(Protocol[S, D]):
    """What is particular to a kind."""

    @property
    def kind(self) -> Kind:
        """Which kind."""
        ...

    @property
    def status(self) -> type[ResourceStatus]:
        """The model of its status."""
        ...

    @property
    def finalizer(self) -> str:
        """What stands on a resource that has something in a store."""
        ...

    @property
    def bounded(self) -> bool:
        """Whether it is done some day, and so has the condition Succeeded."""
        ...

    async def look(self, body: Object) -> S:
        """Look at an object's surroundings; nothing is changed. InvalidSpec, ApiUnavailable."""
        ...

    def decide(self, situation: S) -> D:
        """What to do."""
        ...

    def after_failure(self, situation: S, decided: D, trouble: Trouble) -> D:
        """What to do when something that was decided could not be done."""
        ...

    async def perform(self, situation: S, action: Any) -> None:
        """Do one thing. SluiceError where it could not be done."""
        ...

    def written(self, before: Any, after: Any) -> None:
        """A status was written: count what it means."""
        ...

    def forget(self, namespace: str, name: str) -> None:
        """A resource is gone."""
        ...


class Reconciler(Generic[S, D]):
    """Reconciles the resources of a kind.

    Args:
        api: the API server.
        workings: of the kind.
        statuses: writes them.
    """

    def __init__(self, api: Api, workings: Workings[S, D], statuses: StatusWriter) -> None:
        self._api = api
        self._workings = workings
        self._statuses = statuses

    async def reconcile(self, key: Key) -> float | None:
        """Look after one resource; seconds until it is looked at again.

        Raises:
            SluiceError: something could not be asked or written; it is tried again.
        """
        body = await self._api.get(self._workings.kind, key.namespace, key.name)
        if body is None:
            self._workings.forget(key.namespace, key.name)
            return None
        try:
            situation = await self._workings.look(body)
        except InvalidSpec as error:
            await self._refuse(body, error)
            return None
        decided = self._workings.decide(situation)
        attempt = getattr(decided.status, "attempts", None)
        with structlog.contextvars.bound_contextvars(attempt=attempt):
            return await self._carry_out(situation, decided)

    async def _refuse(self, body: Object, error: InvalidSpec) -> None:
        """Say that this version cannot read a resource, and let it go if somebody insists."""
        before = self._workings.status.read(body.get("status"))
        after = of_invalid(before, body, error, bounded=self._workings.bounded)
        await self._statuses.write(self._workings.kind, body, before, after)
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
        """Write the status, then act; seconds until the resource is looked at again."""
        before = self._workings.status.read(situation.body.get("status"))
        if not await self._write(situation, before, decided.status):
            return CONFLICT_DELAY
        for action in decided.actions:
            try:
                await self._workings.perform(situation, action)
            except SluiceError as error:
                _log.warning("not done", action=type(action).__name__, error=str(error))
                return await self._after_failure(situation, decided, Trouble.of(error))
        return decided.again

    async def _after_failure(self, situation: S, decided: D, trouble: Trouble) -> float | None:
        """Say why something could not be done, and what follows from that."""
        then = self._workings.after_failure(situation, decided, trouble)
        # What was done before may have changed the object, so its version is not insisted on.
        if not await self._write(situation, decided.status, then.status, insist=False):
            return CONFLICT_DELAY
        for action in then.actions:
            await self._workings.perform(situation, action)
        return then.again

    async def _write(
        self, situation: S, before: ResourceStatus, after: ResourceStatus, *, insist: bool = True
    ) -> bool:
        """Write a status and count what it means; False if the resource changed meanwhile."""
        kind = self._workings.kind
        if not await self._statuses.write(kind, situation.body, before, after, insist=insist):
            return False
        self._workings.written(before, after)
        return True
