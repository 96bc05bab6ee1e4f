"""Write events, which `kubectl describe` and `kubectl events` show."""

from __future__ import annotations

import asyncio
from datetime import UTC, datetime
from typing import TYPE_CHECKING

import structlog

from sluice.core.catalogue import is_warning
from sluice.core.values import text
from sluice.errors import ApiUnavailable
from sluice.kube.api.connection import FIELD_MANAGER
from sluice.kube.api.kinds import EVENT

if TYPE_CHECKING:
    from sluice.core.reconcile.shared.conditions import Saying
    from sluice.kube.api.client import Api
    from sluice.kube.api.kinds import Object

_log = structlog.get_logger()
_MOST = 1024


class Recorder:
    """The writer of events.

    Args:
        api: the API server.
        instance: the name of this operator's instance.
    """

    def __init__(self, api: Api, instance: str) -> None:
        self._api = api
        self._instance = instance
        self._saying: set[asyncio.Task[None]] = set()

    def mention(self, about: Object, saying: Saying) -> None:
        """Write an event in the background. The caller does not wait for it."""
        task = asyncio.ensure_future(self.say(about, saying))
        self._saying.add(task)  # asyncio keeps only a weak reference to a task
        task.add_done_callback(self._saying.discard)

    async def say(self, about: Object, saying: Saying, *, action: str = "Reconcile") -> None:
        """Write an event. A failure is only logged, since nothing depends on events.

        The event's name follows from its object, reason and message. So two operators write one
        event, and a repetition raises its count.
        """
        meta = about["metadata"]
        now = datetime.now(UTC).strftime("%Y-%m-%dT%H:%M:%SZ")
        message = saying.message[:_MOST]
        digest = text.short_hash(f"{meta['uid']} {saying.reason} {message}")
        name = f"{meta['name'][:200]}.{digest}"
        body: Object = {
            "apiVersion": "v1",
            "kind": "Event",
            "metadata": {"name": name, "namespace": meta["namespace"]},
            "involvedObject": {
                "apiVersion": about["apiVersion"],
                "kind": about["kind"],
                "name": meta["name"],
                "namespace": meta["namespace"],
                "uid": meta["uid"],
            },
            "reason": saying.reason,
            "message": message,
            "type": "Warning" if is_warning(saying.reason) else "Normal",
            "source": {"component": FIELD_MANAGER},
            "reportingComponent": FIELD_MANAGER,
            "reportingInstance": self._instance,
            "action": action,
            "firstTimestamp": now,
            "lastTimestamp": now,
            "count": 1,
        }
        try:
            if await self._api.create(EVENT, meta["namespace"], body) is None:
                found = await self._api.get(EVENT, meta["namespace"], name)
                count = (found or {}).get("count", 0) + 1
                again = {"count": count, "lastTimestamp": now}
                await self._api.patch(EVENT, meta["namespace"], name, again)
        except ApiUnavailable as error:
            _log.warning("an event was not written", reason=saying.reason, error=str(error))
