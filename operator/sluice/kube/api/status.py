"""Write the statuses of all kinds, with an event when the reason of Ready changes."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import TYPE_CHECKING, TypeAlias

import structlog

from sluice.api.status.common import ConditionType
from sluice.core.reconcile.shared import conditions
from sluice.core.reconcile.shared.conditions import Saying
from sluice.core.values.trouble import Trouble

if TYPE_CHECKING:
    from collections.abc import Callable

    from sluice.api.status.common import ResourceStatus
    from sluice.errors import SluiceError
    from sluice.kube.api.client import Api
    from sluice.kube.api.events import Recorder
    from sluice.kube.api.kinds import Kind, Object

    Told: TypeAlias = Callable[[Object, ResourceStatus, ResourceStatus], None]

_log = structlog.get_logger()


class StatusWriter:
    """The writer of statuses.

    Args:
        api: the API server.
        recorder: writes events.
        told: callback `(object, before, after)` after each write, with the object as it is then.
            It must not block.
    """

    def __init__(self, api: Api, recorder: Recorder, told: Told | None = None) -> None:
        self._api = api
        self._recorder = recorder
        self._told = told

    async def write(
        self,
        kind: Kind,
        body: Object,
        before: ResourceStatus,
        after: ResourceStatus,
        *,
        insist: bool = True,
    ) -> bool:
        """Write a status if it has changed.

        Args:
            kind: the object's kind.
            body: the object as it was read. With `insist`, its resource version is updated.
            before: the status that was read.
            after: the new status.
            insist: write only if the object has not changed since it was read.

        Returns:
            False if the object was changed, deleted or replaced since it was read.

        Raises:
            ApiUnavailable: the API server refused.
        """
        if after == before and body.get("status"):
            return True
        meta = body["metadata"]
        version = {"resourceVersion": meta["resourceVersion"]} if insist else {}
        status = {
            "apiVersion": kind.api_version,
            "kind": kind.name,
            "metadata": {"name": meta["name"], "uid": meta["uid"], **version},
            "status": after.dump(),
        }
        written = await self._api.apply(kind, meta["namespace"], status, subresource="status")
        if written is None:
            return False
        if insist:  # only the status has changed, so later steps need not read it again
            meta["resourceVersion"] = written["metadata"]["resourceVersion"]
        was, now = before.condition(ConditionType.READY), after.condition(ConditionType.READY)
        if now is not None and (was is None or was.reason != now.reason):
            self._recorder.mention(body, Saying(now.reason, now.message))
            _log.info("state", ready=now.status, reason=now.reason, message=now.message)
        if self._told is not None:
            self._told(written, before, after)
        return True


def of_invalid(
    before: ResourceStatus, body: Object, error: SluiceError, *, bounded: bool = True
) -> ResourceStatus:
    """Return the status of an object that this version cannot read: stalled, with the error.

    Args:
        before: its status so far.
        body: the object.
        error: why it cannot be read.
        bounded: whether the kind has an end, and so the condition Succeeded.
    """
    generation = body["metadata"].get("generation", 0)
    said = Saying(error.reason, str(Trouble.of(error)))
    # What was found about data stays true.
    found = {
        kind: (one.status, Saying(one.reason, one.message))
        for kind in (ConditionType.VERIFIED, ConditionType.RESTORE_VERIFIED)
        if (one := before.condition(kind)) is not None
    }
    return before.model_copy(
        update={
            "observed_generation": generation,
            "conditions": conditions.merge(
                before.conditions,
                found | conditions.stalled(said, bounded=bounded),
                generation=generation,
                now=datetime.now(UTC),
            ),
        }
    )
