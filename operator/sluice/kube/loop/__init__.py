"""The reconcile loop: queue, workers, and for each resource one look and its actions."""
