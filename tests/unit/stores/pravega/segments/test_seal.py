"""The messages to a store that is to seal a segment."""

from __future__ import annotations

from contextlib import closing
from typing import TYPE_CHECKING

from sluice.config import StoreTimeouts
from sluice.stores.pravega.controller.directory import Token
from sluice.stores.pravega.store import PravegaStore
from sluice.stores.pravega.wire import messages as m
from sluice.stores.pravega.wire.refusals import SegmentIsSealed
from support.wire.segment_store import ScriptedStore

if TYPE_CHECKING:
    from collections.abc import Iterable

    from sluice.stores.pravega.names import Endpoint, TokenAccess
    from support.wire.segment_store import Peer

NAME = "scope/stream/0.#epoch.0#transaction." + "0" * 32
TIMEOUTS = StoreTimeouts(connect=5, call=5, stall=5)


def sealed_at(server: ScriptedStore) -> None:
    """Seal a segment on that server."""
    with closing(PravegaStore("tcp://127.0.0.1:1", credentials=None, timeouts=TIMEOUTS)) as store:

        def owners(names: Iterable[str]) -> list[Endpoint]:
            return [server.endpoint for _ in names]

        def token(name: str, access: TokenAccess) -> Token:
            return Token("", float("inf"))

        store._directory.owners = owners  # type: ignore[method-assign,assignment]
        store._directory.token = token  # type: ignore[method-assign]
        store.seal(NAME)


def test_a_segment_that_is_sealed_now_is_left_at_that() -> None:
    """After the store's reply, the client sends nothing more."""

    def script(peer: Peer) -> None:
        asked = peer.expect(m.SealSegment)
        assert asked.segment == NAME
        peer.say(m.SegmentSealedReply(asked.request, NAME))

    with ScriptedStore([script]) as server:
        sealed_at(server)


def test_a_segment_that_was_sealed_before_is_looked_at_by_its_store() -> None:
    """The client truncates it at offset 0, which deletes nothing and makes the store look at it."""

    def script(peer: Peer) -> None:
        asked = peer.expect(m.SealSegment)
        peer.say(SegmentIsSealed(asked.request, NAME))
        cut = peer.expect(m.TruncateSegment)
        assert (cut.segment, cut.offset) == (NAME, 0)
        peer.say(m.SegmentTruncatedReply(cut.request, NAME))

    with ScriptedStore([script]) as server:
        sealed_at(server)
