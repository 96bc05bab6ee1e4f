"""The Java client's commands that measure the delay of events, and that follow a stream."""

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from functools import partial
from typing import Any

from localstore import reports
from localstore.foreign_jvm import SECONDS


class ForeignDelays(ABC):
    """The part of a `ForeignClient` that reads stamped events, and writes them to other streams."""

    @contextmanager
    def delays(
        self, scope: str, stream: str, *, readers: int = 1
    ) -> Iterator[Callable[[], reports.Delays]]:
        """Read a stream of stamped events in the block, from its present tail on.

        Args:
            scope: the stream's scope.
            stream: the stream's name.
            readers: number of readers that share the stream.

        Yields:
            A function that returns the delays since its last call.
        """
        arguments = {"scope": scope, "stream": stream, "readers": readers}
        number = self._call("startDelays", arguments)["readers"]
        try:
            yield lambda: reports.Delays(**self._call("account", {"readers": number}))
        finally:
            self._call("leave", {"readers": number})

    @contextmanager
    def relay(
        self, scope: str, source: str, target: str, *, readers: int = 1
    ) -> Iterator[Callable[[], int]]:
        """Write each event that comes in a stream to another one in the block.

        This is the loop that an application would use to follow a stream.

        Args:
            scope: the scope of both streams.
            source: the stream to read, from its present tail on.
            target: the stream to write.
            readers: number of readers that share the source.

        Yields:
            A function that returns the number of events so far.
        """
        arguments = {"scope": scope, "stream": source, "target": target, "readers": readers}
        number = self._call("startRelay", arguments)["readers"]
        try:
            yield partial(self._relayed, number)
        finally:
            self._call("leave", {"readers": number})

    def _relayed(self, number: int) -> int:
        return int(self._call("readSoFar", {"readers": number})["events"])

    @abstractmethod
    def _call(
        self, command: str, arguments: Mapping[str, object], seconds: float = SECONDS
    ) -> dict[str, Any]: ...
