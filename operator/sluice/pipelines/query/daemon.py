"""Be the process from which the Python workers of queries are forked, in place of `pyspark.daemon`.

PySpark collects a worker's garbage after each task. With all modules that a worker has imported by
then, this takes a processor for 30 ms, as long as the tasks of a small batch. So what a worker has
after its first task is left out of later collections.
"""

from __future__ import annotations

import gc

from pyspark import daemon


class Garbage:
    """The part of `gc` that the daemon's workers use."""

    def __init__(self) -> None:
        self._frozen = False

    def collect(self) -> int:
        """Collect garbage. Return the number of objects that were found."""
        found = gc.collect()
        if not self._frozen:
            gc.freeze()
            self._frozen = True
        return found


if __name__ == "__main__":
    daemon.gc = Garbage()  # type: ignore[attr-defined, assignment] # workers call nothing else of it
    daemon.manager()
