"""Read and make reader groups at the controller, which knows names and configurations."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple
from uuid import UUID

from sluice.core.values.groups import GroupConfig, GroupSettings
from sluice.core.values.model import StreamName
from sluice.errors import InvalidSpec, ProtocolError
from sluice.stores.pravega.controller.calls import info, no_scope, settle
from sluice.stores.pravega.proto import controller_pb2 as pb

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from sluice.core.values.groups import GroupName
    from sluice.stores.pravega.controller.controller import ControllerClient

Cuts = dict[StreamName, dict[int, int]]


class Made(NamedTuple):
    """A group that the controller has. It may have been made by this call or earlier.

    Attributes:
        start: offsets in bytes by segment id, by stream, at which it begins.
        settings: the group's settings.
        identity: the identity by which the controller knows it.
        generation: how often it was configured anew.
        endless: whether it reads all its streams without end.
    """

    start: Cuts
    settings: GroupSettings
    identity: UUID
    generation: int
    endless: bool


async def config(controller: ControllerClient, group: GroupName) -> GroupConfig | None:
    """Return a group's configuration; None if there is no such group."""
    doing = f"read the configuration of the reader group {group}"
    request = pb.ReaderGroupInfo(scope=group.scope, readerGroup=group.name)
    reply = await controller.call("getReaderGroupConfig", request, doing)
    if not settle(reply, doing, RG_NOT_FOUND=False):
        return None
    streams = sorted(_cuts(reply.config.startingStreamCuts), key=str)
    bounded = [stream for stream, cut in _cuts(reply.config.endingStreamCuts).items() if cut]
    return GroupConfig(_settings(reply.config), tuple(streams), tuple(sorted(bounded, key=str)))


async def make(
    controller: ControllerClient,
    group: GroupName,
    start: Mapping[StreamName, Mapping[int, int]],
    *,
    settings: GroupSettings,
    identity: UUID,
) -> Made:
    """Make a group that reads its streams without end, or return the group with that name.

    Raises:
        ScopeNotFound: there is no such scope.
        InvalidSpec: the store does not allow the name.
    """
    doing = f"make the reader group {group}"
    request = pb.ReaderGroupConfiguration(
        scope=group.scope,
        readerGroupName=group.name,
        groupRefreshTimeMillis=settings.refresh,
        automaticCheckpointIntervalMillis=settings.checkpoints,
        maxOutstandingCheckpointRequest=settings.outstanding,
        retentionType=settings.retention,
        readerGroupId=str(identity),
        startingStreamCuts=[
            pb.StreamCut(streamInfo=info(stream), cut=cut) for stream, cut in start.items()
        ],
        endingStreamCuts=[pb.StreamCut(streamInfo=info(stream)) for stream in start],
    )
    reply = await controller.call("createReaderGroup", request, doing)
    settle(
        reply,
        doing,
        SCOPE_NOT_FOUND=no_scope(group.scope),
        INVALID_RG_NAME=InvalidSpec(
            f"the store does not allow the name {group.name!r} for a reader group"
        ),
    )
    try:
        known_as = UUID(reply.config.readerGroupId)
    except ValueError:
        raise ProtocolError(f"the controller gave {group} no identity") from None
    return Made(
        start=_cuts(reply.config.startingStreamCuts),
        settings=_settings(reply.config),
        identity=known_as,
        generation=reply.config.generation,
        endless=not any(_cuts(reply.config.endingStreamCuts).values()),
    )


def _settings(message: pb.ReaderGroupConfiguration) -> GroupSettings:
    return GroupSettings(
        refresh=message.groupRefreshTimeMillis,
        checkpoints=message.automaticCheckpointIntervalMillis,
        outstanding=message.maxOutstandingCheckpointRequest,
        retention=message.retentionType,
    )


def _cuts(messages: Iterable[pb.StreamCut]) -> Cuts:
    return {
        StreamName(scope=one.streamInfo.scope, stream=one.streamInfo.stream): dict(one.cut)
        for one in messages
    }
