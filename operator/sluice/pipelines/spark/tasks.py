"""Run slices as Spark tasks.

Each slice is a Spark job with one task, and jobs run side by side. So no slice waits for another,
and its result comes at once. Tasks get slices and store addresses, never credentials. Each worker
process reads these from its own credentials folder, and keeps its connections for later tasks.
Spark's own retries stay on: a task is safe to run again, or twice at once, because the store fences
it.
"""

from __future__ import annotations

import threading
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager, suppress
from functools import cache, cached_property, lru_cache, partial
from typing import TYPE_CHECKING, Final, Self

from sluice.engine.access.connect import archives, open_source
from sluice.engine.tasks.slices import run_slice
from sluice.errors import InfrastructureError, SluiceError
from sluice.pipelines.spark.lost import SparkLost, first_line
from sluice.stores.connect import connect

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Sequence
    from concurrent.futures import Future

    from pyspark import SparkContext

    from sluice.archive.runs.archive_root import ArchiveRoot
    from sluice.config import Settings
    from sluice.core.values.model import StoreAddress
    from sluice.engine.tasks.slices import Slice, SliceResult
    from sluice.stores.base import Source, Store


_MOST_JOBS: Final = 1024
"""Most jobs at once: more than there are slots. A thread is made only once it is needed."""

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
    slices: Iterable[Slice],
    *,
    sources: Sequence[StoreAddress],
    target: StoreAddress,
    settings: Settings,
) -> Iterator[SliceResult]:
    """Run the slice of a task. This runs in a worker process."""
    for work in slices:
        yield run_slice(work, _source(work, sources, settings), _target(target, settings))


class SparkExecutor:
    """An executor that runs slices in a Spark application.

    Args:
        context: Spark's context.
        sources: the stores to read from.
        target: the store to write to.
        settings: settings for the workers.
        slots: returns the number of tasks at once. None to ask Spark, which is right only while no
            executors come or go.
        check: raises InfrastructureError if nothing could run tasks for too long.
    """

    def __init__(
        self,
        context: SparkContext,
        *,
        sources: Sequence[StoreAddress],
        target: StoreAddress,
        settings: Settings,
        slots: Callable[[], int] | None = None,
        check: Callable[[], None] = lambda: None,
    ) -> None:
        self._context = context
        self._slots = slots or (lambda: int(context.defaultParallelism))
        self._check = check
        self._task = partial(_run_task, sources=tuple(sources), target=target, settings=settings)
        # Each thread waits for one job, with its own connection to the JVM.
        self._waiters = ThreadPoolExecutor(_MOST_JOBS, thread_name_prefix="job")

    @property
    def slots(self) -> int:
        """How many tasks run at once. Raises SparkLost if the application is gone."""
        with self._lost():
            return self._slots()

    def submit(self, work: Slice) -> Future[SliceResult]:
        """Run a slice as a Spark job; see Executor.

        The future raises SparkLost if the application is gone, and InfrastructureError if the job
        failed.
        """
        return self._waiters.submit(self._run, work)

    def check(self, rate: float | None) -> None:  # noqa: ARG002 - slices have their rate
        """Look whether there are executors; see Executor. Raises SparkLost as well."""
        with self._lost():
            self._check()

    def stop(self, grace: float) -> None:
        """Cancel all jobs after `grace` seconds; see Executor."""
        # In a thread of its own, so with its own connection to the JVM: a signal may have
        # interrupted a call of this thread.
        timer = threading.Timer(grace, self._cancel)
        timer.daemon = True
        timer.start()

    def _cancel(self) -> None:
        with suppress(Exception):  # the application is gone, and its jobs with it
            self._context.cancelAllJobs()

    def _run(self, work: Slice) -> SliceResult:
        try:
            (result,) = self._context.parallelize([work], 1).mapPartitions(self._task).collect()
        except Exception as error:  # Spark raises whatever Py4J found in the JVM
            if _is_stopped(self._context):
                raise SparkLost(first_line(error)) from error
            raise InfrastructureError(f"a task failed: {first_line(error)}") from error
        return result

    @contextmanager
    def _lost(self) -> Iterator[None]:
        """Raise SparkLost in place of errors of Py4J."""
        try:
            yield
        except SluiceError:
            raise
        except Exception as error:
            raise SparkLost(first_line(error)) from error


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

    def submit(self, work: Slice) -> Future[SliceResult]:
        """Run a slice; see SparkExecutor. Start the application if needed."""
        return self._executor.submit(work)

    def check(self, rate: float | None) -> None:
        """Look whether tasks can run; see SparkExecutor."""
        self._executor.check(rate)

    def stop(self, grace: float) -> None:
        """Cancel all jobs after `grace` seconds; see SparkExecutor."""
        self._executor.stop(grace)


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
