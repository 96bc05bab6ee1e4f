"""Spark: its configuration and application, its executors, and rounds as Spark jobs."""
