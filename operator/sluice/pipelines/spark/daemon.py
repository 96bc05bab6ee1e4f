"""Be the process from which Spark's Python workers are forked, in place of `pyspark.daemon`.

It imports once what every worker needs, so that a worker begins its first task at once. Nothing
here starts a thread or opens a connection: a fork would not have the one and share the other.
"""

from __future__ import annotations

import gc

from pyspark import worker  # noqa: F401 - as above
from pyspark.daemon import manager

from sluice.engine.slices import slices  # noqa: F401
from sluice.pipelines.spark import tasks  # noqa: F401
from sluice.stores.connect import preload

preload()

if __name__ == "__main__":
    # PySpark collects a worker's garbage after each task, which takes longer than a short task if
    # it looks at all modules. Memory that is not written to stays shared, too.
    gc.freeze()
    manager()
