"""Pravega's own Java client as a witness."""

from collections.abc import Callable, Iterable, Mapping
from functools import partial
from pathlib import Path
from typing import Any, Literal, Self

from localstore import reports
from localstore.accounts import User
from localstore.foreign_groups import ForeignGroups
from localstore.foreign_jvm import (
    SECONDS,
    ForeignClientError,
    ForeignJvm,
    Launch,
    given,
    local_launch,
)
from localstore.foreign_many import ForeignMany

__all__ = ["Following", "ForeignClient", "ForeignClientError"]


class Following:
    """A reader group that is attached to a stream.

    Args:
        call: Calls the JVM in which it is.
        number: Its number there.
    """

    def __init__(self, call: Callable[..., dict[str, Any]], number: int) -> None:
        self._call = call
        self._number = number

    @property
    def events(self) -> int:
        """How many events were read so far."""
        return int(self._call("readSoFar", {"readers": self._number})["events"])

    def end(self, *, patience: int = 60) -> reports.Read:
        """Reads to the end of the stream, which has to be sealed by now; what was found in all.

        Args:
            patience: After so many seconds without an end it gives up.
        """
        arguments = {"readers": self._number, "patience": patience}
        return reports.Read(**self._call("stopReaders", arguments, patience + SECONDS))


class ForeignClient(ForeignGroups, ForeignMany):
    """The official client, for one store.

    Calls may come from several threads and are answered one after the other. A call that misses
    its deadline costs the JVM, and with it the background writers; the next call starts another.

    Args:
        uri: The controller ("tcp://127.0.0.1:9090").
        user: Whom to log in as.
        heap: Most heap of the JVM.
        launch: Tells how to start it where it is not to run on this machine; all that is said here
            of the JVM is then its business.
        lasting: Whether its speed matters more than that it starts soon.
    """

    def __init__(
        self,
        uri: str,
        *,
        user: User | None = None,
        heap: str = "1g",
        launch: Callable[[], Launch] | None = None,
        lasting: bool = False,
    ) -> None:
        self.uri = uri
        local = partial(local_launch, uri, user=user, heap=heap, lasting=lasting)
        self._jvm = ForeignJvm(launch or local)

    def __enter__(self) -> Self:
        """Starts the JVM."""
        try:
            self.start()
        except BaseException:
            self.close()
            raise
        return self

    def __exit__(self, *_exc: object) -> None:
        """Ends it."""
        self.close()

    def start(self) -> None:
        """Starts the JVM and returns when it answers; other calls would do so when needed."""
        self._call("ping", {})

    def close(self) -> None:
        """Ends the JVM."""
        self._jvm.close()

    def create_scope(self, scope: str) -> bool:
        """Makes a scope, and tells whether it was not there."""
        return self._changed("createScope", {"scope": scope})

    def create(self, scope: str, stream: str, *, segments: int = 1) -> bool:
        """Makes a stream of so many segments, and its scope, and tells whether it is new."""
        return self._changed("create", _of(scope, stream) | {"segments": segments})

    def seal(self, scope: str, stream: str) -> bool:
        """Seals a stream."""
        return self._changed("seal", _of(scope, stream))

    def delete(self, scope: str, stream: str) -> bool:
        """Seals a stream and deletes it."""
        return self._changed("delete", _of(scope, stream))

    def delete_scope(self, scope: str) -> bool:
        """Deletes a scope and all that is in it."""
        return self._changed("deleteScope", {"scope": scope})

    def streams(self, scope: str) -> list[str] | None:
        """Lists a scope's streams; None when there is no scope.

        Internal ones too, but for the store's own mark beside each stream.
        """
        answer = self._call("list", {"scope": scope})
        if not answer["scope"]:
            return None
        return [name for name in answer["streams"] if not name.startswith("_MARK")]

    def create_table(self, scope: str, table: str) -> bool:
        """Makes a key-value table, and tells whether it is new."""
        return self._changed("createTable", _table(scope, table))

    def delete_table(self, scope: str, table: str) -> bool:
        """Deletes a key-value table, and tells whether it was there."""
        return self._changed("deleteTable", _table(scope, table))

    def truncate(
        self,
        scope: str,
        stream: str,
        *,
        cut: str | None = None,
        offsets: Mapping[int, int] | None = None,
    ) -> bool:
        """Truncates a stream.

        Args:
            scope: Its scope.
            stream: Its name.
            cut: Where, as the text of a stream cut; at the tail when left out.
            offsets: Where, as an offset for each segment id.

        Returns:
            Whether it was done.
        """
        pairs = ",".join(f"{segment}:{offset}" for segment, offset in (offsets or {}).items())
        return self._changed("truncate", _of(scope, stream) | given(cut=cut, offsets=pairs or None))

    def scale(
        self,
        scope: str,
        stream: str,
        *,
        segments: Iterable[int] = (),
        ranges: Iterable[tuple[float, float]] = (),
    ) -> bool:
        """Replaces segments.

        Args:
            scope: The stream's scope.
            stream: Its name.
            segments: Ids of those that end; the one with the lowest keys when left out.
            ranges: Key ranges of the new ones; the two halves of the old range when left out.

        Returns:
            Whether it was done.
        """
        new = ",".join(f"{low:.17f}-{high:.17f}" for low, high in ranges)
        return self._changed(
            "scale",
            _of(scope, stream) | given(segments=_list(segments), ranges=new or None),
        )

    def info(self, scope: str, stream: str) -> reports.Info:
        """Describes a stream and its segments."""
        answer = self._call("info", _of(scope, stream))
        segments = tuple(reports.Segment(**segment) for segment in answer.pop("segments"))
        return reports.Info(**answer, segments=segments)

    def write(
        self,
        scope: str,
        stream: str,
        *,
        events: int,
        size: int = 100,
        keys: int = 1,
        first: int = 0,
        seed: int = 0,
        kind: Literal["padded", "orders", "mixed"] = "padded",
        segments: Iterable[int] = (),
        seconds: float = SECONDS,
    ) -> reports.Written:
        """Writes events at full speed.

        Args:
            scope: The stream's scope.
            stream: Its name.
            events: How many.
            size: Bytes of each payload, 8 MiB at most.
            keys: Over how many routing keys they go in turn.
            first: Number of the first event. With an earlier run's number of events it continues
                that run's keys, be it in another stream.
            seed: Another seed gives other keys and other padding.
            kind: Of the payloads: a label with padding that hardly changes; the same in many
                lengths, whose mean is the size; or orders in JSON, which compress as what
                applications write does.
            segments: Ids of the segments the keys may fall into; all when left out.
            seconds: Deadline.

        Returns:
            What was written.
        """
        arguments = _of(scope, stream) | {
            "events": events,
            "size": size,
            "keys": keys,
            "first": first,
            "seed": seed,
            "kind": kind,
        }
        arguments |= given(segments=_list(segments))
        return reports.Written(**self._call("write", arguments, seconds))

    def start_writer(
        self,
        scope: str,
        stream: str,
        *,
        rate: int,
        size: int = 100,
        keys: int = 1,
        first: int = 0,
        seed: int = 0,
    ) -> Callable[[], reports.Paced]:
        """Starts to write in the background at a steady rate.

        Args:
            scope: The stream's scope.
            stream: Its name.
            rate: Events per second.
            size: As for `write`.
            keys: As for `write`.
            first: As for `write`.
            seed: As for `write`.

        Returns:
            What stops the writer and tells how it fared.
        """
        arguments = _of(scope, stream) | {
            "rate": rate,
            "size": size,
            "keys": keys,
            "first": first,
            "seed": seed,
        }
        number = self._call("startWriter", arguments)["writer"]
        return lambda: reports.Paced(**self._call("stopWriter", {"writer": number}))

    def read(
        self, scope: str, stream: str, *, patience: int = 60, seconds: float = SECONDS
    ) -> reports.Read:
        """Reads a stream from its head to its present tail with a reader group.

        Args:
            scope: The stream's scope.
            stream: Its name.
            patience: After so many seconds without an event it gives up.
            seconds: Deadline.

        Returns:
            What was found.
        """
        arguments = _of(scope, stream) | {"patience": patience}
        return reports.Read(**self._call("read", arguments, seconds))

    def start_readers(self, scope: str, stream: str, *, readers: int = 2) -> Following:
        """Attaches a reader group to a stream, from its head on.

        Args:
            scope: The stream's scope.
            stream: Its name.
            readers: How many readers share it.
        """
        number = self._call("startReaders", _of(scope, stream) | {"readers": readers})["readers"]
        return Following(self._call, number)

    def visible(self, scope: str, stream: str, *, seconds: float = SECONDS) -> reports.Visible:
        """Counts what a reader that comes now finds."""
        return reports.Visible(**self._call("visible", _of(scope, stream), seconds))

    def copy(
        self,
        scope: str,
        source: str,
        target: str,
        *,
        mode: Literal["batches", "txn", "events"] = "batches",
        threads: int = 2,
        segments: int = 4,
        seconds: float = 600.0,
    ) -> reports.Copied:
        """Copies a stream with the official client, the baseline of the benchmarks.

        Args:
            scope: Scope of both streams.
            source: Stream to read.
            target: Stream to make and write.
            mode: How to write.
            threads: How many segments at once.
            segments: Segments of the target.
            seconds: Deadline.

        Returns:
            What was copied and what it cost.
        """
        arguments = {
            "scope": scope,
            "source": source,
            "target": target,
            "mode": mode,
            "threads": threads,
            "segments": segments,
        }
        return reports.Copied(**self._call("copy", arguments, seconds))

    def export(
        self,
        scope: str,
        stream: str,
        folder: Path,
        *,
        mode: Literal["segments", "events"],
        threads: int = 2,
        seconds: float = 600.0,
    ) -> reports.Copied:
        """Writes a stream's events to files, as one would without Sluice; none is synced.

        Args:
            scope: The stream's scope.
            stream: Its name.
            folder: Where to; its path has no spaces.
            mode: A file for each segment, or for each event.
            threads: How many segments at once.
            seconds: Deadline.

        Returns:
            What was written and what it cost.
        """
        arguments = _of(scope, stream) | {"folder": folder, "mode": mode, "threads": threads}
        return reports.Copied(**self._call("export", arguments, seconds))

    def token(self, scope: str, stream: str) -> str:
        """Gets what a segment store wants to see where one must log in, good for reading."""
        return str(self._call("token", _of(scope, stream))["token"])

    def _call(
        self, command: str, arguments: Mapping[str, object], seconds: float = SECONDS
    ) -> dict[str, Any]:
        return self._jvm.call(command, arguments, seconds)


def _of(scope: str, stream: str) -> dict[str, object]:
    return {"scope": scope, "stream": stream}


def _table(scope: str, table: str) -> dict[str, object]:
    return {"scope": scope, "table": table}


def _list(numbers: Iterable[int]) -> str | None:
    return ",".join(map(str, numbers)) or None
