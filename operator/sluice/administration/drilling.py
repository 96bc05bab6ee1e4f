"""Ask for a restore drill of a StreamArchive, and wait for its result."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final, NamedTuple

from sluice.administration import resources
from sluice.api.kinds.streamarchive import StreamArchive
from sluice.api.registry import KINDS
from sluice.api.status.archive_status import StreamArchiveStatus
from sluice.api.status.common import ConditionType
from sluice.errors import InvalidSpec
from sluice.kube.api.objects import DRILL_REQUESTED_AT, parse, requested_at

if TYPE_CHECKING:
    from collections.abc import Callable

    from sluice.administration.naming import Named
    from sluice.api.status.archive_status import DrillStatus
    from sluice.kube.api.client import Api
    from sluice.kube.api.kinds import Object

DRILLED: Final = tuple(kind for kind in KINDS if kind.name == StreamArchive.__name__)
"""The kind that has restore drills."""


class Drilled(NamedTuple):
    """The end of a wait for a drill.

    Attributes:
        archive: the StreamArchive.
        drill: the drill that has ended; None if the time was over first.
        reason: the reason of its failure; None if it has not failed.
    """

    archive: Named
    drill: DrillStatus | None
    reason: str | None = None


async def request(api: Api, archive: Named) -> Object:
    """Ask the operator for a drill now, by an annotation with the time. Return the resource.

    Raises:
        InvalidSpec: the resource is gone, has no drills, or is suspended.
        ApiUnavailable: the API server cannot be asked, or refuses.
    """
    body = await api.get(archive.kind, archive.namespace, archive.name)
    if body is None:
        raise resources.gone(archive)
    spec = parse(body, StreamArchive).spec
    if spec.verify is None:
        raise InvalidSpec(
            f"{archive} has no restore drills",
            field="spec.verify",
            remedy="Set spec.verify.schedule first. It also says that a scratch stream may be made "
            "in the source's scope, or in spec.verify.target.",
        )
    if spec.suspend:
        raise InvalidSpec(
            f"{archive} is suspended, so no drill begins",
            field="spec.suspend",
            remedy=f"Resume it first: sluice resume {archive}.",
        )
    return await resources.request(api, archive, DRILL_REQUESTED_AT)


async def until(
    api: Api, archive: Named, *, seconds: float | None, told: Callable[[str], None]
) -> Drilled:
    """Wait until the drill that was requested last has a result.

    That is the request of this client, or a later one of another client: its drill begins later.

    Args:
        api: the API server.
        archive: the StreamArchive.
        seconds: the longest wait; None for no limit.
        told: callback for each new sentence about the drill.

    Raises:
        InvalidSpec: the resource is gone, or the request was taken back.
        Refused: the API server refuses.
    """
    said = None
    async for body in resources.looks(api, archive, seconds=seconds):
        ended = _ended(body, archive)
        if ended is not None:
            return ended
        drill = StreamArchiveStatus.read(body.get("status")).drill
        if drill is not None and drill.message and drill.message != said:
            said = drill.message
            told(said)
    return Drilled(archive, None)


def _ended(body: Object, archive: Named) -> Drilled | None:
    """Return the end of the drill that was requested last; None while there is none.

    Raises:
        InvalidSpec: the request was taken back.
    """
    requested = requested_at(body, DRILL_REQUESTED_AT)
    status = StreamArchiveStatus.read(body.get("status"))
    if requested is None or body["spec"].get("verify") is None:
        raise InvalidSpec(
            f"the drill of {archive} was called off: the request or spec.verify was removed",
            field="NAME",
            remedy="Try again.",
        )
    drill = status.drill
    if drill is None or drill.last_handled_requested_at != requested or drill.result is None:
        return None
    verdict = status.condition(ConditionType.RESTORE_VERIFIED)
    failed = drill.result == "Failed" and verdict is not None and verdict.status == "False"
    return Drilled(archive, drill, verdict.reason if failed and verdict else None)
