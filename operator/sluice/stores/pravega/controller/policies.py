"""Stream configurations as the controller's messages, and back without loss."""

from __future__ import annotations

from typing import Final

from sluice.core.values.model import (
    RetentionType,
    ScaleType,
    Scaling,
    StreamConfig,
    StreamName,
    StreamRetention,
)
from sluice.errors import InvalidSpec, ProtocolError
from sluice.stores.pravega.proto import controller_pb2 as pb

_SCALE: Final = {
    ScaleType.FIXED: pb.ScalingPolicy.FIXED_NUM_SEGMENTS,
    ScaleType.BY_BYTES: pb.ScalingPolicy.BY_RATE_IN_KBYTES_PER_SEC,
    ScaleType.BY_EVENTS: pb.ScalingPolicy.BY_RATE_IN_EVENTS_PER_SEC,
}
_RETENTION: Final = {
    RetentionType.NONE: pb.RetentionPolicy.UNKNOWN,
    RetentionType.TIME: pb.RetentionPolicy.TIME,
    RetentionType.SIZE: pb.RetentionPolicy.SIZE,
}
_SCALE_OF: Final = {number: kind for kind, number in _SCALE.items()}
_RETENTION_OF: Final = {number: kind for kind, number in _RETENTION.items()}


def to_message(name: StreamName, config: StreamConfig) -> pb.StreamConfig:
    """Return a stream's configuration as a message for the controller.

    Raises:
        InvalidSpec: a number is too large for the store.
    """
    try:
        message = pb.StreamConfig(
            streamInfo=pb.StreamInfo(scope=name.scope, stream=name.stream),
            scalingPolicy=pb.ScalingPolicy(
                scaleType=_SCALE[config.scaling.type],
                targetRate=config.scaling.target_rate,
                scaleFactor=config.scaling.scale_factor,
                minNumSegments=config.scaling.min_segments,
            ),
            tags=pb.Tags(tag=config.tags),
        )
        # A stream that keeps everything has no policy at all in the store.
        if config.retention != StreamRetention():
            message.retentionPolicy.retentionType = _RETENTION[config.retention.type]
            message.retentionPolicy.retentionParam = config.retention.minimum
            message.retentionPolicy.retentionMax = config.retention.maximum
    except ValueError as error:
        raise InvalidSpec(f"the store cannot hold the policy of {name}: {error}") from None
    return message


def from_message(message: pb.StreamConfig) -> StreamConfig:
    """Return the stream configuration in a message of the controller. The store sorts the tags.

    Raises:
        ProtocolError: a policy of a kind that this version does not know.
    """
    scaling, retention = message.scalingPolicy, message.retentionPolicy
    if scaling.scaleType not in _SCALE_OF or retention.retentionType not in _RETENTION_OF:
        raise ProtocolError("the controller answered a policy of an unknown kind")
    return StreamConfig(
        scaling=Scaling(
            type=_SCALE_OF[scaling.scaleType],
            target_rate=scaling.targetRate,
            scale_factor=scaling.scaleFactor,
            min_segments=scaling.minNumSegments,
        ),
        retention=StreamRetention(
            type=_RETENTION_OF[retention.retentionType],
            minimum=retention.retentionParam,
            maximum=retention.retentionMax,
        ),
        tags=tuple(message.tags.tag),
    )
