"""Spark: configuration, context, executors, rounds as jobs."""
