"""The loop that reconciles: queue, workers, one look and its actions."""
