"""Commands of the official client for streams of plain bytes."""

from abc import ABC, abstractmethod
from collections.abc import Mapping
from typing import Any

from localstore.foreign_jvm import SECONDS


class ForeignBytes(ABC):
    """The part of the foreign client that writes and reads streams of plain bytes."""

    def write_bytes(self, scope: str, stream: str, count: int, *, seed: int = 0) -> None:
        """Append letters, which look like no header of an event, to a stream of one segment.

        Args:
            scope: the stream's scope.
            stream: the stream's name.
            count: number of bytes.
            seed: seed of the letters.
        """
        arguments = {"scope": scope, "stream": stream, "bytes": count, "seed": seed}
        self._call("writeBytes", arguments)

    def read_bytes(self, scope: str, stream: str) -> tuple[int, str]:
        """Read a sealed stream of one segment. Return its bytes' number and SHA-256."""
        answer = self._call("readBytes", {"scope": scope, "stream": stream})
        return int(answer["bytes"]), str(answer["sha256"])

    @abstractmethod
    def _call(
        self, command: str, arguments: Mapping[str, object], seconds: float = SECONDS
    ) -> dict[str, Any]: ...
