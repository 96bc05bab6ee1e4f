"""Pravega's own Java client, as an independent witness."""

from collections.abc import Callable, Iterable, Mapping
from functools import partial
from pathlib import Path
from typing import Any, Literal, Self

from localstore import reports
from localstore.accounts import User
from localstore.foreign_bytes import ForeignBytes
from localstore.foreign_delays import ForeignDelays
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
        call: function that calls the group's JVM.
        number: the group's number in the JVM.
    """

    def __init__(self, call: Callable[..., dict[str, Any]], number: int) -> None:
        self._call = call
        self._number = number

    @property
    def events(self) -> int:
        """The number of events read so far."""
        return int(self._call("readSoFar", {"readers": self._number})["events"])

    def end(self, *, patience: int = 60) -> reports.Read:
        """Read to the end of the stream, which must be sealed. Return a report of all read events.

        Args:
            patience: seconds to wait for the end.
        """
        arguments = {"readers": self._number, "patience": patience}
        return reports.Read(**self._call("stopReaders", arguments, patience + SECONDS))


class ForeignClient(ForeignBytes, ForeignDelays, ForeignGroups, ForeignMany):
    """The official client, for one store.

    Calls may come from several threads and are answered one after the other. A call that misses its
    deadline ends the JVM and with it the background writers. The next call starts another JVM.

    Args:
        uri: the controller ("tcp://127.0.0.1:9090", or "tls://..." with TLS).
        user: the account to log in with.
        heap: maximum heap of the JVM.
        launch: function that returns how to start a JVM on another machine; it replaces all
            arguments that concern the JVM.
        lasting: whether the JVM's speed matters more than a quick start.
        bundle: certificates in PEM by which it trusts the store; those of the JDK if left out.
    """

    def __init__(
        self,
        uri: str,
        *,
        user: User | None = None,
        heap: str = "1g",
        launch: Callable[[], Launch] | None = None,
        lasting: bool = False,
        bundle: Path | None = None,
    ) -> None:
        self.uri = uri
        local = partial(local_launch, uri, user=user, heap=heap, lasting=lasting, bundle=bundle)
        self._jvm = ForeignJvm(launch or local)

    def __enter__(self) -> Self:
        """Start the JVM."""
        try:
            self.start()
        except BaseException:
            self.close()
            raise
        return self

    def __exit__(self, *_exc: object) -> None:
        """Stop the JVM."""
        self.close()

    def start(self) -> None:
        """Start the JVM and wait until it answers. Other calls start it if needed."""
        self._call("ping", {})

    def close(self) -> None:
        """Stop the JVM."""
        self._jvm.close()

    def create_scope(self, scope: str) -> bool:
        """Create a scope, and tell whether it is new."""
        return self._changed("createScope", {"scope": scope})

    def create(self, scope: str, stream: str, *, segments: int = 1) -> bool:
        """Create a stream with this number of segments, and its scope. Tell whether it is new."""
        return self._changed("create", _of(scope, stream) | {"segments": segments})

    def seal(self, scope: str, stream: str) -> bool:
        """Seal a stream, and tell whether that succeeded."""
        return self._changed("seal", _of(scope, stream))

    def delete(self, scope: str, stream: str) -> bool:
        """Seal a stream and delete it. Tell whether that succeeded."""
        return self._changed("delete", _of(scope, stream))

    def delete_scope(self, scope: str) -> bool:
        """Delete a scope and all its content. Tell whether that succeeded."""
        return self._changed("deleteScope", {"scope": scope})

    def streams(self, scope: str) -> list[str] | None:
        """Return a scope's streams, or None without a scope.

        Internal streams are included, except the store's own mark beside each stream.
        """
        answer = self._call("list", {"scope": scope})
        if not answer["scope"]:
            return None
        return [name for name in answer["streams"] if not name.startswith("_MARK")]

    def create_table(self, scope: str, table: str) -> bool:
        """Create a key-value table, and tell whether it is new."""
        return self._changed("createTable", _table(scope, table))

    def delete_table(self, scope: str, table: str) -> bool:
        """Delete a key-value table, and tell whether it existed."""
        return self._changed("deleteTable", _table(scope, table))

    def truncate(
        self,
        scope: str,
        stream: str,
        *,
        cut: str | None = None,
        offsets: Mapping[int, int] | None = None,
    ) -> bool:
        """Truncate a stream.

        Args:
            scope: the stream's scope.
            stream: the stream's name.
            cut: the new head as the text of a stream cut; the tail if left out.
            offsets: the new head as an offset for each segment id.

        Returns:
            Whether that succeeded.
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
        """Replace segments.

        Args:
            scope: the stream's scope.
            stream: the stream's name.
            segments: ids of the replaced segments; the segment with the lowest keys if left out.
            ranges: key ranges of the new segments; the two halves of the old range if left out.

        Returns:
            Whether that succeeded.
        """
        # So many digits identify the number exactly, however near to 0 it is.
        new = ",".join(f"{low:.25f}-{high:.25f}" for low, high in ranges)
        return self._changed(
            "scale",
            _of(scope, stream) | given(segments=_list(segments), ranges=new or None),
        )

    def info(self, scope: str, stream: str) -> reports.Info:
        """Return a description of a stream and its segments."""
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
        transactions: int = 0,
        seconds: float = SECONDS,
    ) -> reports.Written:
        """Write events at full speed.

        Args:
            scope: the stream's scope.
            stream: the stream's name.
            events: number of events.
            size: bytes of each payload. Outside of transactions it may have more than 8 MiB.
            keys: number of routing keys, used in turn.
            first: number of the first event; an earlier run's number of events continues that
                run's keys, even in another stream.
            seed: seed of the keys and the padding.
            kind: kind of payloads: a label with padding that hardly changes; the same in many
                lengths, whose mean is the size; or orders in JSON, which compress like
                applications' data.
            segments: ids of the segments that may get events; all if left out.
            transactions: number of transactions, one after the other; 0 for none.
            seconds: deadline in seconds.

        Returns:
            A report of the written events.
        """
        arguments = _of(scope, stream) | {
            "events": events,
            "size": size,
            "keys": keys,
            "first": first,
            "seed": seed,
            "kind": kind,
        }
        arguments |= given(segments=_list(segments), transactions=transactions or None)
        command = "writeTransactions" if transactions else "write"
        return reports.Written(**self._call(command, arguments, seconds))

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
        stamped: bool = False,
        outlives: bool = False,
    ) -> Callable[[], reports.Paced]:
        """Start to write in the background at a steady rate.

        Args:
            scope: the stream's scope.
            stream: the stream's name.
            rate: events per second.
            size: as for `write`.
            keys: as for `write`.
            first: as for `write`.
            seed: as for `write`.
            stamped: whether each event has the time at which it is written, for `delays`.
            outlives: whether the stream may be sealed meanwhile, so that later events are refused.

        Returns:
            A function that stops the writer and returns its report.
        """
        arguments = (
            _of(scope, stream)
            | {
                "rate": rate,
                "size": size,
                "keys": keys,
                "first": first,
                "seed": seed,
            }
            | given(stamped=stamped or None, outlives=outlives or None)
        )
        number = self._call("startWriter", arguments)["writer"]
        return lambda: reports.Paced(**self._call("stopWriter", {"writer": number}))

    def read(
        self, scope: str, stream: str, *, patience: int = 60, seconds: float = SECONDS
    ) -> reports.Read:
        """Read a stream from its head to its present tail with a reader group.

        Args:
            scope: the stream's scope.
            stream: the stream's name.
            patience: seconds to wait for an event.
            seconds: deadline in seconds.

        Returns:
            A report of the read events.
        """
        arguments = _of(scope, stream) | {"patience": patience}
        return reports.Read(**self._call("read", arguments, seconds))

    def start_readers(self, scope: str, stream: str, *, readers: int = 2) -> Following:
        """Attach a reader group to a stream, from its head on.

        Args:
            scope: the stream's scope.
            stream: the stream's name.
            readers: number of readers that share the stream.
        """
        number = self._call("startReaders", _of(scope, stream) | {"readers": readers})["readers"]
        return Following(self._call, number)

    def visible(self, scope: str, stream: str, *, seconds: float = SECONDS) -> reports.Visible:
        """Count the events and bytes that a new reader finds now."""
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
        """Copy a stream with the official client, the baseline of the benchmarks.

        Args:
            scope: scope of both streams.
            source: stream to read.
            target: stream to create and write.
            mode: way to write.
            threads: number of segments at once.
            segments: number of segments of the target.
            seconds: deadline in seconds.

        Returns:
            A report of the copied events and the cost.
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
        """Write a stream's events to files, as a user without Sluice would. No file is synced.

        Args:
            scope: the stream's scope.
            stream: the stream's name.
            folder: folder for the files; its path must not contain spaces.
            mode: one file per segment, or one per event.
            threads: number of segments at once.
            seconds: deadline in seconds.

        Returns:
            A report of the written events and the cost.
        """
        arguments = _of(scope, stream) | {"folder": folder, "mode": mode, "threads": threads}
        return reports.Copied(**self._call("export", arguments, seconds))

    def token(self, scope: str, stream: str) -> str:
        """Return a delegation token for reading, for segment stores that require a login."""
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
