"""Updates of a stream that end before the controller has answered."""

from __future__ import annotations

from threading import Event
from typing import TYPE_CHECKING, Any

import grpc
import pytest

from sluice.config import StoreTimeouts
from sluice.core.values.model import Scaling, StreamConfig, StreamName
from sluice.errors import StoreBusy, StoreRejected, StoreTimeout
from sluice.stores.pravega.store import PravegaStore
from support.crash.call_proxy import CallProxy

if TYPE_CHECKING:
    from collections.abc import Iterator

    from localstore import Standalone

TAG = "tests.sluice.dev/only-this"
NEW = StreamConfig(scaling=Scaling(min_segments=2), tags=(TAG, "team=a"))


class LateAnswers(CallProxy):
    """A proxy that delays the answers to updates of streams.

    Attributes:
        due: event, set once the answers may go to the caller.
        unlisted: whether the proxy refuses to list streams.
    """

    unlisted = False

    def __init__(self, controller: tuple[str, int]) -> None:
        super().__init__(controller)
        self.due = Event()

    def _pass_on(self, path: str, request: bytes, context: Any) -> bytes:
        if self.unlisted and path.endswith("/listStreamsInScopeForTag"):
            context.abort(grpc.StatusCode.PERMISSION_DENIED, "not this user")
        answer = super()._pass_on(path, request, context)
        if path.endswith("/updateStream"):
            self.due.wait(timeout=20)
        return answer


@pytest.fixture
def late(standalone: Standalone) -> Iterator[LateAnswers]:
    """Yield a proxy in front of the shared server's controller."""
    with LateAnswers(standalone.controller) as proxy:
        yield proxy
        proxy.due.set()


@pytest.fixture
def behind(late: LateAnswers) -> Iterator[PravegaStore]:
    """Yield a client that reaches the controller through the proxy."""
    client = PravegaStore(late.uri, credentials=None, timeouts=StoreTimeouts(call=5))
    yield client
    client.close()


def test_an_update_is_over_once_the_store_lists_the_stream_by_its_tag(
    behind: PravegaStore, store: PravegaStore, stream: StreamName
) -> None:
    """An update ends without an answer once the store lists its tag. All clients see the update."""
    behind.update_stream(stream, NEW, until_listed=TAG)
    found = store.describe(stream)
    assert found is not None
    assert set(found.config.tags) == set(NEW.tags)
    assert stream.stream in store.list_streams(stream.scope, TAG)


def test_an_update_without_a_tag_to_look_for_waits_for_its_answer(
    behind: PravegaStore, stream: StreamName
) -> None:
    """Without a tag to wait for, a late answer makes the update time out."""
    with pytest.raises(StoreTimeout, match="update the stream"):
        behind.update_stream(stream, NEW)


def test_a_user_who_may_not_list_streams_waits_for_the_answer(
    late: LateAnswers, behind: PravegaStore, store: PravegaStore, stream: StreamName
) -> None:
    """A user without the right to list waits for the answer. The update itself succeeds."""
    late.unlisted = True
    late.due.set()
    behind.update_stream(stream, NEW, until_listed=TAG)
    found = store.describe(stream)
    assert found is not None
    assert set(found.config.tags) == set(NEW.tags)


def test_a_refused_update_is_an_error_although_the_tag_is_looked_for(
    store: PravegaStore, stream: StreamName
) -> None:
    """A refused update is an error, although its tag is awaited and never comes."""
    store.seal_stream(stream)
    with pytest.raises(StoreRejected, match="STREAM_SEALED"):
        store.update_stream(stream, NEW, until_listed=TAG)


def test_an_update_that_follows_at_once_is_done_or_told_to_come_again(
    store: PravegaStore, stream: StreamName
) -> None:
    """An immediate second update succeeds, or is StoreBusy for some milliseconds."""
    for number in range(5):
        first = NEW.model_copy(update={"tags": (f"{TAG}-{number}",)})
        store.update_stream(stream, first, until_listed=f"{TAG}-{number}")
        second = StreamConfig(scaling=NEW.scaling, tags=(f"second-{number}",))
        while True:
            try:
                store.update_stream(stream, second)
            except StoreBusy:
                continue
            break
        found = store.describe(stream)
        assert found is not None
        assert found.config == second
