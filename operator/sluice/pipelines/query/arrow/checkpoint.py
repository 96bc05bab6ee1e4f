"""Keep the checkpoint of a query that Arrow runs: what is planned, and the windows that are open.

A folder has files `plans-N-A` with a line for each batch from N on that attempt A planned, and a
file `windows-N` with the state behind batch N. The state is written now and then: batches behind it
are read again.
"""

from __future__ import annotations

import errno
import hashlib
import io
import json
import os
from contextlib import contextmanager, suppress
from typing import TYPE_CHECKING, Any, BinaryIO, Final, NamedTuple, TypeVar

import pyarrow as pa

from sluice.core.query.arrow.event_times import MOST_TIME, EventTimes
from sluice.core.query.ledger import Checkpoint
from sluice.core.tables.beats import OFFSET_FIELD, beat_of
from sluice.core.tables.positions import StreamPosition
from sluice.errors import CheckpointDiverged, InfrastructureError, InvalidSpec
from sluice.pipelines.query.checkpoint import QueryCheckpoint

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Iterator
    from pathlib import Path

_PLANS: Final = "plans-"
_WINDOWS: Final = "windows-"
_NEW: Final = ".new-"

_DIGEST: Final = 32
"""Bytes of the digest at the end of a file of windows."""

_MOST_HEAD: Final = 1 << 20
"""Bytes of its first line."""

_TRIES: Final = 20
"""Looks at files that an attempt that was superseded changes."""

_DAMAGED: Final = (
    AttributeError,
    KeyError,
    TypeError,
    ValueError,
    RecursionError,
    pa.ArrowException,
)
"""What readers of a damaged file raise."""

_Found = TypeVar("_Found")


class PlannedOffset(NamedTuple):
    """A batch that is planned.

    Attributes:
        batch: its number.
        offset: up to where it reads: the JSON of a position, with the time of the last beat.
        watermark: the windows up to it are closed by the batch, in milliseconds since 1970.
    """

    batch: int
    offset: dict[str, Any]
    watermark: int


class Snapshot(NamedTuple):
    """The state behind a batch.

    Attributes:
        batch: the batch; -1 before the first.
        offset, watermark: those of the batch, as of `PlannedOffset`.
        windows: those that are open.
        times: those of the newest events.
    """

    batch: int
    offset: dict[str, Any]
    watermark: int
    windows: pa.Table
    times: EventTimes


class ArrowCheckpoint(QueryCheckpoint):
    """The checkpoints of a query that Arrow runs. The caller owns the query's ledger."""

    def __init__(self, folder: Path, version: int) -> None:
        super().__init__(folder, version)
        self._file: int | None = None

    def close(self) -> None:
        """Close the file of plans."""
        if self._file is not None:
            os.close(self._file)
            self._file = None

    def plan(self, planned: PlannedOffset, attempt: int) -> None:
        """Write down what a batch reads, before any of its rows is written.

        Args:
            planned: the batch.
            attempt: the number of the attempt that plans it.

        Raises:
            InfrastructureError: the volume does not take it. Open no other batch then.
        """
        line = json.dumps(planned._asdict()) + "\n"
        with self._written():
            if self._file is None:
                file = self.path / f"{_PLANS}{planned.batch}-{attempt}"
                self._file = os.open(file, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
                _settle(self.path)
            if os.write(self._file, line.encode()) < len(line):
                raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
            os.fdatasync(self._file)

    def keep(self, snapshot: Snapshot, attempt: int) -> None:
        """Write down the state, and drop what came before it.

        Args:
            snapshot: the state.
            attempt: the number of the attempt, which may have been superseded.

        Raises:
            InfrastructureError: the volume does not take it.
        """
        head = {
            "batch": snapshot.batch,
            "offset": snapshot.offset,
            "watermark": snapshot.watermark,
            "times": snapshot.times.to_json(),
        }
        with self._written():
            new = self.path / f"{_NEW}{attempt}"
            with new.open("wb") as file:
                whole = _Hashed(file)
                whole.write(json.dumps(head).encode() + b"\n")
                with pa.ipc.new_stream(whole, snapshot.windows.schema) as writer:
                    writer.write_table(snapshot.windows)
                file.write(whole.digest)
                file.flush()
                os.fsync(file.fileno())
            new.replace(self.path / f"{_WINDOWS}{snapshot.batch}")
            _settle(self.path)
            self.close()
            for number in self._states():
                if number < snapshot.batch:
                    (self.path / f"{_WINDOWS}{number}").unlink(missing_ok=True)
            for place in self._planned_files():
                if place.first <= snapshot.batch:
                    place.file.unlink(missing_ok=True)

    def tidy(self, attempt: int) -> None:
        """Delete what attempts before this one have left, when they were cut off."""
        for file in self.path.glob(f"{_NEW}*"):
            number = file.name.removeprefix(_NEW)
            if number.isdecimal() and int(number) < attempt:
                file.unlink(missing_ok=True)

    def read(self, schema: pa.Schema) -> tuple[Snapshot | None, list[PlannedOffset]]:
        """Return the last state, and the batches that are planned behind it, in their order.

        Args:
            schema: the columns of windows.

        Raises:
            CheckpointDiverged: a file cannot be read.
        """
        return self._settled(
            lambda last: (None if last < 0 else self._state(last, schema), self._behind(last))
        )

    def _state(self, number: int, schema: pa.Schema) -> Snapshot:
        """Return the state behind a batch. CheckpointDiverged, FileNotFoundError."""
        file = self.path / f"{_WINDOWS}{number}"
        head = self._head(file)
        with _readable(file):
            windows = _unpacked(file)
            if windows.schema != schema:
                raise ValueError("it is that of another query")
            mark, times = _mark(head["watermark"]), EventTimes.from_json(head["times"])
        return Snapshot(number, _offset(head.get("offset"), file), mark, windows, times)

    def _settled(self, look: Callable[[int], _Found]) -> _Found:
        """Look at files behind the last state until it stays the same meanwhile.

        An attempt that was superseded may write a state, and delete what came before it, until it
        notices.

        Args:
            look: looks, and gets the batch of the last state; -1 for none.
        """
        for _ in range(_TRIES):
            last = max(self._states(), default=-1)
            with suppress(FileNotFoundError):
                found = look(last)
                if max(self._states(), default=-1) == last:
                    return found
        raise CheckpointDiverged(f"{self.path} is changed again and again")

    def _behind(self, last: int) -> list[PlannedOffset]:
        """Return the batches that are planned behind one. CheckpointDiverged, FileNotFoundError."""
        found: dict[int, PlannedOffset] = {}
        # An attempt that was superseded plans on until it notices. A later one's plan counts.
        for place in sorted(self._planned_files(), key=lambda one: (one.attempt, one.first)):
            found |= {one.batch: one for one in self._plans(place.file) if one.batch > last}
        if sorted(found) != list(range(last + 1, last + 1 + len(found))):
            raise CheckpointDiverged(f"{self.path} does not have all batches behind batch {last}")
        return [found[batch] for batch in sorted(found)]

    def _seen(self, batches: Collection[int]) -> Checkpoint:
        """Return what the version's own folder says."""
        return self._settled(lambda last: self._told(batches, last))

    def _told(self, batches: Collection[int], last: int) -> Checkpoint:
        ends = {one.batch: _end(one.offset) for one in self._behind(last)}
        if last >= 0:
            file = self.path / f"{_WINDOWS}{last}"
            ends[last] = _end(_offset(self._head(file).get("offset"), file))
        return Checkpoint(
            version=self.version,
            planned=max(ends, default=None),
            done=None if last < 0 else last,
            ends={batch: end for batch, end in ends.items() if batch in batches},
        )

    def _plans(self, file: Path) -> Iterator[PlannedOffset]:
        """Yield the lines of a file. The last one may be cut off: its batch was not begun."""
        with _readable(file):
            *lines, _ = file.read_bytes().split(b"\n")
            for line in lines:
                read = json.loads(line)
                if type(read["batch"]) is not int:
                    raise ValueError(read["batch"])
                mark = _mark(read["watermark"])
                yield PlannedOffset(read["batch"], _offset(read["offset"], file), mark)

    def _head(self, file: Path) -> dict[str, Any]:
        """Return the first line of a file of windows."""
        with _readable(file):
            with file.open("rb") as opened:
                read = json.loads(opened.readline(_MOST_HEAD))
            if not isinstance(read, dict) or f"{_WINDOWS}{read.get('batch')}" != file.name:
                raise ValueError("it is that of another batch")
        return read

    def _states(self) -> list[int]:
        """Return the numbers of the batches whose state is there."""
        names = (file.name.removeprefix(_WINDOWS) for file in self.path.glob(f"{_WINDOWS}*"))
        return [int(name) for name in names if name.isdecimal()]

    def _planned_files(self) -> list[_Plans]:
        found = []
        for file in self.path.glob(f"{_PLANS}*"):
            first, _, attempt = file.name.removeprefix(_PLANS).partition("-")
            if first.isdecimal() and attempt.isdecimal():
                found.append(_Plans(file, int(first), int(attempt)))
        return found

    @contextmanager
    def _written(self) -> Iterator[None]:
        """Write into the folder. InfrastructureError if the volume does not take it."""
        try:
            if not self.path.is_dir():
                self.path.mkdir(parents=True)
                _settle(self.path.parent)
                _settle(self.path.parent.parent)
            yield
        except OSError as error:
            raise InfrastructureError(
                f"the checkpoint cannot be written to {self.path}: {error.strerror}",
                remedy="Give it a volume with room, which the process may write to.",
            ) from error


@contextmanager
def _readable(file: Path) -> Iterator[None]:
    """Read a file. FileNotFoundError; CheckpointDiverged for whatever else it lacks."""
    try:
        yield
    except FileNotFoundError:
        raise
    except (OSError, *_DAMAGED) as error:
        raise CheckpointDiverged(f"{file} cannot be read: {error}") from error


class _Plans(NamedTuple):
    """A file of plans: its first batch, and the attempt that wrote it."""

    file: Path
    first: int
    attempt: int


class _Hashed:
    """A file that hashes what is written. Windows are not copied before."""

    closed = False

    def __init__(self, file: BinaryIO) -> None:
        self._file = file
        self._sha256 = hashlib.sha256()

    def write(self, data: Any) -> int:
        """Write bytes. Return their number."""
        self._sha256.update(data)
        return self._file.write(data)

    def flush(self) -> None:
        """Do nothing: the file is flushed at its end."""

    @property
    def digest(self) -> bytes:
        """The SHA-256 of all bytes so far."""
        return self._sha256.digest()


def _unpacked(file: Path) -> pa.Table:
    """Read the windows of a file. ValueError if it is damaged."""
    whole = file.read_bytes()
    data, digest = memoryview(whole)[:-_DIGEST], whole[-_DIGEST:]
    if hashlib.sha256(data).digest() != digest:
        raise ValueError("its digest is another one")
    # From a file, Arrow reads into memory that is aligned for it.
    with pa.ipc.open_stream(io.BytesIO(data[whole.index(b"\n") + 1 :])) as reader:
        windows = reader.read_all()
    windows.validate(full=True)  # a forged one could show other memory of the process
    return windows


def _settle(folder: Path) -> None:
    """Wait until the names in a folder are on the disk."""
    opened = os.open(folder, os.O_RDONLY)
    try:
        os.fsync(opened)
    finally:
        os.close(opened)


def _offset(value: Any, file: Path) -> dict[str, Any]:
    """Return a position with its beat, as it was checked.

    Raises:
        CheckpointDiverged: it is none.
    """
    try:
        place = StreamPosition.from_json(value).to_json()
    except InvalidSpec as error:
        raise CheckpointDiverged(f"{file} cannot be read: {error}") from error
    beat = beat_of(value)
    return place | ({OFFSET_FIELD: beat} if beat else {})


def _mark(value: Any) -> int:
    """Return a watermark as it was checked. ValueError."""
    if type(value) is not int or abs(value) > MOST_TIME:
        raise ValueError("its watermark is no time")
    return value


def _end(offset: dict[str, Any]) -> tuple[dict[str, Any], ...]:
    return (StreamPosition.from_json(offset).to_json(),)
