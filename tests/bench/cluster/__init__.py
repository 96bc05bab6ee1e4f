"""Measurements of the operator in a cluster, in seconds and in calls."""
