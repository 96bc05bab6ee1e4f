"""Build the status that a copy gets next: one builder for each kind."""
