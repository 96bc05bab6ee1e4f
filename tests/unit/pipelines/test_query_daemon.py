"""The process that the Python workers of queries are forked from."""

from __future__ import annotations

import gc
import inspect

from pyspark import daemon

from sluice.pipelines.query.daemon import Garbage


class Knot:
    """An object that only the garbage collection frees."""

    def __init__(self) -> None:
        self.own = self


def test_what_a_worker_has_after_its_first_task_is_not_looked_at_again() -> None:
    """Later collections look at few objects, and free what became garbage since."""
    garbage = Garbage()
    before = len(gc.get_objects())
    try:
        garbage.collect()
        assert len(gc.get_objects()) < before / 10
        frozen = gc.get_freeze_count()
        Knot()
        assert garbage.collect() >= 1
        assert gc.get_freeze_count() == frozen
    finally:
        gc.unfreeze()


def test_pyspark_collects_by_the_name_that_is_replaced() -> None:
    """Its daemon has no other way to collect a worker's garbage."""
    assert daemon.gc is gc  # type: ignore[attr-defined] # PySpark does not export it
    assert inspect.getsource(daemon).count("gc.") == inspect.getsource(daemon).count("gc.collect()")
