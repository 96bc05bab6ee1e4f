"""Slices as Spark tasks.

A round is one Spark job with as many tasks as there are slots. Tasks get slices and store
addresses, never credentials: each worker process reads those from its own credentials folder and
keeps its connections for the rounds that follow. Spark's own retries stay on: a task is safe to run
again, or twice at once, because the store fences it.
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

    from sluice.archive.runs.shelf import Shelf
    from sluice.config import Settings
    from sluice.core.values.model import StoreAddress
    from sluice.engine.rounds.slices import Ends, Slice, SliceResult
    from sluice.stores.base import Source, Store


_MOST_RUNS: Final = 16
"""Runs of archives that a worker process keeps at hand: as many streams are restored at once."""


@cache
def _store(address: StoreAddress, settings: Settings) -> Source:
    """A worker process's store; it lives as long as the process."""
    return open_source(address, settings)


@lru_cache(maxsize=_MOST_RUNS)
def _run(address: StoreAddress, settings: Settings) -> Source:
    """A run of an archive that a worker process reads, with its manifest; a scope has many."""
    return open_source(address, settings)


def _source(work: Slice, sources: Sequence[StoreAddress], settings: Settings) -> Source:
    """The store that a slice is read from."""
    address = sources[work.store]
    if work.archive is None:
        return _store(address, settings)
    return _run(address.model_copy(update={"archive": work.archive}), settings)


@cache
def _target(address: StoreAddress, settings: Settings) -> Store | Shelf:
    """A worker process's store to write to, or its place for archives."""
    return archives(address, settings) if address.holds_archives else connect(address, settings)


def _run_task(
    slices: Iterable[list[Slice]],
    *,
    sources: Sequence[StoreAddress],
    target: StoreAddress,
    settings: Settings,
) -> Iterator[SliceResult]:
    """What a task does: its slices, one after the other."""

    def stores(work: Slice) -> Ends:
        return _source(work, sources, settings), _target(target, settings)

    for share in slices:
        yield from run_share(share, stores)


class SparkExecutor:
    """Runs slices in a Spark application.

    Args:
        context: the application.
        sources: the stores to read from.
        target: the store to write to.
        settings: of the workers.
        slots: tasks at once, asked before every round; None to ask Spark, which is right as long
            as nothing comes or goes.
        around: makes the block in which a round runs.
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
        """See Executor."""
        try:
            return self._slots()
        except Exception as error:
            raise SparkLost(first_line(error)) from error

    def run(self, tasks: Sequence[Sequence[Slice]]) -> list[SliceResult]:
        """See Executor.

        Raises:
            SparkLost: the application is gone.
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
    """Slices in a Spark application that is started once there is something to run.

    Args:
        make: starts it.

    Raises:
        SluiceError: at the end of the block: why it did not start. To the streams that wait for it
            this is no error of theirs, after which they would try again in the same process.
    """

    def __init__(self, make: Callable[[], SparkExecutor]) -> None:
        self._make = make

    def __enter__(self) -> Self:
        """Nothing is started yet."""
        return self

    def __exit__(self, _kind: object, error: BaseException | None, _trace: object) -> None:
        """Say why the application did not start, where that ended the block."""
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
        """See Executor."""
        return self._executor.slots

    def run(self, tasks: Sequence[Sequence[Slice]]) -> list[SliceResult]:
        """See SparkExecutor."""
        return self._executor.run(tasks)


class _NotStartedError(Exception):
    """The application did not start."""

    def __init__(self, why: SluiceError) -> None:
        super().__init__(str(why))
        self.why = why


def _is_stopped(context: SparkContext) -> bool:
    """Whether the application is gone, or its JVM."""
    try:
        return bool(context._jsc.sc().isStopped())  # noqa: SLF001 - not public in PySpark
    except Exception:  # noqa: BLE001 - of many kinds, by what broke first
        return True
