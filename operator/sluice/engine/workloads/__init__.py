"""Workloads: the engine's work for each kind of resource, for command line, operator, drivers."""
