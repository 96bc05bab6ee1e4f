"""Streams as a source of Spark: `spark.read.format("sluice")` and `spark.readStream`.

Spark finds the source by itself: this package is named `pyspark_*`, and has a `DefaultSource`.
`docs/notebooks.md` describes the options, the columns and the positions.
"""

from pyspark_sluice.lag import Lag, lag_of
from pyspark_sluice.source import DefaultSource

__all__ = ["DefaultSource", "Lag", "lag_of"]
