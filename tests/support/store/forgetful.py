"""A segment store that clears its memory whenever a test tells it to.

The store answers as Pravega 0.13.0 does (tests/integration/stores/test_idle_segments.py). It keeps
attributes in an index. GetSegmentAttribute answers from memory only. SetupAppend and updates load
missing attributes.
"""

from __future__ import annotations

import socket
import threading
from collections import defaultdict
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Self

from sluice.stores.pravega.names import Endpoint, is_core
from sluice.stores.pravega.wire import messages as m
from sluice.stores.pravega.wire import refusals
from sluice.stores.pravega.wire.wire import NOT_SET, Frame, FrameType, Message, decode_as
from support.wire.segment_store import Peer

if TYPE_CHECKING:
    from uuid import UUID

REQUESTS: dict[FrameType, type[Message]] = {
    kind.TYPE: kind for kind in (m.GetAttribute, m.SetupAppend, m.UpdateAttribute)
}
WRITERS_TOKEN = "writer"  # noqa: S105 - of no store


@dataclass
class Forgetful:
    """The store, listening on a port of its own.

    Attributes:
        index: the stored attributes, by segment.
        memory: the attributes in memory, by segment.
        sealed: names of sealed segments.
        guarded: whether an append needs a writer's token.
        setups: the writers of each connection, which the store remembers.
        contested: how many more times another client makes it load the requested attribute.
        loading: attributes that it loads for others; an update brings them into memory.
    """

    index: dict[str, dict[UUID, int]] = field(default_factory=dict)
    memory: defaultdict[str, dict[UUID, int]] = field(default_factory=lambda: defaultdict(dict))
    sealed: set[str] = field(default_factory=set)
    guarded: bool = False
    setups: list[set[tuple[str, UUID]]] = field(default_factory=list)
    contested: int = 0
    loading: set[tuple[str, UUID]] = field(default_factory=set)

    def __enter__(self) -> Self:
        """Begin to listen."""
        self._listener = socket.create_server(("127.0.0.1", 0))
        threading.Thread(target=self._listen, daemon=True).start()
        return self

    def __exit__(self, *_: object) -> None:
        """Stop listening."""
        self._listener.shutdown(socket.SHUT_RDWR)
        self._listener.close()

    @property
    def endpoint(self) -> Endpoint:
        """The address at which it listens."""
        return Endpoint(*self._listener.getsockname())

    def set(self, name: str, attribute: UUID, value: int) -> None:
        """Store an attribute, and keep it in memory."""
        self.index.setdefault(name, {})[attribute] = value
        self.memory[name][attribute] = value

    def forget(self) -> None:
        """Clear the memory, as after some idle minutes."""
        self.memory.clear()

    def answer(self, asked: Message, writers: set[tuple[str, UUID]]) -> Message:
        """Return the answer to a request."""
        assert isinstance(asked, m.GetAttribute | m.SetupAppend | m.UpdateAttribute)
        name = asked.segment
        if name not in self.index:
            return refusals.SegmentIsMissing(asked.request, name)
        stored, memory = self.index[name], self.memory[name]
        if isinstance(asked, m.GetAttribute):
            known = stored if is_core(asked.attribute) else memory
            return m.Attribute(asked.request, known.get(asked.attribute, NOT_SET))
        if isinstance(asked, m.SetupAppend):
            if self.guarded and asked.token != WRITERS_TOKEN:
                return refusals.TokenRefused(asked.request)
            if self._contend(name, asked.writer):
                return refusals.EventNumberRefused(asked.writer, asked.request)
            writers.add((name, asked.writer))
            self._load(name, asked.writer)
            last = stored.get(asked.writer, NOT_SET)
            return m.AppendSetup(asked.request, name, asked.writer, last)
        return self._update(asked)

    def _update(self, asked: m.UpdateAttribute) -> Message:
        name = asked.segment
        if name in self.sealed:
            return refusals.SegmentIsSealed(asked.request, name)
        done = not self._contend(name, asked.attribute) and asked.expected == self.index[name].get(
            asked.attribute, NOT_SET
        )
        if done:
            self.set(name, asked.attribute, asked.new)
            while self.loading:
                self._load(*self.loading.pop())
        elif (name, asked.attribute) not in self.loading:
            self._load(name, asked.attribute)
        return m.AttributeUpdated(asked.request, done)

    def _contend(self, name: str, attribute: UUID) -> bool:
        """Tell whether it refuses to load this attribute, because it does so for another client."""
        if not self.contested or is_core(attribute) or attribute in self.memory[name]:
            return False
        self.contested -= 1
        self.loading.add((name, attribute))
        return True

    def _load(self, name: str, attribute: UUID) -> None:
        if attribute in self.index[name]:
            self.memory[name][attribute] = self.index[name][attribute]

    def _listen(self) -> None:
        while True:
            try:
                sock, _ = self._listener.accept()
            except OSError:
                return
            threading.Thread(target=self._serve, args=(sock,), daemon=True).start()

    def _serve(self, sock: socket.socket) -> None:
        writers: set[tuple[str, UUID]] = set()
        self.setups.append(writers)
        with sock:
            sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
            peer = Peer(sock)
            peer.shake_hands()
            while True:
                try:
                    number, data = peer.frame()
                except (EOFError, OSError):
                    return
                kind = REQUESTS[FrameType(number)]
                said = self.answer(decode_as(kind, Frame(kind.TYPE, memoryview(data))), writers)
                peer.say(said)
                if isinstance(said, refusals.EventNumberRefused):
                    return
