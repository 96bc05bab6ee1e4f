"""The Java client's commands for many streams at once."""

from abc import ABC, abstractmethod
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from localstore.foreign_jvm import SECONDS

Deed = tuple[str, Mapping[str, object]]
"""A command of the client, and its arguments; those that are None are left out."""


class ForeignMany(ABC):
    """The part of a `ForeignClient` that works side by side."""

    def create_many(self, scope: str, prefix: str, count: int, *, threads: int) -> list[float]:
        """Create streams `prefix0`, `prefix1`, ... of one segment, and their scope.

        Args:
            scope: the streams' scope.
            prefix: beginning of the streams' names.
            count: number of streams.
            threads: number of streams at a time.

        Returns:
            The seconds after which each stream existed.
        """
        return self._each("createMany", scope, prefix, count, threads)

    def fill_many(
        self, scope: str, prefix: str, count: int, *, threads: int, events: int, size: int
    ) -> list[float]:
        """Create such streams and write this number of events to each.

        Returns:
            The seconds after which each stream existed with all its events.
        """
        return self._each("fillMany", scope, prefix, count, threads, events=events, size=size)

    def delete_many(self, scope: str, prefix: str, count: int, *, threads: int) -> list[float]:
        """Seal and delete such streams. Return the seconds after which each was gone."""
        return self._each("deleteMany", scope, prefix, count, threads)

    def together(
        self, scripts: Iterable[Sequence[Deed]], *, threads: int = 8, seconds: float = SECONDS
    ) -> list[list[dict[str, Any]]]:
        """Run scripts side by side, and the commands of each script one after the other.

        Args:
            scripts: the commands of each script.
            threads: number of scripts at a time.
            seconds: deadline of all, in seconds.

        Returns:
            The answers to each script's commands.

        Raises:
            ForeignClientError: a command was refused. The other scripts ran to their ends.
        """
        words = [f"together {threads}"]
        words += [" , ".join(_words(*deed) for deed in script) for script in scripts]
        answer = self._call(" ; ".join(words), {}, seconds)
        results: list[list[dict[str, Any]]] = answer["results"]
        return results

    def _each(
        self, command: str, scope: str, prefix: str, count: int, threads: int, **more: int
    ) -> list[float]:
        arguments = {"scope": scope, "prefix": prefix, "count": count, "threads": threads, **more}
        seconds = SECONDS + count  # a busy machine creates some ten streams per second
        answer = self._call(command, arguments, seconds)
        return [float(second) for second in answer["seconds"]]

    @abstractmethod
    def _call(
        self, command: str, arguments: Mapping[str, object], seconds: float = SECONDS
    ) -> dict[str, Any]: ...


def _words(command: str, arguments: Mapping[str, object]) -> str:
    pairs = (f"{key}={value}" for key, value in arguments.items() if value is not None)
    return " ".join([command, *pairs])
