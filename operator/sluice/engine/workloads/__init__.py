"""Workloads: the engine's work for each kind of resource, for the operator and for drivers."""
