"""Spark: its configuration and application, its executors, and slices as Spark jobs."""
