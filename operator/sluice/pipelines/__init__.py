"""The PySpark program that a driver runs: it schedules the engine's slices as tasks."""
