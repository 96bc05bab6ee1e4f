"""Read what the checkpoint of a query says: that of Spark without Spark.

Spark's has a folder `offsets` with a file for each batch that is planned, and a folder `commits`
with a file for each batch that is done. Spark deletes the oldest files.
"""

from __future__ import annotations

import json
import shutil
from abc import ABC, abstractmethod
from typing import TYPE_CHECKING

from sluice.core.query.ledger import MOST_MILLIS, Checkpoint, PlannedBatch
from sluice.core.query.offsets import parse_offsets
from sluice.core.tables.positions import StreamPosition
from sluice.errors import CheckpointDiverged, InvalidSpec

if TYPE_CHECKING:
    from collections.abc import Collection, Iterator
    from pathlib import Path


class QueryCheckpoint(ABC):
    """The checkpoints of one query by one engine, one folder for each version.

    Args:
        folder: the query's folder.
        version: the version that runs.
    """

    def __init__(self, folder: Path, version: int) -> None:
        self._folder = folder
        self.version = version

    @property
    def path(self) -> Path:
        """The folder of the version."""
        return self._folder / f"version-{self.version}"

    def look(self, batches: Collection[int] = ()) -> Checkpoint:
        """Return what the checkpoint says. That of a later version tells that it is not ours.

        Args:
            batches: the batches whose positions are wanted.

        Raises:
            CheckpointDiverged: a file cannot be read.
        """
        there = [number for number in self._versions() if number >= self.version]
        if not there:
            return Checkpoint()
        if max(there) != self.version:
            return Checkpoint(version=max(there))
        return self._seen(batches)

    @abstractmethod
    def _seen(self, batches: Collection[int]) -> Checkpoint:
        """Return what the version's own folder says."""

    def clear(self) -> None:
        """Delete the rest of a checkpoint with this version's number, which begins now."""
        shutil.rmtree(self.path, ignore_errors=True)

    def drop_others(self) -> None:
        """Delete the checkpoints of earlier versions."""
        for number in self._versions():
            if number < self.version:
                shutil.rmtree(self._folder / f"version-{number}", ignore_errors=True)

    def _versions(self) -> Iterator[int]:
        for file in self._folder.glob("version-*") if self._folder.is_dir() else ():
            number = file.name.removeprefix("version-")
            if number.isdecimal():
                yield int(number)


class SparkCheckpoint(QueryCheckpoint):
    """The checkpoints of a query that Spark runs."""

    def _seen(self, batches: Collection[int]) -> Checkpoint:
        """Return what the version's own folder says."""
        planned, done = self._batches("offsets"), self._batches("commits")
        return Checkpoint(
            version=self.version,
            planned=max(planned, default=None),
            done=max(done, default=None),
            ends={batch: self.planned(batch).ends for batch in planned if batch in batches},
        )

    def planned(self, batch: int) -> PlannedBatch:
        """Return what the checkpoint says of a batch.

        Raises:
            CheckpointDiverged: the file cannot be read.
        """
        file = self.path / "offsets" / str(batch)
        try:
            mark, ends = parse_offsets(file.read_text(encoding="utf-8"))
            places = [StreamPosition.from_json(json.loads(line)) for line in ends]
            if abs(mark) > MOST_MILLIS:
                raise ValueError(mark)
            return PlannedBatch(tuple(place.to_json() for place in places), mark)
        except (OSError, ValueError, CheckpointDiverged, InvalidSpec) as error:
            raise CheckpointDiverged(f"{file} cannot be read: {error}") from error

    def _batches(self, kind: str) -> list[int]:
        folder = self.path / kind
        return (
            [int(file.name) for file in folder.iterdir() if file.name.isdecimal()]
            if (folder.is_dir())
            else []
        )
