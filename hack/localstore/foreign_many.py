"""What the Java client does with many streams at once."""

from abc import ABC, abstractmethod
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from localstore.foreign_jvm import SECONDS

Deed = tuple[str, Mapping[str, object]]
"""A command of the client's, and its arguments; those that are None are left out."""


class ForeignMany(ABC):
    """The part of a `ForeignClient` that works side by side."""

    def create_many(self, scope: str, prefix: str, count: int, *, threads: int) -> list[float]:
        """Makes streams `prefix0`, `prefix1`, ... of one segment, and their scope.

        Args:
            scope: Their scope.
            prefix: What their names begin with.
            count: How many.
            threads: How many at a time.

        Returns:
            After how many seconds each was there.
        """
        return self._each("createMany", scope, prefix, count, threads)

    def fill_many(
        self, scope: str, prefix: str, count: int, *, threads: int, events: int, size: int
    ) -> list[float]:
        """Makes such streams and writes so many events of a size to each.

        Returns:
            After how many seconds each was there with all its events.
        """
        return self._each("fillMany", scope, prefix, count, threads, events=events, size=size)

    def delete_many(self, scope: str, prefix: str, count: int, *, threads: int) -> list[float]:
        """Seals and deletes such streams; after how many seconds each was gone."""
        return self._each("deleteMany", scope, prefix, count, threads)

    def together(
        self, scripts: Iterable[Sequence[Deed]], *, threads: int = 8, seconds: float = SECONDS
    ) -> list[list[dict[str, Any]]]:
        """Runs scripts side by side, and the commands of each one after the other.

        Args:
            scripts: The commands of each.
            threads: How many scripts at a time.
            seconds: Deadline of all.

        Returns:
            The answers to each script's commands.

        Raises:
            ForeignClientError: One was refused. The other scripts were run to their ends.
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
        seconds = SECONDS + count  # a busy machine makes some ten in a second
        answer = self._call(command, arguments, seconds)
        return [float(second) for second in answer["seconds"]]

    @abstractmethod
    def _call(
        self, command: str, arguments: Mapping[str, object], seconds: float = SECONDS
    ) -> dict[str, Any]: ...


def _words(command: str, arguments: Mapping[str, object]) -> str:
    pairs = (f"{key}={value}" for key, value in arguments.items() if value is not None)
    return " ".join([command, *pairs])
