import pytest
from hypothesis import given
from hypothesis import strategies as st

from sluice.core.values.model import (
    RetentionType,
    ScaleType,
    Scaling,
    StreamConfig,
    StreamName,
    StreamRetention,
)
from sluice.errors import InvalidSpec, ProtocolError
from sluice.stores.pravega.controller.policies import from_message, to_message
from sluice.stores.pravega.proto import controller_pb2 as pb

NAME = StreamName(scope="plant", stream="sensors")
INT = st.integers(-(2**31), 2**31 - 1)
LONG = st.integers(-(2**63), 2**63 - 1)
CONFIGS = st.builds(
    StreamConfig,
    scaling=st.builds(
        Scaling,
        type=st.sampled_from(ScaleType),
        target_rate=INT,
        scale_factor=INT,
        min_segments=INT,
    ),
    retention=st.builds(
        StreamRetention, type=st.sampled_from(RetentionType), minimum=LONG, maximum=LONG
    ),
    tags=st.lists(st.text(), max_size=4).map(tuple),
)


@given(CONFIGS)
def test_a_configuration_survives_the_way_to_the_controller_and_back(config: StreamConfig) -> None:
    """Each part of a configuration is unchanged after the message's bytes were written and read."""
    message = to_message(NAME, config)
    assert from_message(pb.StreamConfig.FromString(message.SerializeToString())) == config
    assert (message.streamInfo.scope, message.streamInfo.stream) == ("plant", "sensors")


def test_a_stream_that_keeps_everything_has_no_retention_policy() -> None:
    """The message has no policy then, as those of the store's own clients."""
    assert not to_message(NAME, StreamConfig()).HasField("retentionPolicy")


def test_a_number_that_the_store_cannot_hold_is_refused() -> None:
    """A rate beyond 31 bits raises InvalidSpec with the stream's name."""
    config = StreamConfig(scaling=Scaling(target_rate=2**31))
    with pytest.raises(InvalidSpec, match="plant/sensors"):
        to_message(NAME, config)


def test_a_policy_of_a_kind_unknown_to_us_is_not_taken_for_another() -> None:
    """A newer controller's policy raises ProtocolError, and is not dropped."""
    message = to_message(NAME, StreamConfig())
    message.retentionPolicy.retentionType = 77  # type: ignore[assignment]
    with pytest.raises(ProtocolError, match="unknown kind"):
        from_message(message)
