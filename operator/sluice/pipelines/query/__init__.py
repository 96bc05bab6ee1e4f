"""Queries in Spark: a text becomes a plan, and the plan's batches are appended to sinks."""
