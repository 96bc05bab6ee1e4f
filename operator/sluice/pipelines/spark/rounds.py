"""Run slices as Spark tasks.

A round is one Spark job with as many tasks as there are slots. Tasks get slices and store
addresses, never credentials. Each worker process reads these from its own credentials folder, and
keeps its connections for later rounds. Spark's own retries stay on: a task is safe to run again, or
twice at once, because the store fences it.
"""

from __future__ import annotations

from contextlib import nullcontext
from functools import cache, cached_property, lru_cache, partial
from typing import TYPE_CHECKING, Final, Self

from sluice.engine.access.connect import archives, open_source
from sluice.engine.rounds.slices import run_share
from sluice.errors import InfrastructureError, SluiceError
from sluice.pipelines.spark.application import SparkLost, first_line
from sluice.stores.connect import connect

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Sequence
    from contextlib import AbstractContextManager

    from pyspark import SparkContext

    from sluice.archive.runs.archive_root import ArchiveRoot
    from sluice.config import Settings
    from sluice.core.values.model import StoreAddress
    from sluice.engine.rounds.slices import Ends, Slice, SliceResult
    from sluice.stores.base import Source, Store


_MOST_RUNS: Final = 16
"""Runs of archives that a worker process keeps open: as many streams are restored at once."""


@cache
def _store(address: StoreAddress, settings: Settings) -> Source:
    """Return this worker process's connection to a source. It is kept until the process ends."""
    return open_source(address, settings)


@lru_cache(maxsize=_MOST_RUNS)
def _run(address: StoreAddress, settings: Settings) -> Source:
    """Open a run of an archive, with its manifest. The cache is bounded: a scope has many runs."""
    return open_source(address, settings)


def _source(work: Slice, sources: Sequence[StoreAddress], settings: Settings) -> Source:
    """Return the store that a slice is read from."""
    address = sources[work.store]
    if work.archive is None:
        return _store(address, settings)
    return _run(address.model_copy(update={"archive": work.archive}), settings)


@cache
def _target(address: StoreAddress, settings: Settings) -> Store | ArchiveRoot:
    """Return this worker process's target: a store, or a place for archives."""
    return archives(address, settings) if address.holds_archives else connect(address, settings)


def _run_task(
    slices: Iterable[list[Slice]],
    *,
    sources: Sequence[StoreAddress],
    target: StoreAddress,
    settings: Settings,
) -> Iterator[SliceResult]:
    """Run the slices of a task, one after the other. This runs in a worker process."""

    def stores(work: Slice) -> Ends:
        return _source(work, sources, settings), _target(target, settings)

    for share in slices:
        yield from run_share(share, stores)


class SparkExecutor:
    """An executor that runs slices in a Spark application.

    Args:
        context: Spark's context.
        sources: the stores to read from.
        target: the store to write to.
        settings: settings for the workers.
        slots: returns the number of tasks at once; called before every round. None to ask Spark,
            which is right only while no executors come or go.
        around: returns the block in which a round runs.
    """

    def __init__(
        self,
        context: SparkContext,
        *,
        sources: Sequence[StoreAddress],
        target: StoreAddress,
        settings: Settings,
        slots: Callable[[], int] | None = None,
        around: Callable[[], AbstractContextManager[None]] = nullcontext,
    ) -> None:
        self._context = context
        self._slots = slots or (lambda: int(context.defaultParallelism))
        self._around = around
        self._task = partial(_run_task, sources=tuple(sources), target=target, settings=settings)

    @property
    def slots(self) -> int:
        """How many tasks run at once. Raises SparkLost if the application is gone."""
        try:
            return self._slots()
        except Exception as error:
            raise SparkLost(first_line(error)) from error

    def run(self, tasks: Sequence[Sequence[Slice]]) -> list[SliceResult]:
        """Run all tasks as one Spark job; see Executor.

        Raises:
            SparkLost: the application is gone.
            InfrastructureError: the job failed.
        """
        shares = [list(task) for task in tasks]
        try:
            with self._around():
                results: list[SliceResult] = (
                    self._context.parallelize(shares, len(shares))
                    .mapPartitions(self._task)
                    .collect()
                )
        except SluiceError:
            raise
        except Exception as error:  # Spark raises whatever Py4J found in the JVM
            if _is_stopped(self._context):
                raise SparkLost(first_line(error)) from error
            raise InfrastructureError(f"a round of tasks failed: {first_line(error)}") from error
        return results


class LazyExecutor:
    """An executor that starts its Spark application when it is first used.

    Args:
        make: starts the application.

    Raises:
        SluiceError: at the end of the block, if the application did not start. Within the block the
            error is hidden from the streams: they would retry a SluiceError in the same process.
    """

    def __init__(self, make: Callable[[], SparkExecutor]) -> None:
        self._make = make

    def __enter__(self) -> Self:
        """Enter the block. Spark is not started yet."""
        return self

    def __exit__(self, _kind: object, error: BaseException | None, _trace: object) -> None:
        """Raise the original error if the application did not start."""
        if isinstance(error, _NotStartedError):
            raise error.why from None

    @cached_property
    def _executor(self) -> SparkExecutor:
        try:
            return self._make()
        except SluiceError as error:
            raise _NotStartedError(error) from error

    @property
    def slots(self) -> int:
        """How many tasks run at once; see SparkExecutor. Starts the application if needed."""
        return self._executor.slots

    def run(self, tasks: Sequence[Sequence[Slice]]) -> list[SliceResult]:
        """Run all tasks; see SparkExecutor. Start the application if needed."""
        return self._executor.run(tasks)


class _NotStartedError(Exception):
    """The application did not start. Not a SluiceError, which streams would retry."""

    def __init__(self, why: SluiceError) -> None:
        super().__init__(str(why))
        self.why = why


def _is_stopped(context: SparkContext) -> bool:
    """Tell whether the application or its JVM is gone."""
    try:
        return bool(context._jsc.sc().isStopped())  # noqa: SLF001 - not public in PySpark
    except Exception:  # noqa: BLE001 - of many kinds, by what broke first
        return True
