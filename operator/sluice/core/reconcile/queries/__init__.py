"""Decide about StreamQueries: when a driver runs, and what the status says."""
