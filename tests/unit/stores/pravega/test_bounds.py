"""The bounds on a controller's answers."""

from __future__ import annotations

import itertools
from typing import TYPE_CHECKING, Any

import pytest

from sluice.core.values.model import StreamName
from sluice.errors import ProtocolError
from sluice.stores.allowance import Allowance
from sluice.stores.pravega import bounds
from sluice.stores.pravega.controller import epochs
from sluice.stores.pravega.names import TokenAccess
from sluice.stores.pravega.proto import controller_pb2 as pb
from support.wire.hostile import HostileController, segment_of, stream_of

if TYPE_CHECKING:
    from collections.abc import Callable

    from sluice.stores.pravega.store import PravegaStore

NAME = StreamName(scope="shop", stream="orders")


def _streams(token: str, *names: str) -> pb.StreamsInScopeResponse:
    found = [stream_of(StreamName(scope=NAME.scope, stream=name)) for name in names]
    return pb.StreamsInScopeResponse(
        streams=found,
        continuationToken=pb.ContinuationToken(token=token),
        status=pb.StreamsInScopeResponse.SUCCESS,
    )


def _scopes(token: str) -> pb.ScopesResponse:
    return pb.ScopesResponse(scopes=["shop"], continuationToken=pb.ContinuationToken(token=token))


def _tables(token: str) -> pb.KVTablesInScopeResponse:
    return pb.KVTablesInScopeResponse(
        kvtables=[pb.KeyValueTableInfo(scope="shop", kvtName="t")],
        continuationToken=pb.ContinuationToken(token=token),
        status=pb.KVTablesInScopeResponse.SUCCESS,
    )


LISTINGS: dict[str, tuple[Callable[[str], Any], Callable[[PravegaStore], object]]] = {
    "listScopes": (_scopes, lambda store: store.list_scopes()),
    "listStreamsInScope": (
        lambda token: _streams(token, "s"),
        lambda store: store.list_streams("shop"),
    ),
    "listStreamsInScopeForTag": (
        lambda token: _streams(token, "s"),
        lambda store: store.list_streams("shop", "tag"),
    ),
    "listKeyValueTablesInScope": (_tables, lambda store: store.list_key_value_tables("shop")),
}


@pytest.mark.parametrize("method", LISTINGS)
@pytest.mark.parametrize("told", [["x"], ["x", "y"], [""]], ids=["one", "in turn", "from the top"])
def test_a_listing_whose_pages_repeat_ends(method: str, told: list[str]) -> None:
    """A page that leads to an earlier page raises ProtocolError: the listing would never end."""
    page, ask = LISTINGS[method]
    tokens = itertools.cycle(told)
    controller = HostileController(**{method: lambda _: page(next(tokens))})
    with controller.running() as store, pytest.raises(ProtocolError, match="have no end"):
        ask(store)
    assert len(controller.calls) <= len(told) + 1


def test_a_listing_without_end_ends(monkeypatch: pytest.MonkeyPatch) -> None:
    """The client reads a bounded number of pages, whatever their tokens."""
    monkeypatch.setattr(bounds, "MOST_PAGES", 20)
    count = itertools.count()
    controller = HostileController(
        listStreamsInScope=lambda _: _streams(str(next(count)), "always-the-same")
    )
    with controller.running() as store, pytest.raises(ProtocolError, match="20 pages"):
        store.list_streams(NAME.scope)
    assert len(controller.calls) == 20


def test_more_names_than_a_store_has_are_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    """The client would have to keep each name, so their number is bounded."""
    monkeypatch.setattr(bounds, "MOST_NAMES", 20)
    count = itertools.count()
    controller = HostileController(
        listStreamsInScope=lambda _: _streams(
            str(next(count)), *(f"s{next(count)}" for _ in range(8))
        )
    )
    with controller.running() as store, pytest.raises(ProtocolError, match="20 names"):
        store.list_streams(NAME.scope)


def test_a_name_that_is_no_name_is_refused() -> None:
    """A name of a million characters raises ProtocolError."""
    controller = HostileController(listStreamsInScope=lambda _: _streams("1", "s" * 1_000_000))
    with controller.running() as store, pytest.raises(ProtocolError, match="1024 characters"):
        store.list_streams(NAME.scope)


def test_an_answer_that_is_too_long_is_not_taken_in() -> None:
    """The error is not retryable as for a busy store: the next answer would be as long."""
    controller = HostileController(listStreamsInScope=lambda _: _streams("1", "s" * (5 << 20)))
    with controller.running() as store, pytest.raises(ProtocolError, match="larger than max"):
        store.list_streams(NAME.scope)


def test_a_token_is_no_longer_than_tokens_are() -> None:
    """The client keeps a token and sends it with each request, so its length is bounded."""
    long = pb.DelegationToken(delegationToken="t" * 1_000_000)
    controller = HostileController(getDelegationToken=lambda _: long)
    with controller.running() as store, pytest.raises(ProtocolError, match="1000000 characters"):
        store._directory.run(lambda asked: asked.token(NAME, TokenAccess.READ))


def test_a_host_is_no_longer_than_hosts_are() -> None:
    """The client keeps a host name and resolves it, so its length is bounded."""
    node = pb.NodeUri(endpoint="h" * 1_000_000, port=1)
    controller = HostileController(getURI=lambda _: node)
    with controller.running() as store, pytest.raises(ProtocolError, match="1000000 characters"):
        store.infos([store.segment_name(NAME, 0)])


def test_a_host_whose_name_is_none_is_an_error_of_the_store() -> None:
    """The resolver accepts at most 63 characters in each part of a host name."""
    node = pb.NodeUri(endpoint="h" * 100, port=1)
    controller = HostileController(getURI=lambda _: node)
    with controller.running() as store, pytest.raises(ProtocolError, match="no name of a host"):
        store.infos([store.segment_name(NAME, 0)])


def _scaled(head: int, tail: int) -> HostileController:
    """Make a controller with a stream that begins with one segment and ends with another."""
    config = pb.StreamConfig(streamInfo=stream_of(NAME))
    config.scalingPolicy.minNumSegments = 1
    at = pb.SegmentsAtTime.SegmentLocation(
        segmentId=pb.SegmentId(streamInfo=stream_of(NAME), segmentId=head)
    )
    return HostileController(
        getStreamConfiguration=lambda _: config,
        getCurrentSegments=lambda _: pb.SegmentRanges(segmentRanges=[segment_of(NAME, tail)]),
        getSegments=lambda _: pb.SegmentsAtTime(segments=[at]),
        getEpochSegments=lambda asked: pb.SegmentRanges(
            segmentRanges=[segment_of(NAME, asked.epoch << 32)]
        ),
    )


def test_epochs_that_no_stream_has_are_not_asked_for() -> None:
    """A latest segment of epoch 2,000,000,000 raises ProtocolError after a few calls."""
    controller = _scaled(0, 2_000_000_000 << 32)
    with controller.running() as store, pytest.raises(ProtocolError, match="2000000000 epochs"):
        store.generations(NAME)
    assert len(controller.calls) < 10


def test_epochs_with_more_segments_than_streams_have_are_refused(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """The sum is bounded, although each single epoch may be valid."""
    monkeypatch.setattr(epochs, "MOST_MADE", 100)
    controller = _scaled(0, 1000 << 32)
    with controller.running() as store, pytest.raises(ProtocolError, match="100 segments"):
        store.generations(NAME)
    assert len(controller.calls) < 200


def test_the_last_epoch_of_a_sealed_stream_is_not_looked_for_without_end() -> None:
    """The search ends although the controller has a segment for each epoch."""
    controller = _scaled(0, 0)
    controller.answers["getCurrentSegments"] = lambda _: pb.SegmentRanges()
    with controller.running() as store, pytest.raises(ProtocolError, match="more than streams"):
        store.describe(NAME)
    assert len(controller.calls) < 50


def test_an_epoch_of_more_segments_than_a_store_has_is_refused() -> None:
    """Eighty thousand segments fit into one answer, and would take 80 MB of memory."""
    controller = _scaled(0, 0)
    many = pb.SegmentRanges(segmentRanges=[pb.SegmentRange(maxKey=1.0)] * 80_000)
    controller.answers["getCurrentSegments"] = lambda _: many
    with controller.running() as store, pytest.raises(ProtocolError, match="80000 segments"):
        store.describe(NAME)


def test_what_a_controller_tells_counts_for_the_look() -> None:
    """The answer counts although a thread that all looks share makes the call."""
    controller = _scaled(0, 0)
    many = pb.SegmentRanges(segmentRanges=[pb.SegmentRange(maxKey=1.0)] * 5_000)
    controller.answers["getCurrentSegments"] = lambda _: many
    allowed = Allowance(small=1_000, large=100_000)
    with (
        controller.running() as store,
        allowed.look("a"),
        pytest.raises(ProtocolError, match="100 kB of memory"),
    ):
        store.describe(NAME)
