import pytest
from hypothesis import given
from hypothesis import strategies as st

from sluice.core.values.model import StreamName
from sluice.errors import InvalidSpec
from sluice.stores.pravega.names import (
    CREATION_TIME,
    EVENT_COUNT,
    Endpoint,
    SegmentOwner,
    owner_of,
    segment_name,
    staging_name,
    visible,
)

STREAM = StreamName(scope="plant", stream="sensors")
KEY = "0123456789abcdef" * 2
IDS = st.integers(0, 2**63 - 1)


@given(IDS)
def test_a_name_leads_back_to_its_segment(segment: int) -> None:
    """The names of a segment and of its staging segment have the same owner."""
    owner = SegmentOwner(STREAM, segment)
    assert owner_of(segment_name(STREAM, segment)) == owner
    assert owner_of(staging_name(STREAM, segment, KEY)) == owner


def test_names_are_those_of_the_store() -> None:
    """Names contain number and epoch in the form of the store's own clients."""
    assert segment_name(STREAM, (3 << 32) + 7) == "plant/sensors/7.#epoch.3"
    assert staging_name(STREAM, 0, KEY) == f"plant/sensors/0.#epoch.0#transaction.{KEY}"


@pytest.mark.parametrize("key", ["", "abc", KEY.upper(), KEY + "0", "g" * 32])
def test_a_key_of_another_form_makes_no_staging_name(key: str) -> None:
    """The store takes only 32 lower-case hexadecimal digits for a segment beside another."""
    with pytest.raises(ValueError, match="hexadecimal"):
        staging_name(STREAM, 0, key)


@pytest.mark.parametrize("name", ["", "a/b", "a/b/0", "a/b/c/0.#epoch.0", "a/b/x.#epoch.0"])
def test_what_is_no_segment_name_is_refused(name: str) -> None:
    """A wrong name raises ValueError before any call."""
    with pytest.raises(ValueError, match="not the name of a segment"):
        owner_of(name)


def test_attribute_ids_are_those_of_the_store() -> None:
    """The ids have the lowest long as their upper half, and 1 or 0 as their lower half."""
    lowest = 1 << 63
    assert EVENT_COUNT.int == (lowest << 64) + 1
    assert CREATION_TIME.int == lowest << 64


@pytest.mark.parametrize(
    ("uri", "endpoint", "shown"),
    [
        ("tcp://store:9090", Endpoint("store", 9090), "store:9090"),
        ("tls://store:9090", Endpoint("store", 9090), "store:9090"),
        ("tcp://127.0.0.1:1/", Endpoint("127.0.0.1", 1), "127.0.0.1:1"),
        ("tcp://[::1]:9090", Endpoint("::1", 9090), "[::1]:9090"),
    ],
)
def test_an_address_is_read_and_shown(uri: str, endpoint: Endpoint, shown: str) -> None:
    """Host and port are read from the URI, also for IPv6."""
    assert Endpoint.parse(uri) == endpoint
    assert str(endpoint) == shown


@pytest.mark.parametrize(
    "uri",
    [
        "",
        "store:9090",
        "ssl://store:9090",
        "tls://store",
        "tcp://store",
        "tcp://s:0",
        "tcp://s:65536",
    ],
)
def test_an_address_of_another_form_is_refused_with_a_remedy(uri: str) -> None:
    """The error names the field, and the remedy the form of an address."""
    with pytest.raises(InvalidSpec) as caught:
        Endpoint.parse(uri)
    assert caught.value.field == "uri"
    assert "tcp://host:port" in caught.value.remedy


def test_streams_of_the_store_count_on_request_unless_they_belong_to_another() -> None:
    """Watermarks belong to their stream. Without that stream they count as any internal stream."""
    streams = ["a", "_MARKa", "_MARKb", "_RGg", "_MARK_RGg", "_MARK"]
    assert visible(streams, internal=False) == ["a"]
    assert visible(streams, internal=True) == ["a", "_MARKb", "_RGg", "_MARK"]
